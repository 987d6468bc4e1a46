"""Students' plans as plain notes, and checks that say what is wrong."""
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from d2lps.checks import shown
from d2lps.collectives import Schedule, Send, simulate, topology
from d2lps.exercises.checking import Notes, Picture, Wrong
from d2lps.figures import describe

if TYPE_CHECKING:
    from d2lps.pictures.drawing import Row

MOST_ROUNDS, MOST_CHUNKS, MOST_SENDS = 200, 1000, 20_000


def notes_of(plan: Any, n: int) -> dict[str, Any]:
    """Notes of a student's plan for n devices; `plan_of` reads them.

    plan: a `Schedule`, or a list of rounds, which are lists of `Send`.
    """
    is_schedule = isinstance(plan, Schedule)
    if not is_schedule:
        if type(plan) in (list, tuple) and any(
                isinstance(one, (Schedule, int)) for one in plan):
            raise Wrong(f'your function returned a {type(plan).__name__} of '
                        f'{len(plan)}; return only the Schedule.')
        if not isinstance(plan, (list, tuple)):
            raise Wrong(f'your function returned {shown(plan)}; it must '
                        'return a Schedule.')
        try:
            plan = Schedule(list(plan), n)
        except ValueError as error:
            raise Wrong('what your function returned does not make a '
                        'Schedule: '
                        f'{error}{_which_round(error, n)}.') from None
    if plan.num_devices != n:
        raise Wrong(f'your plan is for {plan.num_devices} devices, {n} were '
                    'asked for.')
    if len(plan.nodes) > n:
        raise Wrong(f'your plan has a helper, {plan.nodes[n]!r}; only the '
                    'devices can take part.')
    _refuse_large(plan.rounds, plan.weights)
    return {'rounds': [list(zip(*r.columns())) for r in plan.rounds],
            'weights': plan.weights, 'is_schedule': is_schedule}


def plan_of(notes: Notes, n: int) -> Schedule:
    """The plan that is in notes: four numbers for each send of each round.

    Raises an error for notes that are no plan.
    """
    rounds, weights = notes['rounds'], notes['weights']
    _refuse_large(rounds, weights)
    return Schedule([[Send(*map(np.array, zip(*sends)))] for sends in rounds],
                    n, weights=weights, name='your plan')


def _refuse_large(rounds, weights):
    """Raise `Wrong` for a plan that is too large to be judged quickly."""
    for what, count, most in (
            ('rounds', len(rounds), MOST_ROUNDS),
            ('chunks', len(weights), MOST_CHUNKS),
            ('messages', sum(map(len, rounds)), MOST_SENDS)):
        if count > most:
            raise Wrong(f'your plan has {count:,} {what}, far too many to '
                        f'judge. At most {most:,} are allowed.')


@contextmanager
def number_rounds_from_1(n: int) -> Iterator[None]:
    """Add to an error of `Schedule` which round it is, counted from 1.

    n: the number of devices that the plan must have.
    """
    try:
        yield
    except ValueError as error:
        error.args = f'{error}{_which_round(error, n)}',
        raise


def _which_round(error, n):
    """A remark on an error of `Schedule`, which counts rounds from 0."""
    found = re.match(r'rounds\[(\d+)\]', str(error))
    if not found:
        return ''
    text = f'round {int(found[1]) + 1} of your list'
    outside = re.search(r'names a node outside 0 to (\d+)', str(error))
    if outside and int(outside[1]) + 1 != n:
        text += (f'; your Schedule is for {int(outside[1]) + 1} devices, '
                 f'{n} were asked for')
    return f' ({text})'


def judge_sum(notes: Notes, n: int, devices: str = 'n') -> Schedule:
    """The plan, if every device ends with the part of every device, once.

    devices: the exercise's name for the number of devices.
    """
    plan = judge_takes_part(notes, n, devices)
    judge_total(plan)
    return plan


def judge_takes_part(notes: Notes, n: int, devices: str = 'n') -> Schedule:
    """The plan, if each device sends and is sent to, and each chunk is sent.
    """
    plan = _sends_of(notes, n)
    if not notes['is_schedule']:
        raise Wrong('your function returned a list of rounds. Return a '
                    f'Schedule of it, and of {devices}.')
    src, dst = ({node for r in plan.rounds for node in getattr(r, ends)}
                for ends in ('src', 'dst'))
    for seen, what in (
            (src | dst, 'is left out: it sends nothing and is sent nothing.'),
            (dst, 'is sent nothing, so it never gets the total.'),
            (src, 'sends nothing, so no other device has its gradient.')):
        left = {*range(plan.num_devices)} - seen
        if left and plan.num_devices > 1:
            raise Wrong(f'device {min(left)} {what}')
    chunks = {*range(len(plan.weights))}
    unsent = chunks.difference(*(r.chunk.tolist() for r in plan.rounds))
    if unsent and plan.num_devices > 1:
        raise Wrong(f'no message carries chunk {min(unsent)}. Chunks count '
                    f'from 0 to the highest number, here {max(chunks)}, '
                    'without gaps.')
    return plan


def judge_total(plan: Schedule) -> None:
    """Raise `Wrong` unless every device ends with every part, once."""
    end = final_state(plan)
    if (end > 1).any():
        _refuse_counted_twice(plan, np.argwhere(end > 1)[0, 1])
    if (end < 1).any():
        _refuse_missing(plan, end)


def _sends_of(notes, n):
    """The plan that is in notes, if no send overwrites another."""
    plan = plan_of(notes, n)
    for number, sends in enumerate(plan.rounds, 1):
        places = [*zip(sends.dst.tolist(), sends.chunk.tolist())]
        count = Counter(places)
        for place, reduce in zip(places, sends.reduce):
            if count[place] > 1 and not reduce:
                _refuse_collision(number, sends, *place)
    return plan


def _refuse_collision(number, sends, dst, chunk):
    """Say which devices send one chunk that replaces another's at once."""
    here = (sends.dst == dst) & (sends.chunk == chunk)
    froms = sorted({*sends.src[here].tolist()})
    if len(froms) == 1:
        text = (f'device {froms[0]} sends {here.sum()} messages with chunk '
                f'{chunk} to device {dst}')
    else:
        some = ', '.join(map(str, froms[:-1]))
        every = 'all ' * (len(froms) > 2)
        text = (f'devices {some} and {froms[-1]} {every}send device {dst} '
                f'chunk {chunk}')
    if sends.reduce[here].any():
        src = sends.src[here & ~sends.reduce][0]
        raise Wrong(f'in round {number} {text}. Device {src} wants to '
                    'replace this chunk. Then no other message for this '
                    'chunk may arrive in the same round.')
    raise Wrong(f'in round {number} {text}, to replace it. Only one message '
                'can replace it.')


def judge_work(notes: Notes, n: int, whole: bool = True) -> Schedule:
    """The plan, if its cost can be judged; its sums may be wrong.

    whole: whether it must send at least as much as a sum for all needs.
    """
    plan = plan_of(notes, n)
    if n > 1:
        busy = {int(end) for sends in plan.rounds
                for ends in (sends.src, sends.dst) for end in ends}
        idle = {*range(n)} - busy
        if idle:
            raise Wrong(f'device {min(idle)} is left out: it sends nothing '
                        'and is sent nothing.')
    size = plan.chunk_bytes(1)
    sent = sum(size[sends.chunk].sum() for sends in plan.rounds)
    if whole and sent < 2 * (n - 1) * (1 - 1e-9):
        raise Wrong(f'all messages together carry {sent:.3g} gradients. At '
                    f'least {2 * (n - 1)} are needed to give the sum to {n} '
                    'devices.')
    return plan


def final_state(plan: Schedule) -> np.ndarray:
    """What each device holds of each chunk at the end of a plan."""
    for held in plan.states():
        pass
    return held


def _refuse_counted_twice(plan, chunk):
    """Say in which round a part of a chunk was first counted twice."""
    number, held = next(
        (number, held[:, chunk]) for number, held in enumerate(plan.states())
        if (held[:, chunk] > 1).any())
    node, who = np.argwhere(held > 1)[0].tolist()
    froms = [str(send.src) for send in plan.rounds[number - 1]
             if send[1:3] == (node, chunk)]
    raise Wrong(
        f'in round {number} device {node} adds chunk {chunk} from device '
        f'{" and ".join(froms)}, and then has the gradient of device {who} '
        f'counted {held[node, who]} times. The sum is too large from this '
        'round on.')


def _refuse_missing(plan, end):
    """Say which part does not arrive at a device, and why."""
    node, chunk, who = np.argwhere(end < 1)[0].tolist()
    text = (f'in the end chunk {chunk} of device {node} is not the sum: the '
            f'gradient of device {who} is missing. ')
    totals = (end[:, chunk] == 1).all(axis=1).nonzero()[0].tolist()
    early = [(number, send) for number, (sends, held) in enumerate(
        zip(plan.rounds, plan.states()), 1) for send in sends
        if send.chunk == chunk and not send.reduce
        and (held[send.src, chunk] != 1).any()]
    here = [put for put in early if put[1].dst == node]
    if here or early and not totals:
        number, send = here[-1] if here else early[0]
        raise Wrong(
            f'{text}In round {number} device {send.dst} replaces its own '
            f'chunk with the chunk of device {send.src}, but this chunk is '
            'not the total yet. A message carries the chunk as it was when '
            'its round began.')
    raise Wrong(text + (
        f'Device {totals[0]} has the total, but no message brings it to '
        f'device {node}.' if totals else 'No device has the total.'))


def judge_rounds(plan: Schedule, most: int) -> None:
    """Raise `Wrong` if the plan has more than `most` rounds."""
    if len(plan.rounds) > most:
        alone = sum(len(r) == 1 for r in plan.rounds)
        text = (f' In {alone} of them there is only one message, and all '
                'other devices wait.') * (alone > 0)
        raise Wrong(f'it takes {len(plan.rounds)} rounds; the target is '
                    f'{most}.{text}')


def judge_time(plan: Schedule, links: topology.Topology, nbytes: float,
               target: float,
               why: Callable[[Schedule, simulate.Timing], str]) -> None:
    """Raise `Wrong` if the plan takes more than `target` seconds.

    why(plan, timing): the reason in words.
    """
    timing = simulate.time(plan, links, nbytes)
    if timing.seconds > target * (1 + 1e-6):
        raise Wrong(f'it takes {timing.seconds * 1e3:.3f} ms; the target is '
                    f'{target * 1e3:.3f} ms. {why(plan, timing)}')


def busiest_device(plan: Schedule, timing: simulate.Timing) -> str:
    """Words about the device with most messages in one round."""
    crowds = []
    for number, sends in enumerate(plan.rounds, 1):
        for what, ends in (('into', sends.dst), ('from', sends.src)):
            count = np.bincount(ends)
            crowds.append((int(count.max()), -number, what,
                           int(count.argmax())))
    most, number, what, node = max(crowds)
    if most == 1:
        return 'No two messages share a cable, but there are too many rounds.'
    return (f'In round {-number}, {most} messages go {what} device {node} at '
            'the same time and share its cable.')


def _result_in_words(held):
    """What a device has in the end, in words."""
    if (held == 1).all():
        return 'the sum'
    return 'a gradient twice' if (held > 1).any() else 'a gradient missing'


def draw_plan(plan: Schedule, title: str) -> Picture:
    """Draw a column for each round and an arrow for each message.

    A number beside an arrow says how many chunks the message carries. At the
    right end stands what each device has.
    """
    from matplotlib.markers import CARETDOWN, CARETUP

    from d2lps.pictures import BLUE
    from d2lps.pictures.rows import WIDE, new_figure, row_axes
    rounds = len(plan.rounds)
    ends = [_result_in_words(held) for held in final_state(plan)]
    said = '; '.join(f'device {node} ends with {words}'
                     for node, words in enumerate(ends))
    n = plan.num_devices
    figure = new_figure(WIDE, 0.9 + 0.31 * n)
    ax = row_axes([f'device {node}' for node in range(n)], rounds or 1,
                  ax=figure.subplots(), title=title,
                  xlabel='round (solid: added, dashed: replaces)')
    describe(ax, f'{title}. {said}.')
    numbered = range(0, rounds, 1 + rounds // 30)
    ax.set_xticks([k + 0.5 for k in numbered], [k + 1 for k in numbered])
    ax.grid(False, axis='x')
    ax.grid(axis='y')
    for k in range(1, rounds):
        ax.axvline(k, color='gray', alpha=0.3, linewidth=1, linestyle='--')
    arrows = defaultdict(list)
    for k, sends in enumerate(plan.rounds):
        counts = Counter((src, dst, reduce) for src, dst, _, reduce in sends)
        for j, ((src, dst, reduce), count) in enumerate(counts.items()):
            x = k + 0.1 + 0.8 * (j + 0.5) / len(counts)
            up = dst < src
            arrows[up, reduce].append((x, src, dst))
            if count > 1:  # behind the tail
                ax.text(x, src + (0.3 if up else -0.3), str(count), size=9,
                        ha='center', va='center')
    for (up, reduce), places in arrows.items():
        xs, begins, tips = zip(*places)
        ax.vlines(xs, begins, tips, BLUE, '-' if reduce else '--',
                  linewidth=1.5)
        ax.plot(xs, tips, color=BLUE, linestyle='none',
                marker=CARETUP if up else CARETDOWN)
    for node, words in enumerate(ends):
        ax.text(1.01, node, words, transform=ax.get_yaxis_transform(),
                va='center', weight='normal' if words == 'the sum' else 'bold')
    return figure


def picture_of(plan: Schedule, others: Sequence[Schedule],
               links: topology.Topology, nbytes: float, target: float,
               left: Callable[[Schedule, str], Picture] = draw_plan
              ) -> 'Row':
    """Draw a plan, and beside it the times of this plan and of others.

    A plan that does not sum on all devices gets no time. target: seconds.
    left(plan, title): draws the plan.
    """
    from d2lps.pictures import Row, plot_comparison
    summed = (final_state(plan) == 1).all(axis=(1, 2)).sum()
    right, title = [plan], f'dashed: the target, {target * 1e3:.3g} ms'
    if summed < plan.num_devices:
        right, title = [], f'{title}; {plan.name}: no sum, no time'
    return Row(
        left(plan, f'{summed} of {plan.num_devices} devices end with the sum'),
        plot_comparison([simulate.time(one, links, nbytes)
                         for one in (*right, *others)],
                        title=title, target=target))

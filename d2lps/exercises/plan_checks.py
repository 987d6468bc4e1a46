"""Students' plans as plain notes, and checks that say what is wrong."""
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from d2lps.collectives import Schedule, Send, simulate, strategies, topology
from d2lps.exercises.charts import row_chart
from d2lps.exercises.checking import (PACKAGE, Answer, Differs, Picture,
                                      Wrong, functions_of, returned, without)
from d2lps.explaining import brief

if TYPE_CHECKING:
    from d2lps.pictures.drawing import Row

MOST_ROUNDS, MOST_CHUNKS, MOST_SENDS = 1000, 1000, 20_000


class PlanNotes(TypedDict):
    """A student's plan as JSON has it.

    rounds: for each round its sends, as lists (src, dst, chunk, reduce).
    weights: of the chunks. is_schedule: not a list of rounds.
    """
    rounds: list[list]
    weights: list[float]
    is_schedule: bool


def run(answer: Answer, n: int, *arguments: Any,
        may_use: Collection[Callable] = ()) -> PlanNotes:
    """Notes of the plan for n devices that answer(*arguments) returns.

    may_use: functions of `strategies` that the answer may name.
    """
    without(answer, *(function for function in functions_of(strategies)
                      if function not in may_use))
    try:
        return notes_of(returned(answer, *arguments), n)
    except ValueError as error:
        # The class Schedule says what is wrong with a message.
        *_, last = traceback.extract_tb(error.__traceback__)
        if last.filename.startswith(PACKAGE) and 'round' in str(error):
            raise Wrong(f'{error}.') from None
        raise


def notes_of(plan: Any, n: int) -> PlanNotes:
    """Notes of a student's plan for n devices; `plan_of` reads them.

    plan: a `Schedule`, or a list of rounds, which are lists of `Send`.
    """
    is_schedule = isinstance(plan, Schedule)
    if not is_schedule:
        parts = [*plan] if isinstance(plan, (list, tuple)) else [plan]
        if any(isinstance(part, (Schedule, int)) for part in parts):
            raise Wrong(f'you return {len(parts)} results; a Schedule alone '
                        'is right.', anywhere=True)
        if not isinstance(plan, (list, tuple)):
            raise Wrong(f'you return {brief(plan)}; a Schedule is right.',
                        anywhere=True)
        plan = Schedule(parts, n)
    if plan.num_devices != n:
        raise Wrong(f'your plan is for {plan.num_devices} devices; {n} is '
                    'right.')
    if len(plan.nodes) > n:
        raise Wrong(f'your plan has a helper, {plan.nodes[n]!r}. Only the '
                    'devices can take part.')
    return {'rounds': [list(zip(*r.columns())) for r in plan.rounds],
            'weights': plan.weights.tolist(), 'is_schedule': is_schedule}


def plan_of(notes: PlanNotes, n: int) -> Schedule:
    """The plan that is in notes: four numbers for each send of each round.

    Raises an error for notes that are no plan, or that would take long.
    """
    rounds, weights = notes['rounds'], notes['weights']
    for things, count, most in (
            ('rounds', len(rounds), MOST_ROUNDS),
            ('chunks', len(weights), MOST_CHUNKS),
            ('messages', sum(map(len, rounds)), MOST_SENDS)):
        if count > most:
            raise Wrong(f'your plan has {count:,} {things}; at most {most:,} '
                        'are judged.')
    return Schedule([[Send(*map(np.array, zip(*sends)))] for sends in rounds],
                    n, weights=weights, name='your plan')


def judge_sum(notes: PlanNotes, n: int, devices: str = 'n') -> Schedule:
    """The plan, if every device ends with each contribution, once.

    devices: the exercise's name for the number of devices.
    """
    plan = judge_form(notes, n, devices)
    judge_total(plan)
    return plan


def judge_form(notes: PlanNotes, n: int, devices: str = 'n') -> Schedule:
    """The plan, if each message has a meaning and each device takes part."""
    plan = plan_of(notes, n)
    if len(plan.rounds) > 1 and len({
            tuple(map(tuple, r.columns())) for r in plan.rounds}) == 1:
        raise Wrong(f'all {len(plan.rounds)} rounds have the same messages.')
    for number, sends in enumerate(plan.rounds, 1):
        _judge_replaced(number, sends)
    if not notes['is_schedule']:
        raise Wrong('you return a list of rounds; Schedule(rounds, '
                    f'{devices}) is right.', anywhere=True)
    _judge_left_out(plan)
    chunks = {*range(len(plan.weights))}
    unsent = chunks.difference(*(r.chunk.tolist() for r in plan.rounds))
    if unsent and n > 1:
        raise Wrong(f'no message carries chunk {min(unsent)}. Chunks count '
                    f'from 0 to the highest number, here {max(chunks)}, '
                    'without gaps.')
    return plan


def _judge_replaced(number, sends):
    """Raise `Wrong` if a chunk is replaced and gets other messages, too."""
    count = Counter(zip(sends.dst.tolist(), sends.chunk.tolist()))
    for src, dst, chunk, reduce in sends:
        if not reduce and count[dst, chunk] > 1:
            here = (sends.dst == dst) & (sends.chunk == chunk)
            raise Wrong(
                f'in round {number} device {dst} receives chunk {chunk} from '
                f'{_devices(np.unique(sends.src[here]))}. Device {src} '
                'replaces it there, so its message must be the only one.')


def _devices(numbers):
    *some, last = map(str, numbers)
    return f'device{"s " + ", ".join(some) + " and" if some else ""} {last}'


def _judge_left_out(plan):
    """Raise `Wrong` if a device does nothing."""
    busy = {device for sends in plan.rounds
            for device in [*sends.src.tolist(), *sends.dst.tolist()]}
    idle = {*range(plan.num_devices)} - busy
    if idle and plan.num_devices > 1:
        raise Wrong(f'device {min(idle)} is left out: it sends nothing and '
                    'is sent nothing.')


def judge_total(plan: Schedule) -> None:
    """Raise `Wrong` unless every device ends with every contribution, once."""
    wrong = final_state(plan) != 1
    if wrong.any():
        raise Differs(
            f'{wrong.any(axis=(1, 2)).sum()} of {plan.num_devices} devices '
            'end without the sum', None, known={
                (change,): f'Your plan is right {change}.'
                for change, changed in _changed(plan)
                if (final_state(changed) == 1).all() and _is_short(changed)},
            place=_first_mistake(plan, wrong.any(axis=(0, 2))))


def _is_short(plan):
    """True if it sends no more than a sum for all devices needs."""
    size = plan.chunk_bytes(1)
    sent = sum(size[sends.chunk].sum() for sends in plan.rounds)
    return sent <= 2 * (plan.num_devices - 1) * (1 + 1e-9)


def _changed(plan):
    """(words, another plan): what is tried with a wrong plan."""
    rounds = [Send(*map(np.array, sends.columns())) for sends in plan.rounds]
    half = len(rounds) // 2
    first, second = rounds[:half], rounds[half:]
    turned = [send._replace(src=send.dst, dst=send.src) for send in rounds]
    for change, changed in {
            'with src and dst interchanged': turned,
            'with src and dst interchanged in its first half':
                turned[:half] + second,
            'with src and dst interchanged in its second half':
                first + turned[half:],
            'with True and False interchanged': [
                send._replace(reduce=~send.reduce) for send in rounds],
            'with True in its first half': [
                send._replace(reduce=True) for send in first] + second,
            'with False in its second half': first + [
                send._replace(reduce=False) for send in second],
            'with its rounds in the opposite order': rounds[::-1],
            'with the rounds of its first half in the opposite order':
                first[::-1] + second,
            'with the rounds of its second half in the opposite order':
                first + second[::-1]}.items():
        try:
            yield change, Schedule([[send] for send in changed],
                                   plan.num_devices, weights=plan.weights)
        except ValueError:  # it is no plan
            continue


def final_state(plan: Schedule) -> np.ndarray:
    """The last of `plan.states()`: an array (devices, chunks, devices)."""
    for held in plan.states():
        pass
    return held


def _first_mistake(plan, wrong):
    """Words about the first message that spoils a chunk.

    wrong: for each chunk, whether a device does not end with its sum.
    """
    for field, verb in ('dst', 'is sent'), ('src', 'sends'):
        there = {*np.concatenate([getattr(r, field) for r in plan.rounds])}
        for device in sorted({*range(plan.num_devices)} - there):
            return (f'Device {device} {verb} nothing.')
    for number, (sends, (before, after)) in enumerate(
            zip(plan.rounds, pairwise(plan.states())), 1):
        for device, chunk, who in np.argwhere((after > 1) & wrong[:, None]):
            here = sends.src[(sends.dst == device) & (sends.chunk == chunk)]
            return (f'In round {number} device {device} adds chunk {chunk} '
                    f'of {_devices(np.unique(here))}, and then has the '
                    f'gradient of device {who} more than once.')
        for src, device, chunk, reduce in sends:
            lacks = before[src, chunk] == 0
            if not reduce and wrong[chunk] and lacks.any():
                return (f'In round {number} device {device} replaces chunk '
                        f'{chunk} by that of device {src}, which lacks the '
                        f'gradient of device {lacks.argmax()}.' + (
                            f' Device {src} gets it only in this round.'
                            if after[src, chunk, lacks.argmax()] else ''))
    return _way_of(plan, final_state(plan), wrong.argmax())


def _way_of(plan, end, chunk):
    """How far a chunk comes whose contributions do not all arrive."""
    have = end[:, chunk] == 1
    best = have.sum(axis=1).argmax()
    if have[best].all():
        return (f'Device {best} has the total of chunk {chunk}, but no later '
                f'message brings it to device {have.all(axis=1).argmin()}.')
    who = have[best].argmin()
    far = [f'goes no further than to device {send.dst}, in round {number}'
           for number, (sends, held) in enumerate(
               zip(plan.rounds, plan.states()), 1) for send in sends
           if send.chunk == chunk and held[send.src, chunk, who]]
    return (f'No device has all of chunk {chunk}: the gradient of device '
            f'{who} {far[-1] if far else "is in no message"}.')


def judge_work(notes: PlanNotes, n: int, whole: bool = True) -> Schedule:
    """The plan, if its cost can be judged; its sums may be wrong.

    whole: whether it must send at least as much as a sum for all needs.
    """
    plan = plan_of(notes, n)
    _judge_left_out(plan)
    size = plan.chunk_bytes(1)
    sent = sum(size[sends.chunk].sum() for sends in plan.rounds)
    if whole and sent < 2 * (n - 1) * (1 - 1e-9):
        raise Wrong(f'all messages together carry {sent:.3g} gradients; at '
                    f'least {2 * (n - 1)} are needed for a sum on {n} '
                    'devices.')
    return plan


def judge_rounds(plan: Schedule, most: int) -> None:
    """Raise `Wrong` if the plan has more than `most` rounds."""
    if len(plan.rounds) > most:
        alone = sum(len(r) == 1 for r in plan.rounds)
        raise Wrong(f'it takes {len(plan.rounds)} rounds; the target is '
                    f'{most}.' + f' In {alone} of them one device sends, and '
                    'all others wait.' * (alone > 0))


def judge_time(plan: Schedule, links: topology.Topology, nbytes: float,
               target: float,
               why: Callable[[Schedule, simulate.Timing], str]) -> None:
    """Raise `Wrong` if the plan takes more than `target` seconds.

    why(plan, timing): the reason in words.
    """
    timing = simulate.timing(plan, links, nbytes)
    if timing.seconds > target * (1 + 1e-6):
        raise Wrong(f'it takes {timing.seconds * 1e3:.3f} ms; the target is '
                    f'{target * 1e3:.3f} ms. {why(plan, timing)}')


def draw_plan(plan: Schedule, title: str) -> Picture:
    """Draw a column for each round and an arrow for each message.

    A number beside an arrow says how many chunks the message carries. At the
    right end stands what each device has.
    """
    from d2lps.pictures import BLUE
    rounds = len(plan.rounds)
    ends = ['the sum' if (held == 1).all() else
            'a gradient twice' if (held > 1).any() else 'a gradient missing'
            for held in final_state(plan)]
    said = '; '.join(f'device {node} ends with {state}'
                     for node, state in enumerate(ends))
    n = plan.num_devices
    ax = row_chart([f'device {node}' for node in range(n)], rounds or 1,
                   f'{title}. {said}.', height=0.9 + 0.31 * n, title=title,
                   xlabel='round (solid: added, dashed: replaces)')
    numbered = range(0, rounds, 1 + rounds // 30)
    ax.set_xticks([k + 0.5 for k in numbered], [k + 1 for k in numbered])
    ax.grid(False, axis='x')
    ax.grid(axis='y')
    for k in range(1, rounds):
        ax.axvline(k, color='gray', alpha=0.3, linewidth=1, linestyle='--')
    for k, sends in enumerate(plan.rounds):
        counts = Counter((src, dst, reduce) for src, dst, _, reduce in sends)
        for j, ((src, dst, reduce), count) in enumerate(counts.items()):
            x = k + 0.1 + 0.8 * (j + 0.5) / len(counts)
            ax.annotate('', (x, dst), (x, src), arrowprops={
                'arrowstyle': '-|>', 'color': BLUE, 'linewidth': 1.5,
                'linestyle': '-' if reduce else '--', 'shrinkA': 0,
                'shrinkB': 0})
            if count > 1:  # behind the tail
                ax.text(x, src + (0.3 if dst < src else -0.3), str(count),
                        size=9, ha='center', va='center')
    for node, state in enumerate(ends):
        ax.text(1.01, node, state, transform=ax.get_yaxis_transform(),
                va='center', weight='normal' if state == 'the sum' else 'bold')
    return ax.figure


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
        plot_comparison([simulate.timing(other, links, nbytes)
                         for other in (*right, *others)],
                        title=title, target=target))

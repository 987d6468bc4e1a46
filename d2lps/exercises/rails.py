"""A hierarchical sum in which every GPU's network card works.

To chapter 14, notebooks/14-ten-thousand-gpus.ipynb. The student's
function makes the plan.
"""
import numpy as np

from d2lps.collectives import Schedule, Send, simulate, strategies, topology
from d2lps.exercises import plan_checks
from d2lps.exercises.checking import Answer, Check, Differs, Picture, Wrong
from d2lps.exercises.plan_checks import PlanNotes

LATENCY, NETWORK_LATENCY = 5e-6, 12.5e-6  # seconds, of a cable


def run(answer: Answer, machines: int, gpus: int) -> PlanNotes:
    return plan_checks.run(answer, machines * gpus, machines, gpus,
                           may_use=(strategies.ring, strategies._ring))


def judge_sum(notes: PlanNotes, machines: int, gpus: int) -> None:
    plan = plan_checks.judge_form(notes, machines * gpus, 'machines * gpus')
    try:
        plan_checks.judge_total(plan)
    except Differs as error:
        error.place = _too_early(plan, gpus) or error.place
        raise


def _too_early(plan, gpus):
    """Words about what leaves a machine before it is summed there; or ''."""
    for number, (sends, held) in enumerate(
            zip(plan.rounds, plan.states()), 1):
        out = _leaves(sends, gpus) & sends.reduce
        for src, chunk in zip(sends.src[out], sends.chunk[out]):
            machine, gpu = divmod(src, gpus)
            first = machine * gpus
            here = slice(first, first + gpus)
            has = held[here, chunk, here] > 0  # which GPU has whose gradient
            if not has[gpu].all():
                return (f'In round {number} device {src} sends chunk {chunk} '
                        f'out of machine {machine}, without the gradient of '
                        f'device {first + has[gpu].argmin()}.' + ''.join(
                            f' Device {first + other} has the sum of this '
                            'machine.'
                            for other in np.flatnonzero(has.all(axis=1))[:1]))
    return ''


def _plan(notes, machines, gpus):
    """A plan in which everybody does something, whatever comes of it."""
    return plan_checks.judge_work(notes, machines * gpus, whole=False)


def _leaves(sends, gpus):
    """True for each message that goes to another machine."""
    return sends.src // gpus != sends.dst // gpus


def judge_rails(notes: PlanNotes, machines: int, gpus: int) -> None:
    """Messages from machine to machine stay on their rails."""
    plan = _plan(notes, machines, gpus)
    if machines > 1 and not any(_leaves(sends, gpus).any()
                                for sends in plan.rounds):
        raise Wrong('no message goes from one machine to another.')
    for number, sends in enumerate(plan.rounds, 1):
        bad = _leaves(sends, gpus) & (sends.src % gpus != sends.dst % gpus)
        for src, dst in zip(sends.src[bad], sends.dst[bad]):
            raise Wrong(
                f'in round {number} device {src} sends to device {dst}, on '
                f'another rail; in machine {dst // gpus} only device '
                f'{dst // gpus * gpus + src % gpus} is on its rail.')


def _carried(plan, gpus, outside):
    """Gradients that each device sends and receives, round by round.

    outside: over its network card; otherwise within its machine. Two arrays
    (rounds, devices).
    """
    size = plan.chunk_bytes(1)
    both = np.zeros((2, len(plan.rounds), plan.num_devices))
    for number, sends in enumerate(plan.rounds):
        which = _leaves(sends, gpus) == outside
        for amount, ends in zip(both, (sends.src, sends.dst)):
            np.add.at(amount[number], ends[which],
                      size[sends.chunk[which]])
    return both


def judge_cards(notes: PlanNotes, machines: int, gpus: int) -> None:
    """No network card carries more than its share."""
    least = 2 * (machines - 1)
    _judge_load(_carried(_plan(notes, machines, gpus), gpus, outside=True),
                'over its network card', least, least / machines / gpus)


def judge_inside(notes: PlanNotes, machines: int, gpus: int) -> None:
    """Within its machine, too, no GPU sends or gets more than it must."""
    least = 2 * (gpus - 1)
    _judge_load(_carried(_plan(notes, machines, gpus), gpus, outside=False),
                'within its machine', least, least / gpus)


def _judge_load(both, where, least, target):
    """Raise `Wrong` if too little goes, or a device sends or gets too much.

    least: of all devices together. target: the most for one device. Both in
    gradients.
    """
    totals = both.sum(axis=1)
    all_where = where.replace('its', 'their')
    if totals[0].sum() < least * (1 - 1e-9):
        raise Wrong(f'all devices send {totals[0].sum():.3g} gradients '
                    f'{all_where}; a sum needs at least {least}')
    if totals.max() <= target * (1 + 1e-9):
        return
    way, device = np.unravel_index(totals.argmax(), totals.shape)
    verb, by_round = ('sends', 'gets')[way], both[way, :, device]
    idle = int((totals.max(axis=0) == 0).sum())
    hint = (f' {idle} of {totals.shape[1]} devices send and get nothing '
            f'{all_where}.' if idle else
            f' In round {by_round.argmax() + 1} it {verb} '
            f'{by_round.max():.3g}.' if by_round.max() > target else '')
    raise Wrong(f'device {device} {verb} {totals.max():.3g} gradients {where};'
                f' the target is {target:.3g}.{hint}')


def judge_rounds(notes: PlanNotes, machines: int, gpus: int) -> None:
    """Few rounds: two inside, the others on rails."""
    plan = _plan(notes, machines, gpus)
    if len(plan.rounds) > 2 * machines:
        left = [_leaves(sends, gpus) for sends in plan.rounds]
        inside = sum(not leaves.all() for leaves in left)
        across = sum(bool(leaves.any()) for leaves in left)
        raise Wrong(
            f'it takes {len(plan.rounds)} rounds; the target is '
            f'{2 * machines}. In {inside} of them messages go inside '
            f'machines, in {across} between machines.')


def one_speaker(machines: int, gpus: int) -> Schedule:
    """GPU 0 of each machine gathers, is in a ring, and tells the others."""
    n, chunks = machines * gpus, np.arange(machines)
    rest = np.array([d for d in range(n) if d % gpus], int)[:, None]
    first = rest - rest % gpus
    ring = [[Send(sends.src * gpus, sends.dst * gpus, sends.chunk,
                  sends.reduce)] for sends in strategies.ring(machines).rounds]
    return Schedule([[Send(rest, first, chunks, True)], *ring,
                     [Send(first, rest, chunks, False)]], n,
                    name='one GPU speaks')


def cables(machines: int, gpus: int) -> topology.Topology:
    """The chapter's machines, with a network card for each GPU."""
    links = []
    for device in range(machines * gpus):
        links += topology.both_ways(device, f'switch {device // gpus}',
                                    topology.PCIE3, LATENCY)
        links += topology.both_ways(device, f'rail {device % gpus}',
                                    topology.ETHERNET_10G, NETWORK_LATENCY)
    return topology.Topology(links, name='rails')


def target_seconds(machines: int, gpus: int, nbytes: float) -> float:
    """Seconds of the plan with a ring on each rail, on `cables`."""
    return simulate.timing(strategies.hierarchical(machines, gpus),
                           cables(machines, gpus), nbytes).seconds


def picture(answer: Answer, machines: int = 4, gpus: int = 4,
            nbytes: float = 160e6) -> Picture:
    """Gradients that each card sends, beside a plan with one card each."""
    plan = plan_checks.plan_of(run(answer, machines, gpus), machines * gpus)
    other = one_speaker(machines, gpus)
    return plan_checks.picture_of(
        plan, [other], cables(machines, gpus), nbytes,
        target_seconds(machines, gpus, nbytes),
        left=lambda plan, title: _cards(
            title, {'your plan': plan, 'one GPU speaks': other}, gpus))


def _cards(title, plans, gpus):
    """Bars: what each device sends over its card, by each plan."""
    import pandas as pd

    from d2lps.pictures import BLUE, GRAY
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    table = pd.DataFrame({
        name: _carried(plan, gpus, outside=True)[0].sum(axis=0)
        for name, plan in plans.items()})
    ax = table.plot.bar(ax=new_figure(WIDE, 2.8).subplots(), legend=False,
                        rot=0, width=0.8, color=[BLUE, GRAY])
    ax.set(title=title, xlabel=f'device ({gpus} in each machine)',
           ylabel='gradients sent\nover its network card')
    ax.grid(False, axis='x')
    legend_below(ax)
    return ax.figure


def _cases(*sizes):
    return [{'machines': machines, 'gpus': gpus} for machines, gpus in sizes]


SIZES = (2, 4), (4, 4), (3, 2)
CHECKS = {
    'sum': Check(_cases(*SIZES, (2, 1), (1, 2)), run, judge_sum,
                 'every GPU ends with the gradient of each GPU once.'),
    'rails': Check(_cases(*SIZES, (2, 1)), run, judge_rails,
                   'from machine to machine, each message stays on its '
                   'rail.'),
    'cards': Check(_cases(*SIZES, (2, 1)), run, judge_cards,
                   'no network card carries more than 2(m - 1)/m · 1/g of a '
                   'gradient.'),
    'inside': Check(_cases(*SIZES), run, judge_inside,
                    'within its machine no GPU sends or gets more than '
                    '2(g - 1)/g gradients.'),
    'rounds': Check(_cases(*SIZES), run, judge_rounds,
                    'there are at most 2m rounds, for m machines.')}

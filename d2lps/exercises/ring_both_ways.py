"""A ring that uses both directions of its cables, fast ones and slow ones.

To chapter 5, notebooks/05-rings.ipynb. The student's function makes the plan;
`plan_checks` judges it.
"""
import numpy as np

from d2lps.collectives import strategies, topology
from d2lps.exercises import plan_checks
from d2lps.exercises.checking import Answer, Check, Picture
from d2lps.exercises.plan_checks import PlanNotes

NBYTES = 160e6


def run(answer: Answer, n: int, there: float = 18,
        back: float = 18) -> PlanNotes:
    return plan_checks.run(answer, n, n, there, back)


def judge_sum(notes: PlanNotes, n: int, there: float = 18,
              back: float = 18) -> None:
    plan_checks.judge_sum(notes, n)


def judge_time(notes: PlanNotes, n: int, there: float = 18,
               back: float = 18) -> None:
    plan_checks.judge_time(plan_checks.judge_work(notes, n),
                           *_task(n, there, back), why=_shares)


def _task(n: int, there: float, back: float
          ) -> tuple[topology.Topology, float, float]:
    """The cables, bytes, and the time to reach in seconds."""
    links = topology.Topology(
        [topology.Link(i, (i + 1) % n, there * 1e9, 0.0) for i in range(n)] +
        [topology.Link((i + 1) % n, i, back * 1e9, 0.0) for i in range(n)],
        name=f'circle of {n}')
    return (links, NBYTES,
            2 * (n - 1) / n * NBYTES / (there * 1e9 + back * 1e9))


def _shares(plan, timing):
    """Words about how much each direction is used."""
    n, busy = plan.num_devices, timing.busy()
    steps = [(r.dst - r.src) % n for r in plan.rounds]
    far = sum(not {*step} <= {1, n - 1} for step in steps)
    lone = sum({*step} != {1, n - 1} for step in steps)
    if far or lone:
        return f'In {far or lone} of {len(steps)} rounds ' + (
            'messages do not go to neighbours.' if far else
            'all messages go in the same direction.')
    onward, backward = ({*np.concatenate([
        r.chunk[step == k] for r, step in zip(plan.rounds, steps)])}
        for k in (1, n - 1))
    both = onward & backward
    if n > 2 and both:
        return f'Chunk {min(both)} goes in both directions; one is enough.'
    there, back = (np.mean([busy[i, (i + step) % n] for i in range(n)])
                   for step in (1, -1))
    if min(there, back) > 0.99:
        size = plan.chunk_bytes(1)
        sent = sum(size[r.chunk].sum() for r in plan.rounds)
        return (f'Your messages carry {sent:.3g} gradients; {2 * (n - 1)} are '
                'enough.')
    return (f'Cables to i + 1 are busy {there:.0%} of the time, cables to '
            f'i - 1 {back:.0%} of it.')


def picture(answer: Answer, n: int = 4) -> Picture:
    """Times at which each cable is in use, and the time beside others'."""
    from d2lps.collectives import simulate
    from d2lps.pictures import Row, plot_timing

    def left(plan, title):
        return plot_timing(simulate.timing(plan, links, NBYTES), title=(
            f'{there} GB/s to i + 1, {back} GB/s to i - 1: {title}'))

    rows = []
    for there, back in ((18, 18), (18, 9)):
        task = links, *_ = _task(n, there, back)
        plan = plan_checks.plan_of(run(answer, n, there, back), n)
        rows += plan_checks.picture_of(plan, [
            strategies.ring(n), strategies.running_sum(n)], *task,
            left=left).pictures
    return Row(*rows)


UNEVEN = [{'n': n, 'there': there, 'back': back}
          for n, there, back in ((4, 18, 9), (5, 10, 15))]
CASE = 'n = {n}'
CHECKS = {
    'sum': Check([{'n': n} for n in (3, 8, 2, 1, 4, 5)] + UNEVEN, run,
                 judge_sum,
                 'every device ends with the gradient of each device once.',
                 case=CASE),
    'time': Check([{'n': n} for n in (4, 8, 5)], run, judge_time,
                  'half the time of a ring: both directions are busy all the '
                  'time.', case=CASE),
    'uneven': Check(UNEVEN, run, judge_time,
                    'fast and slow directions end at the same moment.',
                    case='{there} and {back} GB/s, n = {n}')}

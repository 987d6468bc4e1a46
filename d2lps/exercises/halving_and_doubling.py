"""Half of the data to a partner, half of that to the next, and back.

To chapter 6, notebooks/06-trees.ipynb. The student's function makes the plan.
"""
import numpy as np

from d2lps.collectives import strategies, topology
from d2lps.exercises import plan_checks
from d2lps.exercises.checking import Answer, Check, Picture, Wrong
from d2lps.exercises.plan_checks import PlanNotes


def run(answer: Answer, n: int) -> PlanNotes:
    return plan_checks.run(answer, n, n)


def judge_rounds(notes: PlanNotes, n: int) -> None:
    """Few rounds, and one partner in each of them."""
    plan = plan_checks.judge_work(notes, n, whole=False)
    plan_checks.judge_rounds(plan, 2 * (n.bit_length() - 1))
    for number, sends in enumerate(plan.rounds, 1):
        pairs = {(src, dst) for src, dst, *_ in sends}
        for device in range(n):
            partners = ({dst for src, dst in pairs if src == device} |
                        {src for src, dst in pairs if dst == device})
            if len(partners) > 1:
                raise Wrong(
                    f'in round {number} device {device} has {len(partners)} '
                    f'partners, {sorted(partners)}; one is right, to which it '
                    'sends and from which it receives.')


def judge_bytes(notes: PlanNotes, n: int) -> None:
    """No device sends more of its gradient than it must."""
    plan = plan_checks.judge_work(notes, n)
    size, sent = plan.chunk_bytes(1), np.zeros((len(plan.rounds), n))
    for amount, sends in zip(sent, plan.rounds):
        np.add.at(amount, sends.src, size[sends.chunk])
    total, target = sent.sum(axis=0), 2 * (n - 1) / n
    if n > 1 and total.max() > target * (1 + 1e-9):
        device = int(total.argmax())
        shares = ', '.join(f'{share:.3g}' for share in sent[:, device])
        raise Wrong(
            f'device {device} sends {total.max():.3g} gradients; the target '
            f'is {target:.3g}. Round by round it sends {shares}.')
    if len(plan.weights) > n:
        raise Wrong(f'your plan has {len(plan.weights)} chunks; {n} are '
                    'right.')


def picture(answer: Answer, n: int = 8) -> Picture:
    """The student's plan, and the time it takes beside others'."""
    plan = plan_checks.plan_of(run(answer, n), n)
    others = [make(n) for make in (strategies.recursive_doubling,
                                   strategies.tree, strategies.ring)]
    rounds, latency = 2 * (n.bit_length() - 1), 10e-6
    target = rounds * latency + 2 * (n - 1) / n * 1e6 / topology.PCIE3
    switch = topology.pcie_switch(n, latency=5e-6)
    return plan_checks.picture_of(plan, others, switch, 1e6, target)


CHECKS = {
    'sum': Check([{'n': n} for n in (2, 4, 8, 1)], run, plan_checks.judge_sum,
                 'every device ends with the gradient of each device once.'),
    'rounds': Check([{'n': n} for n in (4, 8)], run, judge_rounds,
                    '2 log2(n) rounds, and one partner in each.'),
    'bytes': Check([{'n': n} for n in (4, 8)], run, judge_bytes,
                   'each device sends 2(n - 1)/n of its gradient.')}

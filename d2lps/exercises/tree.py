"""A tree for any number of devices, with no two messages on a cable.

To chapter 6, notebooks/06-trees.ipynb. The student's function makes the plan.
"""
from typing import Any

import numpy as np

from d2lps.collectives import Schedule, simulate, strategies, topology
from d2lps.exercises import plan_checks
from d2lps.exercises.checking import Answer, Check, Picture, Wrong
from d2lps.exercises.plan_checks import PlanNotes


def run(answer: Answer, n: int, **_: Any) -> PlanNotes:
    return plan_checks.run(answer, n, n)


def _levels(n):
    """Base-2 logarithm, rounded up."""
    return (n - 1).bit_length()


def judge_sum(notes: PlanNotes, n: int) -> None:
    """The sum everywhere, with as few whole gradients as can be."""
    if len(notes['weights']) > 1:
        raise Wrong(f'your plan has {len(notes["weights"])} chunks; one is '
                    'right. Every message carries the whole gradient.')
    plan = plan_checks.judge_sum(notes, n)
    sends = sum(map(len, plan.rounds))
    if sends > 2 * (n - 1):
        raise Wrong(f'the sum is right, but takes {sends} messages; the '
                    f'target is {2 * (n - 1)}. Every device except the root '
                    'sends one sum up and gets one total.')


def judge_rounds(notes: PlanNotes, n: int) -> None:
    plan_checks.judge_rounds(plan_checks.judge_work(notes, n, whole=False),
                             2 * _levels(n))


def judge_time(notes: PlanNotes, n: int, microseconds: float,
               megabytes: float) -> None:
    plan_checks.judge_time(plan_checks.judge_work(notes, n),
                           *_task(n, microseconds, megabytes), why=_crowd)


def says_time(notes: PlanNotes, n: int, microseconds: float,
              megabytes: float) -> str:
    links, nbytes, _ = _task(n, microseconds, megabytes)
    timing = simulate.timing(plan_checks.plan_of(notes, n), links, nbytes)
    return (f'With {n} devices, your plan takes {timing.seconds * 1e3:.3g} '
            'ms.')


def _crowd(plan: Schedule, _: simulate.Timing) -> str:
    """Words about the first round in which messages share a cable."""
    for number, sends in enumerate(plan.rounds, 1):
        for way, ends in (('into', sends.dst), ('from', sends.src)):
            count = np.bincount(ends)
            if count.max() > 1:
                return (f'In round {number}, {count.max()} messages go {way} '
                        f'device {count.argmax()} and share its cable.')
    return f'There are {len(plan.rounds)} rounds.'


def _task(n: int, microseconds: float = 10, megabytes: float = 160
          ) -> tuple[topology.Topology, float, float]:
    """The cables, bytes, and the time to reach in seconds."""
    latency, nbytes = microseconds / 1e6, megabytes * 1e6
    return (topology.pcie_switch(n, latency=latency / 2), nbytes,
            2 * _levels(n) * (latency + nbytes / topology.PCIE3))


def picture(answer: Answer, n: int = 8) -> Picture:
    """The student's plan, and the time it takes beside others'."""
    plan = plan_checks.plan_of(run(answer, n), n)
    others = [make(n) for make in (strategies.tree, strategies.running_sum,
                                   strategies.gather_broadcast)]
    return plan_checks.picture_of(plan, others, *_task(n))


CHECKS = {
    'sum': Check([{'n': n} for n in (2, 8, 5, 4, 1)], run, judge_sum,
                 'every device ends with the sum, after 2(n - 1) messages.'),
    'rounds': Check([{'n': n} for n in (8, 5)], run, judge_rounds,
                    'the sum is there after 2 ⌈log2(n)⌉ rounds at most.'),
    'time': Check([{'n': n, 'microseconds': 10, 'megabytes': 160}
                   for n in (8, 4)], run, judge_time,
                  'no message waits for another.', says_time, 'n = {n}')}

"""Measure two plans between processes of this machine, as in chapter 11.

No port is opened: the processes use Unix sockets of this user, or a network
namespace of their own. All processes have ended when `measure` returns, and
every wait has a timeout.
"""
import os
import time
from typing import NamedTuple

import numpy as np

from d2lps.collectives import Schedule, Send, strategies
from d2lps.exercises.checking import CASES, Answer
from d2lps.missing import NoFork, can_fork

WORKERS = 4
LINK, BUCKET = 12.5e6, 2000  # the slow network: bytes per second, bytes
WAIT = 10  # seconds that a worker may wait for another
SECONDS = 4.0  # the longest time of each of a measurement's three parts
LARGEST = 32_000_000  # bytes of the largest array


class Links(NamedTuple):
    """Costs of a network: seconds, bytes per second, seconds."""
    alpha: float
    bandwidth: float
    overhead: float
    label: str


class Measured(NamedTuple):
    """plans: two. nbytes: sizes (k,). seconds: medians (2, k)."""
    plans: tuple
    links: Links
    nbytes: np.ndarray
    seconds: np.ndarray


def measure(predict: Answer, first: Schedule,
            second: Schedule) -> Measured | None:
    """Predict how long two plans for four workers take here; then run them.

    predict: the student's function. Returns a `Measured`, or None where no
    processes can be started, and while a teacher grades.
    """
    if os.environ.get(CASES):
        return None
    if not can_fork():
        print(f'Nothing was measured. {NoFork()}')
        return None
    import d2lps
    for plan in first, second:
        if len(plan.nodes) != WORKERS:
            raise ValueError(f'both plans must be for {WORKERS} workers; '
                             f'{plan.name} has {len(plan.nodes)} nodes')
        plan.check_sends()
    problem = d2lps.network_problem()
    network = None if problem else d2lps.Network(LINK, bucket=BUCKET)
    try:
        with d2lps.Cluster(WORKERS, num_servers=0, network=network,
                           timeout=WAIT) as workers:
            return _predicted_and_measured(workers, problem, predict,
                                           (first, second))
    except (OSError, d2lps.ClusterError, d2lps.WorkerError) as error:
        *_, why = str(error).strip().splitlines() or [type(error).__name__]
        print('Nothing was measured, because processes could not do it here: '
              + why)
        return None


def _predicted_and_measured(workers, problem, predict, plans):
    links = _links(workers, problem)
    print(f'{links.label}: alpha = {links.alpha * 1e6:.0f} µs, bandwidth = '
          f'{links.bandwidth / 1e6:,.1f} MB/s, overhead = '
          f'{links.overhead * 1e6:.0f} µs')
    # In one latency so many bytes could go through a cable.
    nbytes = links.alpha * links.bandwidth * 4.0 ** np.arange(-1, 5)
    nbytes = np.unique(nbytes[nbytes <= LARGEST] // 4 * 4).astype(int) + 4
    predicted = [[predict(plan, size, *links[:3]) for size in nbytes.tolist()]
                 for plan in plans]
    _show('predicted', plans, nbytes, predicted)
    seconds = _slowest(workers.run(_times, plans, nbytes.tolist(), 15))
    _show('measured', plans, nbytes, seconds)
    return Measured(plans, links, nbytes, seconds)


def _show(kind, plans, nbytes, seconds):
    """A row for each size, and who wins there."""
    names = [plan.name for plan in plans]
    wide = max(12, *(len(name) + 2 for name in names))
    print(f'\n{kind + ", ms":16}' + ''.join(f'{name:>{wide}}'
                                            for name in names) + '  faster')
    for size, pair in zip(nbytes, np.transpose(seconds)):
        row = ''.join(f'{time * 1e3:>{wide}.3f}' for time in pair)
        print(f'{size:>10,} bytes{row}  {names[np.argmin(pair)]}')


def _links(workers, problem):
    """Alpha, bandwidth and overhead of this machine, as in chapter 11."""
    sizes = [8, 64, 512, 4096, 16_384, 65_536, 262_144, 1_048_576]
    if problem:  # from memory to memory
        sizes += [4_194_304, 16_777_216]
    pong = Schedule([[Send(0, 1, 0, False)], [Send(1, 0, 0, False)]], WORKERS)
    [one_way] = _slowest(workers.run(_times, [pong], sizes, 15)) / 2
    paid = np.maximum(0, np.array(sizes) - (0 if problem else BUCKET))
    slope, alpha = np.polyfit(paid, one_way, 1, w=1 / one_way)
    single, three = _slowest(workers.run(_times, [_star(1), _star(3)], [64],
                                         100))[:, 0]
    overhead = (three - single) / 4  # two messages more, there and back
    label = ('No slow network here, from memory to memory' if problem else
             f'Cables of {LINK / 1e6:g} MB/s')
    return Links(float(max(alpha, 1e-6)), float(1 / max(slope, 1e-12)),
                 float(max(overhead, 0)), label)


def _star(others):
    """Worker 0 sends to some others at once, and they answer."""
    others = np.arange(1, others + 1)
    return Schedule([[Send(0, others, 0, False)], [Send(others, 0, others,
                                                        False)]], WORKERS)


def _slowest(taken):
    """Median of what the slowest worker took: an array (plans, sizes)."""
    return np.array([[np.median(np.max(runs, axis=0)) for runs in zip(*sizes)]
                     for sizes in zip(*taken)])


def _times(plans, sizes, repeats):
    """Seconds of each plan and size on this worker, lists of repeats.

    It ends soon after `SECONDS`, on all workers at the same repeat: each says
    in the sum before a plan whether its time is over.
    """
    from d2lps import join_peers, travel
    meet = strategies.recursive_doubling(WORKERS)
    taken = [[[] for _ in sizes] for _ in plans]
    with join_peers() as peers:
        end = time.monotonic() + SECONDS
        for repeat in range(1 + repeats):  # the first one warms up
            for k, nbytes in enumerate(sizes):
                array = np.zeros(nbytes // 4, 'float32')
                for plan, of_plan in zip(plans, taken):
                    over = np.array([float(time.monotonic() > end)])
                    travel.run(peers, meet, over)  # all begin together
                    if over[0] and repeat > 1:
                        return taken
                    start = time.perf_counter()
                    travel.run(peers, plan, array)
                    if repeat:
                        of_plan[k].append(time.perf_counter() - start)
    return taken

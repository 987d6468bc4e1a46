"""Times of sums and sends among GPUs, asked from the simulator.

A group of GPUs sums by a ring. If it has several GPUs in each of several
NVLink domains, it sums by the hierarchical plan: inside each domain, then
across domains, then inside again. A GPU's network card is its own.

On such links the simulator's time is a line, seconds for no byte plus
seconds for each byte, so it is asked twice for each kind of group. The two
parts of the hierarchical plan are asked one by one, because all of it at once
takes minutes for 1,000 GPUs. Each part is a call of its own.

Latencies are NCCL's: of a call, and of a hop (`machines.protocols`).
"""
from functools import cache

from d2lps.checks import checked, integer, number
from d2lps.collectives import simulate, strategies, topology
from d2lps.collectives.machines.protocols import PROTOCOLS
from d2lps.collectives.schedule import Schedule
from d2lps.planning.gpus import Gpu, a_gpu

SIMPLE = PROTOCOLS[-1]  # the protocol for large arrays
MANY = 10 ** 9  # bytes


def members(gpu: Gpu, size: int, stride: int) -> tuple[int, int]:
    """A group's GPUs in one NVLink domain, and its number of domains.

    Args:
        size: how many GPUs are in the group.
        stride: how far apart their ranks are.
    """
    inside = min(size, max(1, gpu.domain // stride))
    return inside, -(-size // inside)


@checked(gpu=a_gpu, inside=integer, domains=integer, nbytes=number)
def sum_time(gpu: Gpu, inside: int, domains: int, nbytes: float) -> float:
    """Seconds of an all-reduce of `nbytes` bytes on each GPU of a group.

    Args:
        inside: how many GPUs the group has in each NVLink domain.
        domains: in how many domains.
    """
    if inside == 1 or domains == 1:
        nothing, each = _line(gpu, strategies.ring, inside * domains,
                              domains == 1)
        return nothing + each * nbytes
    nothing, each = _line(gpu, strategies.sharded, inside, True)
    more, across = _line(gpu, strategies.ring, domains, False)
    return nothing + more + (each + across / inside) * nbytes


def gather_time(gpu: Gpu, inside: int, domains: int, nbytes: float) -> float:
    """Seconds of an all-gather of `nbytes` bytes, or of a reduce-scatter.

    Each is one half of an all-reduce, and both halves take the same time.
    """
    return sum_time(gpu, inside, domains, nbytes) / 2


def send_time(gpu: Gpu, stride: int, size: int, nbytes: float) -> float:
    """Seconds of one message of `nbytes` bytes to the GPU `stride` away.

    The slowest of these messages in a group of `size` GPUs counts: if the
    group lies in several domains, some messages cross the network.
    """
    inside = stride * size <= gpu.domain
    rate, hop = ((gpu.nvlink, SIMPLE.hops['NVLink']) if inside else
                 (gpu.network, SIMPLE.hops['network']))
    return hop + nbytes / rate


@cache
def _line(gpu, plan, size, inside):
    """Seconds for no byte and for each byte, of plan(size) on one switch."""
    if size == 1:
        return 0.0, 0.0
    rate, kind = ((gpu.nvlink, 'NVLink') if inside else
                  (gpu.network, 'network'))
    schedule: Schedule = plan(size)
    switch = topology.ethernet(size, rate, SIMPLE.hops[kind] / 2)
    nothing, many = (simulate.timing(schedule, switch, nbytes).seconds
                     for nbytes in (0, MANY))
    return SIMPLE.call + nothing, (many - nothing) / MANY

"""All-to-all: each device has a different chunk for each other device.

Nothing is added. Chunk i * n + j goes from device i to device j, and each
chunk can have another size. In models with experts, this chunk is the tokens
of device i for the experts of device j.
"""
from typing import Any

import numpy as np

from d2lps.checks import checked, integer, refuse
from d2lps.collectives import limits
from d2lps.collectives.schedule import (Schedule, ScheduleError,
                                        any_schedule)
from d2lps.collectives.sends import Send


def _sizes(name: str, value: Any) -> np.ndarray:
    """A square array of sizes; a number n stands for n devices, all equal."""
    if np.ndim(value) == 0:
        n = limits.up_to_4096(name, value)
        return np.ones((n, n))
    sizes = limits.array(2)(name, value)
    if sizes.shape[0] != sizes.shape[1] or not 0 < sizes.sum() < np.inf:
        refuse(name, value, 'a number of devices, or a square array of sizes '
               'of 0 or more that are not all 0')
    limits.up_to_4096(name, len(sizes))
    return sizes


@checked(sizes=_sizes)
def direct(sizes: Any) -> Schedule:
    """Each device sends each chunk directly to its destination.

    In round k device i sends to device (i + k) modulo n, so that each device
    sends one message at a time and receives one.

    Args:
        sizes: floats (n, n), relative; sizes[i][j] is the size of the chunk
            from device i to device j. Chunks with i = j are not sent. A
            number n means n devices and chunks of equal size.
    """
    n = len(sizes)
    device = np.arange(n)
    rounds = []
    for k in range(1, n):
        to = (device + k) % n
        some = sizes[device, to] > 0
        rounds.append([Send(device[some], to[some],
                            (device * n + to)[some], False)])
    return Schedule(rounds, n, (), sizes.ravel(), f'all_to_all({n})')


@checked(sizes=_sizes, num_devices=integer)
def by_rail(sizes: Any, num_devices: int) -> Schedule:
    """First inside each machine, then directly to the machine of the goal.

    Device d of machine m is m * num_devices + d. Its chunk for device e of
    another machine goes first to device e of its own machine. This device
    sends all chunks of its machine for that goal in one message. So a device
    sends over the network only to devices of its own number: its rail.

    Args:
        sizes: as in `direct`.
        num_devices: in each machine.

    Raises:
        ValueError: if `num_devices` does not divide the number of devices.

    Source: NCCL's PXN (2.12) and DeepEP (DeepSeek-AI 2025) do it like this.
    """
    n = len(sizes)
    if n % num_devices:
        refuse('num_devices', num_devices, f'a divisor of {n} devices')
    chunk = np.flatnonzero(sizes)
    src, dst = np.divmod(chunk, n)
    machine, rail = np.divmod(dst, num_devices)
    here = src // num_devices * num_devices + rail
    rounds = []
    for k in range(1, num_devices):
        now = (rail - src) % num_devices == k
        rounds.append([Send(src[now], here[now], chunk[now], False)])
    num_machines = n // num_devices
    for k in range(1, num_machines):
        now = (machine - src // num_devices) % num_machines == k
        rounds.append([Send(here[now], dst[now], chunk[now], False)])
    return Schedule(rounds, n, (), sizes.ravel(), f'by_rail({n})')


@checked(schedule=any_schedule)
def check(schedule: Schedule) -> Schedule:
    """Raise `ScheduleError` unless each device has received its chunks.

    Chunk i * n + j must have arrived, whole and alone, from device i at device
    j. Returns the schedule itself.
    """
    schedule.check_sends()
    n = schedule.num_devices
    if len(schedule.weights) != n * n:
        raise ScheduleError(f'{schedule.name}: {n} devices need {n * n} '
                            'chunks, one from each device to each; it has '
                            f'{len(schedule.weights)}')
    marks, end = schedule.carry_marks()
    chunk = np.flatnonzero(schedule.weights)
    src, dst = np.divmod(chunk, n)
    differs = (end[dst, chunk] != marks[src]).reshape(len(chunk), -1)
    if differs.any():
        k = differs.any(axis=1).argmax()
        raise ScheduleError(
            f'{schedule.name}: in the end, device {dst[k]}, chunk {chunk[k]}: '
            f'not the data of device {src[k]}, once and alone')
    return schedule

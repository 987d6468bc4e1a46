"""Flows that share links, and their times.

Flows that run at the same time share every link max-min fairly: no flow can
get more without taking it from a flow that has no more than that (Bertsekas
and Gallager 1992, 6.5.2).
"""
from collections.abc import Sequence

import numpy as np


def flow(paths: np.ndarray, size: np.ndarray, delay: np.ndarray,
         capacity: np.ndarray, inputs: Sequence[Sequence[int]] | None = None
         ) -> tuple[np.ndarray, np.ndarray]:
    """Let flows run until the last has ended, from event to event.

    paths: numbers of the links of each flow, (flows, longest path).
    size, delay: bytes, and seconds before the first byte, (flows,).
    capacity: bytes/s of each link, (links,).
    inputs: for each flow, the flows that must have ended before it starts.
    Returns the times when each starts and ends, in s, two arrays (flows,).
    Raises ValueError for flows that wait for each other in a circle.
    """
    starts, ends = np.zeros((2, len(size)))
    left, begin = size.astype(float), delay.astype(float)
    wanted_by: dict[int, list[int]] = {}
    missing = [len(needed) for needed in inputs or ()]
    for k, needed in enumerate(inputs or ()):
        if needed:
            begin[k] = np.inf  # until these flows have ended
        for other in needed:
            wanted_by.setdefault(other, []).append(k)
    now, running = 0.0, np.array([], int)
    while len(running) or np.isfinite(begin).any():
        rates = fair_rates(paths[running], capacity)
        finish = now + left[running] / rates
        then = min(finish.min(initial=np.inf), begin.min())
        left[running] -= rates * (then - now)
        now = then
        # Flows that end within a rounding error end together.
        soon = now * (1 + 1e-9)
        done = running[finish <= soon]
        ends[done] = now
        for k in done.tolist() if wanted_by else ():
            for other in wanted_by.get(k, ()):
                missing[other] -= 1
                if not missing[other]:
                    starts[other], begin[other] = now, now + delay[other]
        fresh = np.flatnonzero(begin <= soon)
        begin[fresh] = np.inf
        running = np.concatenate([running[finish > soon], fresh])
    for k, needed in enumerate(inputs or ()):
        if missing[k]:
            raise ValueError(f'inputs: flow {k} waits for {needed}, and one '
                             'of these never ends: they wait in a circle, or '
                             'it does not exist')
    return starts, ends


def fair_rates(paths: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Max-min fair rates in bytes/s, (flows,), by progressive filling.

    All rates grow together until a link is full; its flows stay at that
    rate, and the others go on growing. For paths and capacity see `flow`.
    """
    rates, free = np.zeros(len(paths)), capacity.copy()
    growing = np.arange(len(paths))
    while len(growing):
        users = np.bincount(paths[growing].ravel(), minlength=len(free))
        level = np.divide(free, users, out=np.full(len(free), np.inf),
                          where=users > 0)
        full = level <= level.min() * (1 + 1e-9)
        stop = full[paths[growing]].any(axis=1)
        stopped = growing[stop]
        rates[stopped] = level.min()
        free -= level.min() * np.bincount(paths[stopped].ravel(),
                                          minlength=len(free))
        growing = growing[~stop]
    return rates

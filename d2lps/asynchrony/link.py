"""The bytes on a worker's link during a step, and keys in flight."""
import threading
import time
from collections.abc import Sequence

import numpy as np

from d2lps.annotations import Array, Key, Store
from d2lps.asynchrony.overlap import Task
from d2lps.checks import checked, instance_of, integer, list_of, number
from d2lps.engine import mx  # before psutil: it explains a missing library

import psutil

TICK = 0.003  # seconds between two samples
# A message begins when this share of it has been carried, because TCP's
# acknowledgements of other messages use the link, too.
THRESHOLD = 0.03


class LinkMeter:
    """Sample the traffic of this process's host in a `with` block.

    Attributes:
        samples: a list of (moment, bytes sent, bytes received) since the
            host began, every few milliseconds; moments as
            `time.perf_counter` tells them, which is one clock for all
            processes of a machine.
    """

    samples: list[tuple[float, int, int]]

    def __enter__(self) -> 'LinkMeter':
        self.samples, self._end = [], threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _look(self):
        links = psutil.net_io_counters(pernic=True, nowrap=False)
        links.pop('lo', None)
        self.samples.append((
            time.perf_counter(),
            sum(link.bytes_sent for link in links.values()),
            sum(link.bytes_recv for link in links.values())))

    def _watch(self):
        while not self._end.wait(TICK):
            self._look()

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._thread.join()
        self._look()


@checked(ready=list_of(number, 'a list of seconds'), start=number,
         samples=list_of(instance_of((list, tuple), 'a row of numbers'),
                         "a LinkMeter's samples", least=2))
def seen_tasks(ready: Sequence[float],
               samples: Sequence[tuple[float, int, int]], start: float = 0
               ) -> list[Task]:
    """A worker's step as a list of `Task`, worked out from its traffic.

    ready: the moments when the gradients were ready, the last layer first.
    samples: of a `LinkMeter` during the step, in which equal layers were
    pushed and pulled one by one in that order. start: moment of the step's
    start. The first task includes the forward pass, and the last one ends
    when nearly all bytes have come: see `THRESHOLD`.
    """
    rows = np.array(samples)
    if not (rows[-1] > rows[0]).all():
        raise ValueError('samples have no bytes sent, or none received: only '
                         'the bytes on a link are counted, as in '
                         'Cluster(network=Network())')
    layers = range(len(ready))[::-1]
    begins = [start, *ready]
    tasks = [Task('backward', (layer,), begin - start, end - start)
             for layer, begin, end in zip(layers, begins, ready)]
    for kind, counts in zip(('push', 'pull'), rows.T[1:]):
        share = (counts - counts[0]) / (counts[-1] - counts[0])
        for number, layer in enumerate(layers):
            ends = np.array([number + THRESHOLD, number + 1 - THRESHOLD])
            begin, end = np.interp(ends / len(ready), share, rows[:, 0])
            tasks.append(Task(kind, (layer,), float(begin - start),
                              float(end - start)))
    return tasks


def push_then_pull(kv: Store, keys: Sequence[Key], gradients: Sequence[Array],
                   out: Sequence[Array]) -> None:
    """Push all, wait until all have arrived, pull all (as in chapter 10)."""
    kv.push(keys, gradients)
    mx.nd.waitall()
    kv.pull(keys, out=out)


@checked(window=integer)
def in_flight(kv: Store, keys: Sequence[int], gradients: Sequence[Array],
              out: Sequence[Array], window: int = 4) -> None:
    """Pull sums while gradients are pushed, some keys at a time.

    kv: a `DistStore`. keys: 0, 1, … gradients, out: an array for each. At
    most window + 1 gradients are in flight: pushed, and not summed yet.
    """
    for key in keys[:window]:
        kv.push(key, gradients[key])
    for key in keys:
        kv.pull(key, out=out[key], wait=False)  # only ask for it
        if key + window < len(keys):
            kv.push(key + window, gradients[key + window])
        out[key].wait_to_read()

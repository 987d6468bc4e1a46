"""What is seen of a link, and how many keys are in flight."""
import threading
import time
from types import SimpleNamespace

import pytest
from d2lps.asynchrony import link
from d2lps.asynchrony.link import LinkMeter, seen_tasks
from d2lps.asynchrony.overlap import simulate_step

def carried(tasks, moment):
    """Bytes that tasks have sent by a moment."""
    return sum(task.nbytes * min(1, max(0, (moment - task.start) /
                                        (task.end - task.start)))
               for task in tasks)


def test_what_is_seen_is_what_happened():
    """A simulated step, looked at every so often."""
    tasks = simulate_step([3, 1, 2, 1], [4e6] * 4, 4e6, pull=True)
    rows = {what: [task for task in tasks if task.kind == what]
            for what in ('backward', 'push', 'pull')}
    samples = [(10 + t / 100, 77 + carried(rows['push'], t / 100),
                carried(rows['pull'], t / 100)) for t in range(-50, 1200)]
    ready = [10 + task.end for task in rows['backward']]
    seen = seen_tasks(ready, samples, start=10)
    assert [(t.kind, t.layers) for t in seen] == [
        (t.kind, t.layers) for what in rows.values() for t in what]
    for one, other in zip(seen, [t for row in rows.values() for t in row]):
        assert one.start == pytest.approx(other.start, abs=0.05)
        assert one.end == pytest.approx(other.end, abs=0.05)


def test_the_meter_follows_the_links(monkeypatch):
    counts = {'lo': (999, 999), 'eth0': (5, 7), 'eth1': (10, 20)}
    monkeypatch.setattr(link.psutil, 'net_io_counters', lambda **_: {
        name: SimpleNamespace(bytes_sent=sent, bytes_recv=received)
        for name, (sent, received) in counts.items()})
    before, threads = time.perf_counter(), threading.active_count()
    with LinkMeter() as meter:
        counts['eth0'] = 6, 9
        end = time.monotonic() + 100
        while meter.samples[-1][1:] != (16, 29):
            assert time.monotonic() < end
            time.sleep(0.001)
        counts['eth1'] = 11, 20
    assert meter.samples[0][1:] == (15, 27)
    assert meter.samples[-1][1:] == (17, 29)
    moments = [before, *(moment for moment, *_ in meter.samples),
               time.perf_counter()]
    assert moments == sorted(moments)
    assert threading.active_count() == threads


class Store:
    """Counts what is on its way."""

    def __init__(self):
        self.flying, self.most, self.pulled = 0, 0, []

    def push(self, key, value):
        self.flying += 1
        self.most = max(self.most, self.flying)

    def pull(self, key, out, wait):
        assert not wait
        self.pulled.append(key)
        out.store = self


class Sum:
    def wait_to_read(self):
        self.store.flying -= 1


@pytest.mark.parametrize('window, most', [(1, 2), (4, 5), (99, 10)])
def test_so_many_are_in_flight(window, most):
    kv, keys = Store(), list(range(10))
    link.in_flight(kv, keys, keys, [Sum() for _ in keys], window)
    assert (kv.most, kv.flying, kv.pulled) == (most, 0, keys)


def test_where_nothing_goes_over_a_link_nothing_is_seen():
    with pytest.raises(ValueError, match='no bytes sent, or none received'):
        seen_tasks([1], [(0, 5, 5), (1, 5, 9)])

"""What a stopwatch says, of work whose cost is known."""
import pytest

from d2lps import Stopwatch
from d2lps.training import stopwatch


def test_the_watch_runs_while_the_devices_do_the_work_of_the_block(
        monkeypatch):
    """All work is done before it starts, and again before it stops."""
    events, clock = [], stopwatch.time.perf_counter

    class Npx:
        waitall = staticmethod(lambda: events.append('all done'))

    class Time:
        @staticmethod
        def perf_counter():
            events.append('clock')
            return clock()

    monkeypatch.setattr(stopwatch, 'npx', Npx)
    monkeypatch.setattr(stopwatch, 'time', Time)
    with Stopwatch() as watch:
        events.append('block')
    assert events == ['all done', 'clock', 'block', 'all done', 'clock']
    assert watch.seconds > 0


@pytest.mark.full
def test_new_memory_costs_page_faults(python):
    """In a process of its own, in which no memory has been used before."""
    done = python('-c', '''if True:
        from d2lps import Stopwatch
        from mxnet import np
        with Stopwatch() as watch:
            np.ones(10_000_000).wait_to_read()  # 40 MB
        print(watch.page_faults)''')
    pages = 40e6 / (2 << 20)  # at least, as they may be huge ones
    assert int(done.stdout) > 0.5 * pages

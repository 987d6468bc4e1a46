"""What a stopwatch says, of work whose cost is known."""
import psutil
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
        process_time = stopwatch.time.process_time

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


def test_new_memory_costs_page_faults(python):
    """In a process of its own, in which no memory has been used before."""
    done = python('-c', '''if True:
        from d2lps import Stopwatch
        from mxnet import np
        with Stopwatch() as watch:
            np.ones(10_000_000).wait_to_read()  # 40 MB
        with Stopwatch() as idle:
            pass
        print(watch.page_faults, idle.page_faults)''')
    faults, idle = map(int, done.stdout.split())
    pages = 40e6 / (2 << 20)  # at least, as they may be huge ones
    assert faults > 0.5 * pages
    assert idle < faults


@pytest.mark.parametrize('ours, all_used, taken', [
    (0, 0, 0), (2, 2, 0), (1, 2, 1)])
def test_what_other_programs_use_is_not_free(ours, all_used, taken,
                                             monkeypatch):
    moments = [(5.0, 9.0), (5.0 + ours, 9.0 + all_used)]
    monkeypatch.setattr(stopwatch, '_seconds_of_processors',
                        lambda: moments.pop(0))
    with Stopwatch() as watch:
        pass
    assert watch.free_cores == pytest.approx(
        psutil.cpu_count() - taken / watch.seconds)


@pytest.mark.parametrize('cores, free, answer, words', [
    (2, 1.9, True, ''), (2, 1.2, False, 'other programs were running'),
    (1, 1.0, False, 'there is only one core')])
def test_two_free_cores(cores, free, answer, words, monkeypatch, capsys):
    monkeypatch.setattr(stopwatch, 'cores', lambda: cores)
    watch = Stopwatch()
    watch.free_cores = free
    assert watch.two_cores_were_free() is answer
    assert words in capsys.readouterr().out

"""Workers that are threads meet in calls, always in the same order."""
import os
import signal
import threading
import time

import pytest
from d2lps.missing import is_hidden

torch = pytest.importorskip('torch')
if is_hidden('torch'):
    pytest.skip('D2LPS_WITHOUT=torch', allow_module_level=True)
from d2lps.exercises import worker_threads  # noqa: E402
from d2lps.exercises.checking import Wrong  # noqa: E402
from d2lps.exercises.torchgroup import Group  # noqa: E402

pytestmark = pytest.mark.full  # make test-all installs PyTorch


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = {*threading.enumerate()}
    yield
    assert {*threading.enumerate()} == before


def fails(function, num_workers=3):
    """What is said of it."""
    with pytest.raises(Wrong) as caught:
        Group(num_workers).run(function)
    return str(caught.value)


@pytest.mark.parametrize('n', [1, 2, 5])
def test_what_the_calls_give(n):
    def work(worker):
        k = worker.rank + 1.
        flat, part, every = (torch.full((size,), k) for size in (3, 2, 2 * n))
        handle = worker.all_reduce(flat)
        assert flat.isnan().all()
        worker.reduce_scatter(part, torch.arange(2. * n) * k)
        assert handle.wait() and handle.wait()
        worker.all_gather(every, torch.tensor([k, -k]))
        return flat.tolist(), part.tolist(), every.tolist()

    total = n * (n + 1) / 2
    for rank, (flat, part, every) in enumerate(Group(n).run(work)):
        assert flat == [total] * 3
        assert part == [2 * rank * total, (2 * rank + 1) * total]
        assert every == [sign * k for k in range(1, n + 1)
                         for sign in (1, -1)]


def test_all_happens_in_the_same_order_each_time():
    def trace():
        seen = []

        def work(worker):
            for k in range(3):
                seen.append((worker.rank, k))
                worker.all_reduce(torch.ones(k + 1)).wait()
            return seen
        return Group(3).run(work)[0]

    first = trace()
    assert len(first) == 9
    assert all(trace() == first for _ in range(10))


def test_a_backward_pass_runs_its_hooks_in_the_thread_of_its_worker():
    def work(worker):
        param = torch.nn.Parameter(torch.ones(3))
        found = []
        param.register_post_accumulate_grad_hook(lambda _: found.append(
            (threading.current_thread(), worker.all_reduce(param.grad).wait()))
        )
        (param.sum() * (worker.rank + 1)).backward()
        assert found == [(threading.current_thread(), True)]
        return param.grad.tolist()

    assert Group(3).run(work) == [[6.] * 3] * 3


def test_a_call_of_one_rank_alone_names_who_waits_for_whom():
    def work(worker):
        if worker.rank == 1:
            worker.all_gather(torch.ones(3), torch.ones(1))

    words = fails(work)
    assert 'rank 0 has ended; rank 1 waits in all_gather (call 1) for ' in (
        words)
    assert 'for ranks 0, 2; rank 2 has ended' in words


def test_a_call_that_nobody_waits_for_is_missed_in_the_end():
    def work(worker):
        for _ in range(3 - worker.rank):
            worker.all_reduce(torch.ones(2))

    assert 'all_reduce (call 2) was made by ranks 0, 1, and never by ' in (
        fails(work))


@pytest.mark.parametrize('call', [
    lambda w: w.all_reduce(torch.ones(2 + w.rank)),
    lambda w: w.all_reduce(torch.ones(2, 2)),
    lambda w: w.all_reduce(torch.ones(4)[::2]),
    lambda w: w.all_reduce(torch.arange(4)),
    lambda w: w.reduce_scatter(torch.ones(3), torch.ones(10)),
    lambda w: w.all_gather(torch.ones(6), torch.ones(2).double())])
def test_what_pytorch_would_refuse_or_hang_at_is_refused(call):
    assert 'rank 0 calls' in fails(call)


def test_a_tensor_under_way_may_not_be_written():
    def work(worker):
        flat = torch.ones(3)
        handle = worker.all_reduce(flat)
        flat /= 2  # nan stays nan, and so does no harm
        flat[1] = 5
        handle.wait()

    assert 'rank 2 writes into the tensor of its all_reduce 1' in fails(work)


def test_an_error_of_one_worker_ends_all_and_is_raised():
    def work(worker):
        if worker.rank == 2:
            raise KeyError('mine')
        try:
            worker.all_reduce(torch.ones(1)).wait()
        except Exception:  # as students write it
            pytest.fail('an end is no error of theirs')

    with pytest.raises(KeyError, match='mine'):
        Group(3).run(work)


def test_a_loop_without_end_is_ended(monkeypatch):
    monkeypatch.setattr(worker_threads, 'CPU_LIMIT', 0.3)

    def work(worker):
        worker.all_reduce(torch.ones(1)).wait()
        while worker.rank == 1:
            pass

    start = time.monotonic()
    assert 'rank 1 has called nothing for' in fails(work)
    assert time.monotonic() - start < 60


def test_who_gets_no_processor_is_not_blamed(monkeypatch):
    monkeypatch.setattr(worker_threads, 'CPU_LIMIT', 0.2)

    def work(worker):
        time.sleep(0.6)
        return worker.rank

    def forever(worker):
        while True:
            time.sleep(0.01)

    assert Group(2).run(work) == [0, 1]
    monkeypatch.setattr(worker_threads, 'CPU_LIMIT', 8)
    monkeypatch.setattr(worker_threads, 'WALL_LIMIT', 0.3)
    assert 'rank 0 has called nothing for' in fails(forever)


def test_ctrl_c_ends_all():
    def work(worker):
        worker.all_reduce(torch.ones(1)).wait()
        os.kill(os.getpid(), signal.SIGINT)  # the main thread gets it
        while True:
            time.sleep(0.01)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            Group(2).run(work)
    finally:
        signal.signal(signal.SIGINT, before)

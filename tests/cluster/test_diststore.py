"""The checked store on two real workers: sums, and every wrong call.

The functions here run on the workers.
"""
import time

import mxnet as mx
import pytest
from clusters import HANGS
from d2lps.cluster import Cluster, WorkerError
from d2lps.cluster.processes.cells import execute
from d2lps.cluster.store import agreement
from mxnet import np


@pytest.fixture(scope='module')
def cluster():
    with (pytest.MonkeyPatch.context() as patch,
          Cluster(num_workers=2, num_servers=1) as cluster):
        patch.setattr(agreement, 'IDLE_PATIENCE', 1)
        yield cluster


def fresh(kind='dist_sync'):
    """A new store with 'w', three zeros, and an array for what is pulled."""
    kv = mx.kv.create(kind)
    kv.init('w', np.zeros(3))
    return kv, np.zeros(3)


def failures(cluster, function, *args):
    """The workers' errors: {rank: text}, and that nothing hung."""
    start = time.monotonic()
    with pytest.raises(WorkerError) as error:
        cluster.run(function, *args)
    assert time.monotonic() - start < HANGS
    return error.value.errors


def still_works(cluster):
    """Can the workers go on, with the same processes?"""
    pids = cluster.pids
    assert cluster.run(sum_of_ranks) == [[1.0] * 3] * 2
    return {name: cluster.pids[name] for name in ('worker 0', 'worker 1')
            } == {name: pids[name] for name in ('worker 0', 'worker 1')}


def sum_of_ranks():
    kv, out = fresh()
    kv.push('w', np.ones(3) * kv.rank)
    kv.pull('w', out)
    return out.tolist()


# What the store does.

def test_ranks_are_in_the_order_of_the_workers(cluster):
    def who():
        kv, _ = fresh()
        return kv.rank, kv.num_workers, kv.type
    assert cluster.run(who) == [(0, 2, 'dist_sync'), (1, 2, 'dist_sync')]


def test_values_are_summed_over_workers_and_devices(cluster):
    def add():
        kv, out = fresh()
        kv.push('w', [np.ones(3, ctx=mx.cpu(i)) * (10 * i + kv.rank + 1)
                      for i in range(2)])
        others = [np.zeros(3, ctx=mx.cpu(1))]
        kv.pull('w', [out, *others])
        return out.tolist(), others[0].tolist()
    assert cluster.run(add) == [([26.0] * 3, [26.0] * 3)] * 2  # 1+2+11+12


def test_what_was_pushed_is_not_changed(cluster):
    def push_and_pull():
        kv, out = fresh()
        first, x = np.ones(3) * 5, np.ones(3)
        kv.init('v', first)
        kv.push(['w', 'v'], [x, x])
        kv.pull(['w', 'v'], [out, out])
        kv.pushpull('v', x, out=out)
        return x.tolist(), first.tolist()
    assert cluster.run(push_and_pull) == [([1.0] * 3, [5.0] * 3)] * 2


def test_many_keys_big_and_small_numbers_and_strings(cluster):
    def go(keys):
        kv = mx.kv.create('dist_sync')
        sizes = [1, 5, 1_500_000, 70]  # the third is split over the servers
        kv.init(keys, [np.full(n, kv.rank + 1.0) for n in sizes])
        outs = [np.zeros(n) for n in sizes]
        kv.pull(keys, outs)
        first = [float(out.min()) for out in outs]
        kv.push(keys, [np.full(n, i + kv.rank * 10.0)
                       for i, n in enumerate(sizes)])
        kv.pull(keys, outs, wait=False)
        return first, [(float(out.min()), float(out.max())) for out in outs]
    expected = ([1.0] * 4, [(10.0 + 2 * i, 10.0 + 2 * i) for i in range(4)])
    assert cluster.run(go, [*'abcd']) == [expected] * 2  # rank 0's start
    assert cluster.run(go, [4, 3, 2, 100]) == [expected] * 2


def test_the_number_of_devices_may_change(cluster):
    """MXNet crashes when there are more than in the first push of several."""
    def go():
        kv, out = fresh()
        seen = []
        for n in 2, 5, 1, 3:
            kv.push('w', [np.full(3, i + 1.0, ctx=mx.cpu(i))
                          for i in range(n)])
            kv.pull('w', out)
            seen.append(float(out[2]))
        return seen
    assert cluster.run(go) == [[6.0, 30.0, 2.0, 12.0]] * 2


def test_who_has_not_pushed_pulls_the_old_value(cluster):
    def go():
        kv, out = fresh()
        if kv.rank == 0:
            kv.push('w', np.ones(3))
        kv.barrier()
        if kv.rank == 1:
            kv.pull('w', out)  # does not wait
            kv.push('w', np.ones(3))
            return out.tolist()
        kv.pull('w', out)
        return out.tolist()
    assert cluster.run(go) == [[2.0] * 3, [0.0] * 3]


def test_the_server_runs_momentum_and_setting_it_again_forgets_it(cluster):
    def go(again):
        kv = mx.kv.create('dist_sync')
        kv.init(0, np.zeros(1))
        out = np.zeros(1)
        for step in range(3):
            if step == 0 or again:
                kv.set_optimizer(mx.optimizer.SGD(learning_rate=1, wd=0,
                                                  momentum=0.5))
            kv.pushpull(0, np.ones(1) / 2, out=out)
        return float(out[0])
    assert cluster.run(go, False) == [-(1 + 1.5 + 1.75)] * 2
    assert cluster.run(go, True) == [-3.0] * 2


def test_an_optimizer_from_the_readers_notebook_reaches_the_servers(cluster):
    def go():
        class Half(mx.optimizer.Optimizer):
            def create_state(self, index, weight):
                return None

            def update(self, index, weight, grad, state):
                weight[:] = weight / 2 + grad
        kv = mx.kv.create('dist_sync')
        kv.init('w', np.ones(3) * 8)
        kv.set_optimizer(Half())
        out = np.zeros(3)
        kv.pushpull('w', np.ones(3), out=out)
        return out.tolist()
    assert cluster.run(go) == [[6.0] * 3] * 2


def test_an_asynchronous_store_updates_with_every_push(cluster):
    def go():
        kv = mx.kv.create('dist_async')
        kv.init('w', np.zeros(3))
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=1, wd=0))
        out = np.zeros(3)
        for _ in range(5 * (kv.rank + 1)):
            kv.push('w', np.ones(3))
        kv.pull('w', out)
        own = -float(out[0])
        kv.barrier()
        kv.pull('w', out)
        return own, out.tolist()
    (first, end), (second, same) = cluster.run(go)
    assert 5 <= first <= 15 and 10 <= second <= 15
    assert end == same == [-15.0] * 3


def test_compression_to_two_bits(cluster):
    def go():
        kv = mx.kv.create('dist_sync')
        kv.set_gradient_compression({'type': '2bit', 'threshold': 0.5})
        kv.init('w', np.zeros(3))
        out, seen = np.zeros(3), []
        for _ in range(2):
            kv.pushpull('w', np.array([0.3, 0.7, -0.9]), out=out)
            seen.append(out.tolist())
        return seen
    assert cluster.run(go) == [[[0.0, 1.0, -1.0], [1.0, 1.0, -1.0]]] * 2


def test_gluons_trainer_takes_the_store(cluster):
    def go(update_on_kvstore):
        from mxnet import autograd, gluon
        net = gluon.nn.Dense(1, in_units=2, use_bias=False)
        net.initialize(mx.init.One())
        trainer = gluon.Trainer(
            net.collect_params(), 'sgd', {'learning_rate': 0.1, 'wd': 0},
            kvstore='dist_sync', update_on_kvstore=update_on_kvstore)
        for _ in range(2):
            with autograd.record():
                loss = net(np.ones((1, 2))).sum()
            loss.backward()
            trainer.step(2)
        return net.weight.data().tolist()
    for update_on_kvstore in (True, False):
        for weight in cluster.run(go, update_on_kvstore):
            # Two workers, gradient 1 each, over a batch of 2: 1 a step.
            assert weight == [pytest.approx([0.8, 0.8])]


def test_an_open_round_does_not_hinder_the_next_store(cluster):
    def go():
        kv, _ = fresh()
        if kv.rank == 0:
            kv.push('w', np.ones(3))
    cluster.run(go)
    assert still_works(cluster)


def test_a_function_on_a_server_has_the_shapes_of_numpy(cluster):
    def go():
        kv, out = fresh()

        def update(key, gradient, value):
            shapes = np.zeros(()).shape, gradient[0].shape
            value[:] = 7 if shapes == ((), ()) else -7
        kv.set_updater(update)
        kv.pushpull('w', out)
        return out.tolist()
    assert cluster.run(go) == [[7] * 3] * 2


# What MXNet answers with a hang, an abort or a wrong sum.

def both(cluster, text, function, *args):
    """Both workers must get an error with `text`, and can go on."""
    errors = failures(cluster, function, *args)
    assert set(errors) == {0, 1}
    assert all(text in error for error in errors.values()), errors
    assert still_works(cluster)


WRONG = [
    ("kv.pull('x', out)", "'x' is not initialised"),
    ("kv.push('x', out)", "'x' is not initialised"),
    ("kv.init('w', out)", "'w' is initialised already"),
    ("kv.push('w', np.zeros(4))", 'must have shape (3,); it was (4,)'),
    ("kv.push('w', out.astype('float64'))", 'float32'),
    ("kv.pushpull('w', np.zeros(4))", "value for key 'w' must have shape"),
    ("kv.set_optimizer('sgd')", 'must be one of mx.optimizer'),
    ("kv.set_updater(3)", 'must be a function'),
    ("kv.set_gradient_compression({'type': '2bit'})",
     "before init; there is key 'w' already"),
    ("kv.push('w', out, priority='high')", "priority must be a whole number"),
    ("kv.save_optimizer_states('file')", 'the servers keep the state'),
    ("import pickle; pickle.dumps(kv)", 'a store cannot leave its worker'),
    ("mx.kvstore.base.create('dist_synk')", "kind must be 'dist_sync' or"),
    ("mx.kv.create('dist_synk')", "kind must be 'dist_sync' or")]


def refused(calls, **names):
    """What each of these calls is refused with."""
    said = []
    for call in calls:
        try:
            exec(call, {'mx': mx, 'np': np} | names)
        except Exception as error:
            said.append(f'{type(error).__name__}: {error}')
        else:
            said.append('nothing')
    return said


def check_words(cases, said):
    assert len(said) == len(cases)
    for (call, text), words in zip(cases, said):
        assert text in words, (call, words)


def test_calls_that_are_wrong_on_both_workers(cluster):
    """Afterwards, the same store works."""
    def go(calls):
        kv, out = fresh()
        said = refused(calls, kv=kv, out=out)
        kv.push('w', np.ones(3) * kv.rank)
        kv.pull('w', out)
        return said, out.tolist()
    for said, out in cluster.run(go, [call for call, _ in WRONG]):
        check_words(WRONG, said)
        assert out == [1.0] * 3
    assert still_works(cluster)


def test_a_store_that_is_closed(cluster):
    def go():
        kv, out = fresh()
        kv.close()
        kv.push('w', out)
    both(cluster, 'this store is closed', go)


def test_a_push_to_an_asynchronous_store_without_optimizer(cluster):
    def go():
        kv, out = fresh('dist_async')
        kv.push('w', out)
    both(cluster, 'call set_optimizer first', go)


DISAGREE = [
    (("kv.init('a', x)", "kv.init('b', x)"),
     "worker 1 has not called init('a', shape (3,))"),
    (("kv.init(['a', 'b'], [x, x])", "kv.init(['b', 'a'], [x, x])"),
     "waiting in init('b', shape (3,), 'a', shape (3,))"),
    (("kv.set_optimizer(mx.optimizer.SGD())",
      "kv.set_optimizer(mx.optimizer.Adam())"),
     'worker 1 has not called set_optimizer(SGD)'),
    (("mx.kv.create('dist_sync')", "kv.barrier()"),
     'worker 1 has not called close()'),
    (("kv.push('w', x); kv.push('w', x)", "kv.init('a', x)"),
     "worker 1 has not pushed 'w'")]


def test_workers_that_disagree_are_told_at_once(cluster):
    def go(cases):
        said = []
        for calls in cases:
            kv, x = fresh()
            said += refused([calls[kv.rank]], kv=kv, x=x)
        return said
    start = time.monotonic()
    first, second = cluster.run(go, [calls for calls, _ in DISAGREE])
    assert time.monotonic() - start < HANGS
    check_words(DISAGREE, first)
    assert all(words.startswith('StoreError: ') for words in first + second)
    assert still_works(cluster)


ALONE = [
    ("kv.init('a', x)", "worker 1 has not called init('a', shape (3,))"),
    ("kv.push('w', x); kv.pull('w', x)", "worker 1 has not pushed 'w'"),
    ("kv.barrier()", 'worker 1 has not called barrier()'),
    ("mx.kv.create('dist_async')", 'worker 1 has not called close()')]


def test_a_call_that_only_one_worker_makes(cluster):
    """Each begins with a new store, so the one before still worked."""
    def go(call):
        kv, x = fresh()
        if kv.rank == 0:
            exec(call, {'kv': kv, 'x': x, 'mx': mx})
    for call, text in ALONE:
        errors = failures(cluster, go, call)
        assert set(errors) == {0} and text in errors[0], (call, errors)
        assert 'idle for' in errors[0]
    assert still_works(cluster)


def test_a_missing_push_can_be_made_up_for(cluster):
    cluster.run(execute, 'from test_diststore import fresh, np')
    cell = ("kv, out = fresh()\nif kv.rank == 0:\n    kv.push('w', "
            "np.ones(3))\n    kv.pull('w', out)")
    with pytest.raises(WorkerError) as error:
        cluster.run(execute, cell)
    assert "worker 1 has not pushed 'w'" in str(error.value)
    cluster.run(execute, "if kv.rank == 1:\n    kv.push('w', np.ones(3))\n"
                "kv.pull('w', out)\nseen = out.tolist()")
    assert cluster.view['seen'] == [[2.0] * 3] * 2


def test_one_worker_fails_while_the_other_waits_for_it(cluster):
    def go():
        kv, out = fresh()
        if kv.rank == 1:
            raise ZeroDivisionError('on purpose')
        kv.push('w', out)
        kv.pull('w', out)
    errors = failures(cluster, go)
    assert errors[1] == 'ZeroDivisionError: on purpose'
    assert 'failed with ZeroDivisionError: on purpose' in errors[0]
    assert still_works(cluster)


def test_an_optimizer_that_the_servers_cannot_load(cluster):
    def go():
        def fail():
            raise ImportError('no such module here')

        class Unloadable(mx.optimizer.SGD):
            def __reduce__(self):
                return fail, ()
        kv, _ = fresh()
        kv.set_optimizer(Unloadable())
    both(cluster, 'server 0: ImportError: no such module here', go)


def test_an_update_that_fails_is_reported_to_the_workers(cluster):
    def go():
        kv, out = fresh()

        def update(key, gradient, value):
            raise KeyError('on the server')
        kv.set_updater(update)
        kv.push('w', out)
        kv.pull('w', out)
    both(cluster, "could not update, so the value stayed as it was", go)


def test_an_optimizer_that_is_wrong_is_reported_by_the_first_pull(cluster):
    def go():
        kv, out = fresh()
        kv.set_optimizer(mx.optimizer.SGD(learning_rate='fast'))
        kv.pull('w', out)  # before the first update: it proves nothing
        kv.push('w', out)
        kv.pull('w', out)
    both(cluster, 'could not update, so the value stayed as it was', go)


def test_a_pull_waits_for_the_one_before_of_its_key(cluster):
    """So a worker that does not wait cannot run ahead for ever.

    It does so first: what it then asks for may go into the same arrays.
    """
    def go():
        kv, last = fresh()
        kv.init('v', last)
        waited, wait = [], mx.nd.NDArray.wait_to_read
        mx.nd.NDArray.wait_to_read = lambda array: waited.append(array)
        outs, counts = [np.zeros(3) for _ in range(4)], []
        try:
            for key, out in zip('wvwv', outs):
                kv.push(key, np.ones(3))
                kv.pull(key, out, wait=False)
                counts.append(len(waited))
            kv.pull('w', last)
        finally:
            mx.nd.NDArray.wait_to_read = wait
        sums = [float(out.sum()) for out in outs]
        for number, out in enumerate([*outs, last]):
            out[:] = number  # `waited` has the same arrays, of MXNet's kind
        return counts, [float(array[0].asscalar()) for array in waited], sums
    assert cluster.run(go) == [
        ([0, 0, 1, 2], [0, 1, 2, 4], [6.0] * 4)] * 2


def test_an_update_that_failed_last_is_reported_by_close_only(cluster):
    def go(close):
        kv, out = fresh()

        def update(key, gradient, value):
            raise KeyError('on the server')
        kv.set_updater(update)
        kv.push('w', out)
        if close:
            kv.close()
    both(cluster, 'could not update', go, True)
    cluster.run(go, False)
    assert still_works(cluster)


@pytest.mark.full
def test_two_threads_in_a_worker(cluster):
    """MXNet's store and the cluster's questions are for one at a time."""
    def go():
        from threading import Thread
        kv, out = fresh()
        if kv.rank == 1:
            time.sleep(4)  # now worker 0's first thread waits in its pull
            kv.pushpull('w', np.ones(3), out=out)
            return out.tolist()
        first = Thread(target=kv.pushpull, args=['w', np.ones(3), out])
        first.start()
        time.sleep(1)
        try:
            kv.barrier()
        except RuntimeError as error:
            first.join()
            return str(error)
    text, second = cluster.run(go)
    assert 'another thread of this worker' in text and second == [2.0] * 3


def test_a_process_that_is_forked_from_a_worker(cluster):
    def go():
        import os
        kv, out = fresh()
        child = os.fork()
        if not child:
            try:
                kv.pushpull('w', np.ones(3))
            except RuntimeError as error:
                os._exit(7 if 'forked' in str(error) else 8)
            os._exit(9)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        kv.pushpull('w', np.ones(3), out=out)
        return code, out.tolist()
    assert cluster.run(go) == [(7, [2.0] * 3)] * 2


def test_ctrl_c_waits_until_a_push_is_sent():
    import os
    import signal
    from d2lps.cluster.store.client import defer_sigint
    seen = []
    with pytest.raises(KeyboardInterrupt):
        with defer_sigint():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            seen.append('sent')
    assert seen == ['sent']
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

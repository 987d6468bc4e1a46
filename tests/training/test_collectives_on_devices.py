"""Schedules that run on MXNet's devices."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lps.collectives import execute
from d2lps.collectives import strategies as sch
from plans import BY_N, some_run


@pytest.fixture(scope='module')
def mx():
    import mxnet as mx
    before = mx.util.is_np_shape(), mx.util.is_np_array()
    mx.npx.set_np()
    yield mx
    mx.npx.set_np(*before)


@given(st.data())
def test_run_on_mxnet_devices(mx, data):
    schedule, op, rows, want = data.draw(some_run())
    places = data.draw(st.lists(st.integers(0, 8), min_size=len(rows),
                                max_size=len(rows)))
    arrays = [mx.np.array(row, dtype=row.dtype, ctx=mx.cpu(k))
              for row, k in zip(rows, places)]
    for _ in range(2):
        for array, row in zip(arrays, rows):
            if row.size:
                array[()] = mx.np.array(row, dtype=row.dtype)
        schedule.run(arrays, op=op)
        for array, k in zip(arrays, places):
            assert array.ctx == mx.cpu(k)
            np.testing.assert_array_equal(array.asnumpy(), want)


@pytest.mark.parametrize('name', ['logaddexp', 'logical_or'])
def test_run_on_mxnet_with_its_own_functions(mx, name):
    def op(a, b):
        if name == 'logical_or':
            return a + b > 0  # an array of bool
        high = mx.np.maximum(a, b)
        return high + mx.np.log1p(mx.np.exp(-mx.np.abs(a - b)))
    rows = np.random.default_rng(0).integers(0, 2, (4, 9)).astype('float32')
    schedule = sch.ring(4)
    for reduce, want in ((op, getattr(np, name).reduce(rows)),
                         (np.add, rows.sum(0))):  # with the same buffers
        arrays = [mx.np.array(row, ctx=mx.cpu(k))
                  for k, row in enumerate(rows)]
        schedule.run(arrays, op=reduce)
        for array in arrays:
            np.testing.assert_allclose(array.asnumpy(), want, rtol=1e-5)


def test_run_on_devices_that_cannot_read_each_other(mx, monkeypatch):
    # As between GPUs: code works on arrays of its own context only.
    def op(a, b):
        assert a.ctx == b.ctx
        return a + b
    monkeypatch.setattr(execute, '_shares_memory', lambda a, b: a == b)
    for make in BY_N.values():
        arrays = [mx.np.full(11, k, ctx=mx.cpu(k)) for k in range(5)]
        make(5).run(arrays, op=op)
        assert all((array == 10).all() for array in arrays)


def test_run_does_not_wait(mx, monkeypatch):
    arrays = [mx.np.ones((100, 7), ctx=mx.cpu(k)) for k in range(4)]
    with monkeypatch.context() as patch:
        for name in 'wait_to_read', 'asnumpy', 'asscalar':
            patch.setattr(mx.nd.NDArray, name, None)
        for make in BY_N.values():
            make(4).run(arrays)
    assert (arrays[0] == 4 ** len(BY_N)).all()


def test_numpy_and_mxnet_arrays_do_not_mix(mx):
    for arrays in ([np.ones(2, 'f'), mx.np.ones(2)],
                   [mx.np.ones(2), np.ones(2, 'f')]):
        with pytest.raises(ValueError, match='arrays.1. is (mxnet|numpy).*and '
                           'arrays.0. (numpy|mxnet).*of one kind'):
            sch.ring(2).run(arrays)
        assert [float(array.sum()) for array in arrays] == [2, 2]

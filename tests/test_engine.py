"""The engine's settings, devices, and the count of what they copy."""
import platform
import sys
import threading

import numpy as onp
import pytest
from mxnet import np

import d2lps
from d2lps import engine
from d2lps.engine import mx
from d2lps.missing import NoMXNet
from d2lps.settings import SETTINGS

# Instead of MXNet's start: what it would read.
SPY = f'''
import os, sys
class Spy:
    def find_spec(name, *_):
        if name == 'mxnet':
            print(*(os.environ.get(s) for s in {list(SETTINGS)}))
            sys.exit()
sys.meta_path.insert(0, Spy)
import d2lps
from d2lps import devices
print('MXNet was not imported')
'''


def test_settings_are_made_before_mxnet_is_imported(python):
    done = python('-c', SPY)
    assert done.stdout.split() == ['1', '64']
    assert done.stderr == ''


def test_settings_of_the_user_are_kept(python):
    done = python('-c', SPY, OMP_NUM_THREADS='1', MXNET_CPU_TEMP_COPY='16')
    assert done.stdout.split() == ['1', '16']
    assert done.stderr == ''


@pytest.mark.parametrize('setting', SETTINGS)
@pytest.mark.parametrize('value', ['0', '1,1', '9' * 12])
def test_a_setting_that_would_crash_mxnet_is_refused(python, setting, value):
    done = python('-c', SPY, **{setting: value})
    assert done.returncode == 1
    assert done.stdout == ''  # before MXNet is looked for
    assert done.stderr.splitlines()[-1].startswith(
        f'ImportError: {setting} is {value!r}, and MXNet would crash: ')


def test_what_needs_no_mxnet_runs_with_such_a_setting(python):
    done = python('-m', 'd2lps', 'server', '--help', OMP_NUM_THREADS='1,1')
    assert done.returncode == 0 and done.stdout.startswith('usage: ')
    assert "OMP_NUM_THREADS is '1,1', and MXNet would crash" in done.stderr


@pytest.mark.parametrize('setting, value', [
    ('OMP_NUM_THREADS', '2'), ('MXNET_CPU_TEMP_COPY', '4'),
    ('MXNET_CPU_TEMP_COPY', '1')])
def test_a_dangerous_setting_is_warned_of(python, setting, value):
    done = python('-c', 'import d2lps', **{setting: value})
    assert done.returncode == 0
    assert done.stderr.count('UserWarning') == 1
    assert f'{setting} is {value!r}' in done.stderr
    assert 'restart Python' in done.stderr


@pytest.mark.parametrize('system, machine, advice', [
    ('linux', 'x86_64', 'make lab'), ('win32', 'AMD64', 'WSL 2'),
    ('darwin', 'arm64', 'docker compose up'),
    ('darwin', 'x86_64', 'make lab')])
def test_missing_mxnet_gives_one_line_of_advice(
        monkeypatch, system, machine, advice):
    with monkeypatch.context() as m:
        m.setattr(sys, 'platform', system)
        m.setattr(platform, 'machine', lambda: machine)
        words = str(NoMXNet('it is not there'))
    assert 'd2lps needs mxnet 1.9.1 (it is not there)' in words
    assert advice in words and '\n' not in words


def test_a_missing_system_library_is_named(python, tmp_path):
    """libgomp.so.1, say, which a minimal Linux lacks: not an ImportError."""
    (tmp_path / 'mxnet.py').write_text(
        "import ctypes; ctypes.CDLL('libnowhere.so.1')")
    done = python('-c', 'from d2lps import devices')
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert 'd2lps needs mxnet 1.9.1 (libnowhere.so.1: ' in last
    assert 'make lab' in last


def test_devices_are_gpus_if_there_are_enough(monkeypatch):
    monkeypatch.setattr(engine.npx, 'num_gpus', lambda: 2)
    assert d2lps.devices(2) == [mx.gpu(0), mx.gpu(1)]
    assert d2lps.devices(3) == [mx.cpu(0), mx.cpu(1), mx.cpu(2)]


def using_two(devices):
    """(what refuses two devices, a call) for each function that uses two."""
    X, y = np.ones((4, 1, 28, 28)), np.ones(4, dtype='int32')
    copies = [d2lps.get_params(d2lps.init_params(), one) for one in devices]
    return [('n', lambda: d2lps.devices(2)),
            ('num_devices', lambda: d2lps.train(2, 64, 0.1, 1)),
            ('devices', lambda: d2lps.Timeline(devices)),
            ('devices', lambda: d2lps.train_batch(X, y, copies, devices, 0.1)),
            ('data', lambda: d2lps.allreduce([
                np.ones(1, ctx=one) for one in devices]))]


@pytest.mark.parametrize('threads, words', [
    (2, 'OMP_NUM_THREADS is 2'), (None, 'mxnet was imported before d2lps')])
def test_two_cpu_devices_of_several_threads_are_refused(
        monkeypatch, threads, words):
    monkeypatch.setattr(engine, 'THREADS', threads)
    monkeypatch.setattr(engine.npx, 'num_gpus', lambda: 0)
    both = [mx.cpu(0), mx.cpu(1)]
    for name, call in using_two(both):
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value).startswith(
            f'{name}: {words}, and a matrix product')
        assert 'unset OMP_NUM_THREADS' in str(error.value)
    assert d2lps.devices(1) == both[:1] and d2lps.copy_bandwidth(4000) > 0


LATE = """
import mxnet
import d2lps
print(d2lps.engine.THREADS)
"""


@pytest.mark.full
def test_who_imports_mxnet_first_is_told_in_which_line(python, tmp_path):
    (tmp_path / 'mine.py').write_text(LATE)
    done = python('mine.py')
    assert done.stdout == 'None\n'
    assert done.stderr.count('UserWarning') == 1
    assert ('mine.py:3: UserWarning: mxnet was imported before d2lps'
            in done.stderr)


def test_devices_are_limited():
    assert len(d2lps.devices(1024)) == 1024
    with pytest.raises(ValueError, match='n must be .* from 1 to 1,024'):
        d2lps.devices(10 ** 9)


NO_ARRAYS = [None, 2.5, [], onp.ones(3), mx.nd.ones(3)]


@pytest.mark.parametrize('check, good, bad', [
    (engine.array, np.ones(3), NO_ARRAYS),
    (engine.array_list, [np.ones(3)], [*NO_ARRAYS, [None], np.ones(3)]),
    (engine.device, mx.cpu(3), [*NO_ARRAYS, mx.cpu(-1), mx.cpu(2000),
                                mx.gpu(engine.npx.num_gpus())]),
    (engine.device_list, [mx.cpu()], [*NO_ARRAYS, [mx.cpu(), 1], mx.cpu()])])
def test_checks_of_arrays_and_devices(check, good, bad):
    assert repr(check('here', good)) == repr(good)
    for value in bad:
        with pytest.raises(ValueError, match='^here'):
            check('here', value)


def test_nbytes():
    with pytest.raises(ValueError, match='array must be an MXNet array'):
        d2lps.nbytes([1, 2])
    assert d2lps.nbytes(np.zeros((3, 5), dtype='float32')) == 60
    assert d2lps.nbytes(np.zeros(7, dtype='uint8')) == 7


def test_traffic_counts_bytes_copies_and_links():
    a, b, c = d2lps.devices(3)
    x = np.zeros((2, 5), dtype='float32', ctx=a)
    y = np.zeros((2, 5), dtype='float32', ctx=b)
    with d2lps.Traffic() as traffic:
        x.copyto(y)
        x.as_in_ctx(c)
        y.copyto(a)
        x.astype('float64').copyto(b)
    assert traffic.copies == 4
    assert traffic.bytes == 40 + 40 + 40 + 80
    assert traffic.links == {('cpu(0)', 'cpu(1)'): 120,
                             ('cpu(0)', 'cpu(2)'): 40,
                             ('cpu(1)', 'cpu(0)'): 40}


def test_traffic_blocks_may_overlap():
    a, b = d2lps.devices(2)
    x = np.zeros(1, dtype='float32', ctx=a)
    first, second = d2lps.Traffic(), d2lps.Traffic()
    first.__enter__()
    x.copyto(b)
    second.__enter__()
    x.copyto(b)
    first.__exit__(None, None, None)
    x.copyto(b)
    second.__exit__(None, None, None)
    assert (first.copies, second.copies) == (2, 2)
    assert mx.np.ndarray.copyto is d2lps.Traffic._copyto


def test_traffic_counts_from_zero_in_each_block():
    a, b = d2lps.devices(2)
    traffic, x = d2lps.Traffic(), np.zeros(1, dtype='float32', ctx=a)
    for _ in range(2):
        with traffic:
            x.copyto(b)
            with pytest.raises(RuntimeError, match='counting already'):
                traffic.__enter__()
        assert traffic.links == {('cpu(0)', 'cpu(1)'): 4}
        assert (traffic.bytes, traffic.copies) == (4, 1)


LEFT = '''
import d2lps
import mxnet as mx
devices, keys, ends = d2lps.devices(2), range(8), []
for kind in ['local', 'device'] * 20:
    values = [[mx.np.ones(100_000, ctx=device) for device in devices]
              for _ in keys]
    store = mx.kv.create(kind)  # and leave the one before it
    store.init([*keys], [array.copy() for array, _ in values])
    for _ in range(3):
        store.push([*keys], values)
    store.pull([*keys], out=values)
    ends += values[-1]
print({float(array.sum()) for array in ends})
'''


@pytest.mark.full
def test_a_store_that_is_left_still_ends_its_sums(python):
    done = python('-c', LEFT)
    assert done.stdout == '{200000.0}\n', done


def test_a_busy_machine_does_not_change_the_copy_bandwidth(monkeypatch):
    # The first copy does not count, nor those that others slowed down.
    monkeypatch.setattr(d2lps.engine.timeit, 'repeat',
                        lambda *args, **more: [0.01, 9.0, 0.5, 8.0, 7.0])
    assert d2lps.copy_bandwidth(4000, 4) == 4000 / 0.5


def test_more_devices_than_threads_may_be_started(monkeypatch):
    """By itself, MXNet raises an error, and Python never ends."""
    start, number = threading.Thread.start, threading.active_count()

    def limited(thread):
        if threading.active_count() - number >= 30:
            raise RuntimeError("can't start new thread")
        start(thread)
    monkeypatch.setattr(engine, '_threads_seen', [0])
    monkeypatch.setattr(threading.Thread, 'start', limited)
    for _ in range(2):
        with pytest.raises(OSError, match='500 CPU devices need .* more '
                           'threads, and only 30 can be started: use fewer'):
            d2lps.devices(500)
        assert threading.active_count() == number
    assert len(d2lps.devices(20)) == 20

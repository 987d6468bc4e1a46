"""Whatever happens while a checkpoint is written, a good one stays."""
import io
import json
import os
import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as onp
import pytest
from d2lps.engine import mx
from d2lps.recovery import Checkpoint, CheckpointError, file

np = mx.np


def a_state(step):
    """Arrays of many kinds, and of a value that tells the step."""
    return {'params': [onp.full((2, 3), step, 'float32'), onp.arange(4)],
            'nothing': None, 'lr': 0.1 * step, 'words': ['ä', {'array': 0}],
            'random': onp.random.default_rng(step).bit_generator.state}


def same(found, step):
    """Is what was loaded the state of this step, all of it?"""
    number, state = found
    expected = a_state(step)
    arrays = [*zip(state.pop('params'), expected.pop('params'))]
    assert all(map(onp.array_equal, *zip(*arrays)))
    return number == step and state == expected


@pytest.fixture
def saved(tmp_path):
    """A folder with the checkpoints of steps 1 to 3, and of no writer."""
    with Checkpoint(tmp_path / 'made' / 'anew') as c:
        for step in 1, 2, 3:
            c.save(step, a_state(step))
    return c.folder


def path_of(folder, step):
    return folder / f'step-{step:08d}.checkpoint'


# What is saved comes back.

@pytest.mark.parametrize('value', [
    True, 10 ** 40, float('inf'), 'ä\ud800\n', None, [[1, [2.5, 'x']], {}],
    {'': {'dict': 1, 'array': 7}}, onp.zeros((0, 3), 'float16'),
    onp.arange(6, dtype='>i2')[::-2], onp.asfortranarray(onp.ones((2, 3)))],
    ids=lambda value: repr(value)[:20])
def test_a_value_comes_back_as_it_was(tmp_path, value):
    c = Checkpoint(tmp_path)
    c.save(7, {'value': [value]})
    step, state = c.load()
    [found] = state['value']
    assert step == 7 and type(found) is type(value)
    if isinstance(value, onp.ndarray):
        assert (found.dtype, found.shape) == (value.dtype, value.shape)
        assert found.tobytes() == value.tobytes() and found.flags.writeable
    else:
        assert found == value


def circle():
    one = []
    one.append(one)
    return one


@pytest.mark.parametrize('value', [
    object(), onp.array([object()]), onp.ma.array([1]), circle()],
    ids=lambda value: repr(value)[:20])
def test_what_cannot_be_kept_is_refused_and_nothing_written(saved, value):
    with pytest.raises(ValueError, match=r"state\S* must"):
        Checkpoint(saved).save(4, {'x': value})
    assert same(Checkpoint(saved).load(), 3)
    assert {*os.listdir(saved)} == {'lock', *(
        path_of(saved, step).name for step in (1, 2, 3))}


def test_the_last_few_are_kept(saved):
    with Checkpoint(saved, keep=2) as c:
        for step in 5, 8, 8:
            c.save(step, a_state(step))
    assert sorted(path.name for path in saved.glob('step*')) == [
        path_of(saved, step).name for step in (5, 8)]


def test_a_file_can_be_taken_apart_without_us(saved):
    with onp.load(path_of(saved, 2)) as entries:
        assert json.loads(entries['state'].tobytes())['step'] == 2
        assert entries['arr_0'].tolist() == [[2, 2, 2], [2, 2, 2]]
        assert entries['arr_1'].tolist() == [0, 1, 2, 3]


# Damaged and foreign files: the previous checkpoint is loaded.

def assert_the_one_before(folder, why):
    with pytest.warns(UserWarning, match=rf'step-0*3\.\S+ is skipped: .*'
                      rf'{why}'):
        assert same(Checkpoint(folder).load(), 2)


def test_a_changed_bit_is_noticed_or_changes_nothing(tmp_path):
    with Checkpoint(tmp_path) as c:
        c.save(3, {'x': [1, onp.ones(2, 'uint8')]})
    good = path_of(tmp_path, 3).read_bytes()
    for place in range(len(good)):
        bad = bytearray(good)
        bad[place] ^= 1 << place % 8
        try:
            step, state = file.from_bytes(bytes(bad))
        except ValueError as error:
            assert 'damaged' in str(error)
        else:  # it was a date, for example
            assert step == 3 and state['x'][1].tolist() == [1, 1]
            assert state['x'][1].dtype == 'uint8' and state['x'][0] == 1
    for end in range(len(good)):
        with pytest.raises(ValueError, match='damaged'):
            file.from_bytes(good[:end])


def forged(tree, *arrays):
    """A file whose checksums fit, whatever is in it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, 'w') as archive:
        state = io.BytesIO()
        onp.save(state, onp.frombuffer(json.dumps(tree).encode(), 'uint8'))
        archive.writestr('state.npy', state.getvalue())
        for k, array in enumerate(arrays):
            archive.writestr(f'arr_{k}.npy', array)
    return content.getvalue()


FIRST = {'__array__': 0}


class Runs:
    """A pickle that would run something."""

    def __reduce__(self):
        return os.mkdir, ('hacked',)


def objects():
    content = io.BytesIO()
    onp.save(content, onp.array([Runs()]), allow_pickle=True)
    return content.getvalue()


@pytest.mark.parametrize('content, why', [
    (b'', 'damaged, or no checkpoint'), (pickle.dumps(Runs()), 'no ch'),
    (forged({'step': 9, 'state': {}}), 'of step 9, renamed'),
    (forged({'step': 3, 'state': 1}), 'damaged'),
    (forged({'step': 3, 'state': {'x': FIRST}}, objects()), 'damaged'),
    (forged({'step': 3, 'state': {'x': FIRST}}, onp.lib.format.magic(1, 0)
            + b'\x76\0' + (b"{'descr': '<f8', 'fortran_order': False, "
                           b"'shape': (9999999999999999,), }").ljust(117)
            + b'\n'), 'damaged'),
    (forged(json.loads('[' * 900 + ']' * 900)), 'damaged')])
def test_what_is_no_checkpoint_is_left_out(saved, content, why, monkeypatch):
    monkeypatch.chdir(saved)
    path_of(saved, 3).write_bytes(content)
    assert_the_one_before(saved, why)
    assert not (saved / 'hacked').exists()
    with pytest.warns(UserWarning), Checkpoint(saved, keep=1) as c:
        c.load()
        c.save(3, a_state(3))
    assert same(Checkpoint(saved).load(), 3)
    damaged = path_of(saved, 3).with_suffix('.checkpoint.damaged')
    assert damaged.read_bytes() == content  # perhaps it was good after all


def test_damaged_ones_do_not_push_out_the_good(saved):
    for step in 2, 3:
        path_of(saved, step).write_bytes(b'')
    with Checkpoint(saved, keep=2) as c:
        c.save(4, a_state(4))
    path_of(saved, 4).write_bytes(b'')  # and this goes bad, too
    with pytest.warns(UserWarning, match='checkpoint of step 1 is loaded'):
        assert same(Checkpoint(saved).load(), 1)
    path_of(saved, 1).write_bytes(b'')
    with pytest.warns(UserWarning, match='step-0*1.* No good ch'):
        assert Checkpoint(saved).load() is None


# Another network, another order.

def test_another_network_is_an_error(saved):
    c = Checkpoint(saved)
    assert same(c.load(like=[np.zeros((2, 3)), onp.zeros(4)]), 3)
    for like in ([np.zeros((2, 3))], [np.zeros((3, 2)), np.zeros(4)]):
        with pytest.raises(ValueError, match='^like .* another network'):
            c.load(like=like)
    c.save(4, {'params': 3})
    with pytest.raises(ValueError, match='^like .* another network'):
        c.load(like=[np.zeros(4)])


def test_an_earlier_one_can_be_loaded(saved):
    c = Checkpoint(saved)
    assert same(c.load(at_most=2), 2) and c.load(at_most=0) is None


def test_no_step_back_over_a_good_one(saved):
    with Checkpoint(saved) as c:
        with pytest.raises(ValueError, match='^step must be at least 3'):
            c.save(2, a_state(2))
    assert same(Checkpoint(saved).load(), 3)


# Two at once.

def test_two_cannot_write_at_once(saved):
    with Checkpoint(saved) as c:
        c.save(4, a_state(4))
        other = Checkpoint(saved)
        with pytest.raises(CheckpointError, match=(
                rf'in use .*process {os.getpid()} on ')):
            other.save(5, a_state(5))
        assert same(other.load(), 4)  # everybody may read
    other.save(5, a_state(5))
    del other  # and nobody need close it
    Checkpoint(saved).save(6, a_state(6))


def test_threads_of_one_training_take_turns(saved):
    with Checkpoint(saved) as c, ThreadPoolExecutor(3) as pool:
        for step in range(4, 40):
            state = a_state(step)
            assert [*pool.map(c.save, [step] * 3, [state] * 3)] == [None] * 3
        assert same(c.load(), 39)
    assert not [*saved.glob('*.damaged')]


def test_a_fork_is_another_training(saved):
    with Checkpoint(saved) as c:
        c.save(4, a_state(4))
        pid = os.fork()
        if not pid:
            code = 1
            try:
                c.save(5, a_state(5))
            except CheckpointError:
                code = 7
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        c.save(5, a_state(5))
    assert same(Checkpoint(saved).load(), 5)


# Folders that cannot be written.

def test_a_file_is_no_folder(tmp_path):
    (tmp_path / 'file').write_text('')
    for path in tmp_path / 'file', tmp_path / 'file' / 'inside':
        with pytest.raises(ValueError, match='^folder must be'):
            Checkpoint(path)


def test_a_disk_that_takes_a_part_only(saved, monkeypatch):
    whole = os.write
    monkeypatch.setattr(os, 'write', lambda fd, content: whole(
        fd, content[:7]))
    with Checkpoint(saved) as c:
        c.save(4, a_state(4))
    assert same(Checkpoint(saved).load(), 4)

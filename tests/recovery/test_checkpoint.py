"""Whatever happens while a checkpoint is written, a good one stays."""
import io
import itertools
import json
import os
import pickle
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor

import numpy as onp
import pytest
from d2lps.engine import mx
from d2lps.kvstore import KVStore
from d2lps.recovery import (Checkpoint, CheckpointError, file,
                            train_with_checkpoints)

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
    object(), {1: 2}, onp.array([object()]), onp.ma.array([1]), circle()],
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
    head, checksum, body = path_of(saved, 2).read_bytes().split(b'\n', 2)
    tree, arrays = body.split(b'\n', 1)
    assert head == b'd2lps checkpoint, format 1' and len(checksum) == 64
    assert json.loads(tree)['step'] == 2
    arrays = io.BytesIO(arrays)
    assert onp.load(arrays).tolist() == [[2, 2, 2], [2, 2, 2]]
    assert onp.load(arrays).tolist() == [0, 1, 2, 3]


# Damaged and foreign files: the previous checkpoint is loaded.

def assert_the_one_before(folder, why):
    with pytest.warns(UserWarning, match=rf'step-0*3\.\S+ is skipped: .*'
                      rf'{why}'):
        assert same(Checkpoint(folder).load(), 2)


def test_every_bit_counts(tmp_path):
    with Checkpoint(tmp_path) as c:
        c.save(3, {'x': [1, onp.ones(2, 'uint8')]})
    good = path_of(tmp_path, 3).read_bytes()
    file.parsed(good)
    for place, bit in itertools.product(range(len(good)), range(8)):
        bad = bytearray(good)
        bad[place] ^= 1 << bit
        with pytest.raises(ValueError, match='damaged'):
            file.parsed(bytes(bad))
    for end in range(len(good)):
        with pytest.raises(ValueError, match='damaged'):
            file.parsed(good[:end])


def forged(tree, arrays=b'', version=1):
    """A file with a checksum that fits, whatever is in it."""
    head = b'd2lps checkpoint, format %d\n' % version
    body = json.dumps(tree).encode() + b'\n' + arrays
    return head + file.checksum(head, body) + b'\n' + body


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
    (forged({'step': 3, 'state': {'dict': {}}}) + b' ', 'checksum'),
    (forged({'step': 9, 'state': {'dict': {}}}), 'of step 9, renamed'),
    (forged({'step': 3, 'state': {'x': 1}}), 'no state'),
    (forged({'step': 3, 'state': {'array': 0}}, objects()), 'no state'),
    (forged({'step': 3, 'state': {'array': 0}}, pickle.dumps(Runs())),
     'no state'),
    (forged({'step': 3, 'state': {'array': 0}}, onp.lib.format.magic(1, 0)
            + b'\x76\0' + (b"{'descr': '<f8', 'fortran_order': False, "
                           b"'shape': (9999999999999999,), }").ljust(117)
            + b'\n'), 'no state'),
    (forged(json.loads('[' * 900 + ']' * 900)), 'no state')])
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


@pytest.mark.parametrize('kind', ['symlink', 'folder', 'pipe'])
def test_what_is_no_file_is_left_out(saved, tmp_path, kind):
    elsewhere = tmp_path / 'elsewhere'
    path_of(saved, 3).rename(elsewhere)
    {'symlink': lambda path: path.symlink_to(elsewhere),
     'folder': os.mkdir, 'pipe': os.mkfifo}[kind](path_of(saved, 3))
    assert_the_one_before(saved, '')
    with Checkpoint(saved) as c:
        c.save(3, a_state(3))
    assert same(Checkpoint(saved).load(), 3)
    assert elsewhere.exists()


def test_a_link_in_place_of_what_is_written_is_not_followed(saved, tmp_path):
    mine = tmp_path / 'mine'
    mine.write_text('mine')
    path_of(saved, 4).with_suffix('.checkpoint.tmp').symlink_to(mine)
    with Checkpoint(saved) as c:
        c.save(4, a_state(4))
    assert mine.read_text() == 'mine'
    assert same(Checkpoint(saved).load(), 4)


def test_files_of_other_users_are_left_out(saved, monkeypatch):
    """Unless they own the folder, too, as seen from inside a container."""
    uid = os.geteuid()
    monkeypatch.setattr(os, 'geteuid', lambda: uid + 1)
    assert same(Checkpoint(saved).load(), 3)
    fstat = os.fstat

    def of_another(fd):
        found = list(fstat(fd))
        found[4] = uid + 2
        return os.stat_result(found)
    monkeypatch.setattr(os, 'fstat', of_another)
    with pytest.warns(UserWarning, match='belongs to another user'):
        assert Checkpoint(saved).load() is None


def test_damaged_ones_do_not_push_out_the_good(saved):
    for step in 2, 3:
        path_of(saved, step).write_bytes(b'')
    with Checkpoint(saved, keep=2) as c:
        c.save(4, a_state(4))
    path_of(saved, 4).write_bytes(b'')  # and this goes bad, too
    with pytest.warns(UserWarning):
        assert same(Checkpoint(saved).load(), 1)


# Another format, another network, another order.

def test_a_newer_format_is_an_error_and_stays(saved):
    newer = forged({'step': 3, 'what': 'is new'}, version=2)
    path_of(saved, 3).write_bytes(newer)
    for call in (lambda c: c.load(), lambda c: c.save(3, {}),
                 lambda c: c.save(9, {})):
        with Checkpoint(saved) as c, pytest.raises(CheckpointError, match=(
                'has format 2, and this d2lps reads format 1: use the')):
            call(c)
    assert path_of(saved, 3).read_bytes() == newer


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
        # Whoever may read the file could lock it.
        assert stat.S_IMODE((saved / 'lock').stat().st_mode) == 0o600
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


@pytest.mark.parametrize('kind', ['symlink_to', 'hardlink_to', 'pipe'])
@pytest.mark.parametrize('name', ['lock', 'progress.csv'])
def test_what_others_put_there_is_not_written_to(tmp_path, name, kind):
    mine, path = tmp_path / 'mine', tmp_path / 'training' / name
    mine.write_text('mine')
    path.parent.mkdir()
    if kind == 'pipe':
        os.mkfifo(path)
    else:
        getattr(path, kind)(mine)
    with pytest.raises((OSError, ValueError), match=name):
        train_with_checkpoints(path.parent, 1, 2, store=KVStore())
    assert mine.read_text() == 'mine'


def test_a_folder_that_was_removed_and_made_anew_is_not_ours(saved):
    with Checkpoint(saved) as c, Checkpoint(saved) as other:
        c.save(4, a_state(4))
        shutil.rmtree(saved)
        with pytest.raises(FileNotFoundError, match='step 5 was not saved'):
            c.save(5, a_state(5))
        saved.mkdir()
        other.save(1, a_state(1))
        with pytest.raises(CheckpointError, match='no longer the folder'):
            c.save(5, a_state(5))
        assert same(Checkpoint(saved).load(), 1)


def test_a_huge_file_is_not_read(saved):
    with open(path_of(saved, 3), 'wb') as file:
        file.truncate(1 << 42)  # bytes, none of which is on the disk
    assert_the_one_before(saved, 'no checkpoint')


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

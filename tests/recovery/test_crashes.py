"""A crash at every call of the system while checkpoints are written.

Every call that changes something on the disk goes through `Calls`, which
counts them and ends the process at one of them: before it, after it, or half
way through a write. The tests go on to the next call until none is left.
"""
import errno
import itertools
import os
import signal
import stat

import numpy as onp
import pytest
from d2lps.recovery import Checkpoint

CALLS = 'open', 'write', 'fsync', 'replace', 'unlink', 'ftruncate', 'mkdir'


def a_state(step):
    return {'params': [onp.full(50, step, 'float32')], 'step': step}


def loaded(folder):
    """The step of what loads, after a look at whether all of it is there."""
    found = Checkpoint(folder).load()
    if found is None:
        return 0
    step, state = found
    assert state['step'] == step
    assert state['params'][0].tolist() == [step] * 50
    return step


class Calls:
    """Let `act(number, name, call, args)` stand before each call.

    Opening a file to read it is none.
    """

    def __init__(self, monkeypatch, act):
        self.number, self.act = 0, act
        for name in CALLS:
            monkeypatch.setattr(os, name, self.counted(name))

    def counted(self, name):
        call = getattr(os, name)

        def counting(*args, **kwargs):
            if name == 'open' and not args[1] & os.O_CREAT:
                return call(*args, **kwargs)
            self.number += 1
            return self.act(self.number, name, call, args, kwargs)
        return counting


class Crash(BaseException):
    """What no handler in the code expects."""


def crashing(at, when, end):
    """Call `end()` at the call number `at`, and at each that follows."""
    def act(number, name, call, args, kwargs):
        if number < at or number == at and when == 'half' and name != 'write':
            return call(*args, **kwargs)
        if number == at and when == 'after':
            call(*args, **kwargs)
        if number == at and when == 'half':
            file, content = args
            call(file, content[:len(content) // 2])
        end()  # the dead call nothing
    return act


def crash():
    raise Crash


def raising(at, error):
    """Let the call number `at` fail, and the others do what they do."""
    def act(number, name, call, args, kwargs):
        if number == at:
            raise error
        return call(*args, **kwargs)
    return act


def save(folder, done=lambda step: None):
    """Three checkpoints, of which two stay."""
    with Checkpoint(folder, keep=2) as c:
        for step in 1, 2, 3:
            c.save(step, a_state(step))
            done(step)


WHENS = 'before', 'half', 'after'


@pytest.mark.parametrize('when', WHENS)
def test_a_crash_at_every_call_leaves_the_last_good_one(tmp_path, when):
    for at in itertools.count(1):
        folder, done = tmp_path / f'{at}' / 'new', [0]
        with pytest.MonkeyPatch.context() as patched:
            calls = Calls(patched, crashing(at, when, crash))
            try:
                save(folder, done.append)
            except Crash:
                pass
        if calls.number < at:  # no call was left to crash at
            break
        if folder.exists():
            assert done[-1] <= loaded(folder) <= done[-1] + 1
            save_on(folder)
    assert at > 20 and done == [0, 1, 2, 3]


def save_on(folder):
    """A new process goes on where it was, and nothing is left behind."""
    with Checkpoint(folder, keep=2) as c:
        step = loaded(folder) + 1
        c.save(step, a_state(step))
    assert loaded(folder) == step
    names = [f'step-{one:08d}.checkpoint' for one in (step - 1, step) if one]
    assert {*os.listdir(folder)} == {'lock', *names}


@pytest.mark.full
@pytest.mark.parametrize('when', ['half'])
def test_a_process_killed_at_every_call(tmp_path, when):
    """The same with processes that really die, and their locks."""
    for at in itertools.count(1):
        folder = tmp_path / f'{at}'
        child = os.fork()
        if not child:
            try:
                Calls(pytest.MonkeyPatch(), crashing(at, when, lambda: os.kill(
                    os.getpid(), signal.SIGKILL)))
                save(folder)
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        if folder.exists():
            loaded(folder)
            save_on(folder)
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
    assert at > 20


def test_an_error_at_every_call_loses_nothing(tmp_path):
    """As a full disk makes it; then there is space again."""
    for at in itertools.count(1):
        folder, done = tmp_path / f'{at}', [0]
        with pytest.MonkeyPatch.context() as patched:
            calls = Calls(patched, raising(at, OSError(
                errno.ENOSPC, os.strerror(errno.ENOSPC))))
            try:
                save(folder, done.append)
            except OSError as error:
                assert error.errno == errno.ENOSPC
        if folder.exists():
            assert done[-1] <= loaded(folder) <= done[-1] + 1
            save_on(folder)
        if calls.number < at:
            break
    assert at > 20


def test_an_interrupted_save_can_be_repeated(tmp_path):
    c = Checkpoint(tmp_path)
    c.save(1, a_state(1))
    for at in itertools.count(1):
        with pytest.MonkeyPatch.context() as patched:
            calls = Calls(patched, raising(at, KeyboardInterrupt()))
            try:
                c.save(2, a_state(2))
            except KeyboardInterrupt:
                pass
        assert loaded(tmp_path) in (1, 2)
        c.save(2, a_state(2))
        assert loaded(tmp_path) == 2
        if calls.number < at:
            break


# What a power cut leaves: a model of a disk that does no more than it must.

class Disk:
    """What is on the disk for certain, and what may be, as files change.

    A file's bytes are certain after its fsync. A new name, a new file under
    an old name, and a name that goes are certain after an fsync of the
    folder; until then, any of them may have come to pass, or not.
    """

    def __init__(self):
        self.open = {}  # {descriptor: file}
        self.names, self.certain, self.pending = {}, {}, []

    def act(self, number, name, call, args, kwargs):
        result = call(*args, **kwargs)
        getattr(self, f'on_{name}', lambda result, *args: None)(result, *args)
        return result

    def change(self, name, file):
        self.names[name] = file
        self.pending.append((name, file))

    def on_open(self, fd, path, flags, mode=None):
        name = os.path.basename(path)
        if name not in self.names:
            self.change(name, {'now': b'', 'certain': b''})
        self.open[fd] = self.names[name]

    def on_write(self, size, fd, content):
        self.open[fd]['now'] += bytes(content[:size])

    def on_ftruncate(self, _, fd, length):
        self.open[fd]['now'] = self.open[fd]['now'][:length]

    def on_fsync(self, _, fd):
        if stat.S_ISREG(os.fstat(fd).st_mode):
            self.open[fd]['certain'] = self.open[fd]['now']
            return
        for name, file in self.pending:
            self.certain[name] = file
        self.pending = []

    def on_replace(self, _, source, target):
        file = self.names[os.path.basename(source)]
        self.change(os.path.basename(target), file)
        self.change(os.path.basename(source), None)

    def on_unlink(self, _, path):
        if os.path.basename(path) in self.names:
            self.change(os.path.basename(path), None)

    def after_a_power_cut(self):
        """All folders that there may be now: {name: bytes}."""
        for happened in itertools.product(
                (True, False), repeat=len(self.pending)):
            names = dict(self.certain)
            for (name, file), yes in zip(self.pending, happened):
                if yes:
                    names[name] = file
            files = {name: file for name, file in names.items() if file}
            for damage in (lambda file: file['certain'], lambda file:
                           file['certain'].ljust(len(file['now']), b'\0'),
                           lambda file: file['now'][:-20] + file[
                               'certain'][-20:], lambda file: file['now']):
                yield {name: damage(file) for name, file in files.items()}


def test_a_power_cut_at_every_call_leaves_the_last_good_one(tmp_path):
    disk, done, seen = Disk(), [0], {}

    class Watched(Calls):
        def counted(self, name):
            counting = super().counted(name)

            def watching(*args, **kwargs):
                look()
                result = counting(*args, **kwargs)
                look()
                return result
            return watching if name != 'open' else counting

    def look():
        for folder in disk.after_a_power_cut():
            seen[done[-1], tuple(sorted(folder.items()))] = folder
    with pytest.MonkeyPatch.context() as patched:
        Watched(patched, disk.act)
        save(tmp_path / 'run', lambda step: (done.append(step), look()))
    assert done[-1] == 3
    assert {name: file['now'] for name, file in disk.names.items() if file
            } == {path.name: path.read_bytes()
                  for path in (tmp_path / 'run').iterdir()}
    assert len(seen) > 30
    for number, ((last, _), files) in enumerate(seen.items()):
        folder = tmp_path / f'{number}'
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        assert last <= loaded(folder) <= last + 1

"""Checkpoints: the data with which a training continues after a crash.

A checkpoint gets its name only after all its bytes have reached the disk. A
crash before that leaves a file that nobody reads, and that is removed.
"""
import contextlib
import os
import platform
import re
import warnings
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import RLock

import numpy as onp

from d2lps.annotations import Array, PathLike
from d2lps.checks import (checked, folder, instance_of, integer, list_of,
                          refuse)
from d2lps.engine import mx
import fcntl  # after MXNet, whose absence on Windows is explained
from d2lps.recovery.file import (CheckpointError, as_pieces, checksum,
                                 flush_folder, from_bytes, write)

NAME = re.compile(r'step-([0-9]{8,})\.checkpoint')
STEP = partial(integer, least=0, most=10 ** 15)
PARAMS = list_of(instance_of((onp.ndarray, mx.np.ndarray), 'an array'),
                 'a list of arrays')


def _shapes(params):
    """The shapes of a list of arrays; None for anything else in a file."""
    if isinstance(params, list):
        return [getattr(array, 'shape', None) for array in params]
    return None


class Checkpoint:
    """The checkpoints in a folder, where one process at a time may write.

    Args:
        folder: made if need be; on several machines, a folder they share.
        keep: how many good checkpoints stay.

    A crash or a power cut at any moment leaves the newest `keep` checkpoints
    from which `save` has returned, if the disk reports truly when bytes are
    written. Damaged and foreign files are never removed.
    `checksum` belongs to the checkpoint that was loaded last.

    Raises:
        ValueError: for a bad argument, such as a file in place of a folder.
        OSError: if the folder cannot be made, read or written.
    """

    _steps: list[int]  # of the checkpoints that are whole
    _owner: int | None  # the process that has the lock
    _release: weakref.finalize | None

    @checked(folder=folder, keep=integer)
    def __init__(self, folder: PathLike, keep: int = 3) -> None:
        self.folder = Path(folder).absolute()
        self.keep, self.checksum = keep, ''
        self._steps = []
        self._owner = self._release = None
        self._mutex = RLock()  # one thread at a time
        new = [path for path in (self.folder, *self.folder.parents)
               if not path.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            refuse('folder', str(folder), 'a folder, and not a file')
        for path in reversed(new):
            flush_folder(path.parent)

    def __repr__(self) -> str:
        steps = ', '.join(map(str, self._steps)) or 'none'
        return f'Checkpoint({str(self.folder)!r}; steps: {steps})'

    def _path(self, step):
        return self.folder / f'step-{step:08d}.checkpoint'

    def _files(self):
        """[(step, path), ...] of all checkpoints, the newest first."""
        matches = map(NAME.fullmatch, os.listdir(self.folder))
        steps = {int(match[1]) for match in matches if match}
        return [(step, self._path(step)) for step in sorted(steps)[::-1]]

    def lock(self) -> None:
        """Let no other process write until `close`; `save` calls this, too.

        When this process and its forks have ended, for any reason, the
        operating system releases the lock. Unfinished files are removed.

        Raises:
            CheckpointError: if another training has it.
        """
        if self._release and self._owner == os.getpid():
            return
        self.close()  # in a fork, because its parent has the lock
        self._owner = os.getpid()
        file = os.open(self.folder / 'lock', os.O_RDWR | os.O_CREAT, 0o666)
        self._release = weakref.finalize(self, os.close, file)
        try:
            self._take_over(file)
        except BaseException:
            self.close()
            raise

    def _take_over(self, file):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.read(file, 200).decode(errors='replace')
            raise CheckpointError(
                f'{self.folder} is in use by another training ({who!a}): wait '
                'for its end, or take another folder') from None
        with contextlib.suppress(OSError):  # a full disk
            os.ftruncate(file, 0)
            os.write(file, f'process {os.getpid()} on {platform.node()}'
                     .encode())
        for name in os.listdir(self.folder):
            if re.fullmatch(NAME.pattern + r'\.tmp', name):
                os.unlink(self.folder / name)
        self._steps = []
        for step, path in self._files()[::-1]:
            with contextlib.suppress(OSError, ValueError):
                self._read(step, path)
                self._steps.append(step)

    def close(self) -> None:
        """Let others write here."""
        if self._release:
            self._release()
        self._release = None

    def __enter__(self) -> 'Checkpoint':
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @checked(step=STEP, state=instance_of(
        dict, "a dict, such as {'params': params}"))
    def save(self, step: int, state: dict) -> None:
        """Write a checkpoint; after this returns, no crash can undo it.

        state: texts to numbers, texts, None, arrays (NumPy's or MXNet's), and
            lists and dicts of these. Keys come back as texts.

        Raises:
            ValueError: for another state, or a step before the newest.
            CheckpointError: if another training writes here.
            OSError: if the disk is full, or the folder read-only.
        """
        content = as_pieces(step, state)
        with self._mutex:
            self._save(step, content)

    def _save(self, step, content):
        path = self._path(step)
        temporary = path.with_name(f'{path.name}.tmp')
        try:
            self.lock()
            if self._steps and step < self._steps[-1]:
                raise ValueError(
                    f'step must be at least {self._steps[-1]}, the step of '
                    f'the last checkpoint in {self.folder}; it was {step}. '
                    'Load this checkpoint, or take an empty folder')
            if step not in self._steps and os.path.lexists(path):
                os.replace(path, f'{path}.damaged')
            temporary.unlink(missing_ok=True)  # of an interrupted save
            write(temporary, content)
            os.replace(temporary, path)
            flush_folder(self.folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                if self._release:  # without the lock it may be another's
                    temporary.unlink()
            raise OSError(error.errno, f'{error.strerror}: the checkpoint of '
                          f'step {step} was not saved; earlier checkpoints '
                          'are unchanged',
                          str(error.filename or path)) from None
        self._steps = sorted({*self._steps, step})
        while len(self._steps) > self.keep:
            self._path(self._steps.pop(0)).unlink(missing_ok=True)

    @checked(like=PARAMS, at_most=STEP)
    def load(self, like: Sequence[Array] | None = None,
             at_most: int | None = None) -> tuple[int, dict] | None:
        """(step, state) of the newest good checkpoint, or None.

        Damaged checkpoints are skipped with a warning, which names the step
        that is loaded instead, if one is left. Arrays come back as NumPy
        arrays, and tuples as lists.

        like: the arrays in state['params'] must have the same shapes.
        at_most: later steps are not loaded.

        Raises:
            ValueError: if it is of another network.
        """
        skipped: list[str] = []
        for step, path in self._files():
            if at_most is not None and step > at_most:
                continue
            try:
                state, self.checksum = self._read(step, path)
            except (OSError, ValueError) as error:
                skipped.append(f'{path} is skipped: {error}. ')
                continue
            shapes = _shapes(state.get('params'))
            if like and _shapes(like) != shapes:
                raise ValueError(
                    f'like has parameters of shapes {_shapes(like)}, and '
                    f'{path} has shapes {shapes}: this checkpoint is of '
                    'another network. Take another folder')
            if skipped:
                warnings.warn(f'{"".join(skipped)}The checkpoint of step '
                              f'{step} is loaded', stacklevel=3)
            return step, state
        if skipped:
            warnings.warn(f'{"".join(skipped)}No good checkpoint is left',
                          stacklevel=3)
        return None

    def _read(self, step, path):
        content = path.read_bytes()
        step_inside, state = from_bytes(content)
        if step_inside != step:
            raise ValueError(f'it is the checkpoint of step {step_inside}, '
                             'renamed')
        return state, checksum(content)

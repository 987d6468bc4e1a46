"""A checkpoint as a file of `numpy.savez`, which `numpy.load` opens.

The entry `state` is the state as JSON, in bytes; in it, {"__array__": 2}
stands for the entry `arr_2`. The file is a zip archive, so each entry has a
checksum. `allow_pickle=False` lets no foreign file run a program.
"""
import contextlib
import errno
import hashlib
import io
import json
import os
from collections.abc import Iterable
from typing import Any

import numpy as onp

from d2lps.annotations import PathLike
from d2lps.checks import from_zero, refuse
from d2lps.engine import mx
import fcntl  # after MXNet, whose absence on Windows is explained

ARRAY = '__array__'


class CheckpointError(RuntimeError):
    """The folder is in use, or the workers see different checkpoints."""


class Pieces(io.RawIOBase):
    """A file in memory. Its pieces need not be copied into one array."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, piece: Any) -> int:
        self.pieces.append(bytes(piece))
        return len(piece)


def as_pieces(step: int, state: dict) -> list[bytes]:
    """The content of a checkpoint's file. ValueError for another state."""
    arrays: list[onp.ndarray] = []

    def as_json(value):
        if isinstance(value, mx.nd.NDArray):
            value = value.asnumpy()
        if isinstance(value, onp.memmap):
            value = onp.asarray(value)
        if type(value) is onp.ndarray and value.dtype.kind in 'biufc':
            arrays.append(value)
            return {ARRAY: len(arrays) - 1}
        if isinstance(value, onp.generic):
            return value.item()
        refuse('a value in state', value, 'a number, a text, None, a plain '
               'array of numbers, or a list or dict of these')

    try:
        tree = json.dumps({'step': step, 'state': state}, default=as_json,
                          check_circular=False)
    except RecursionError:
        raise ValueError('state must not contain itself, nor hundreds of '
                         'nested lists and dicts') from None
    except TypeError as error:  # of a key such as (1, 2)
        raise ValueError(f'state must have texts as keys: {error}') from None
    content = Pieces()
    onp.savez(content, *arrays, state=onp.frombuffer(tree.encode(), 'uint8'))
    return content.pieces


def from_bytes(content: bytes) -> tuple[int, dict]:
    """(step, state) from a file's content. ValueError if it is damaged."""
    try:
        with onp.load(io.BytesIO(content), allow_pickle=False) as entries:
            if entries.zip.testzip():
                raise ValueError('a checksum does not fit')
            tree = json.loads(
                entries['state'].tobytes(), object_hook=lambda part:
                entries[f'arr_{part[ARRAY]}'] if ARRAY in part else part)
        return from_zero('step', tree['step']), dict(tree['state'])
    except Exception as error:  # a foreign file may raise any error
        raise ValueError('it is damaged, or no checkpoint: '
                         f'{error!r}') from None


def checksum(content: bytes) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def flush(file: int) -> None:
    """Wait until a file, or the names in a folder, are on the disk itself."""
    try:
        os.fsync(file)
    except OSError as error:  # some network drives cannot sync a folder
        if error.errno != errno.EINVAL:
            raise
    if hasattr(fcntl, 'F_FULLFSYNC'):  # a Mac's fsync stops at its cache
        with contextlib.suppress(OSError):  # a file system without it
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)


def flush_folder(path: PathLike) -> None:
    """Wait until the names in a folder are on the disk itself."""
    folder = os.open(path, os.O_RDONLY)
    try:
        flush(folder)
    finally:
        os.close(folder)


def write(path: PathLike, content: Iterable[bytes]) -> None:
    """Write a new file; wait until it is on the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        for piece in content:
            left = memoryview(piece)
            while left:  # the disk may take a part of it
                left = left[os.write(file, left):]
        flush(file)
    finally:
        os.close(file)

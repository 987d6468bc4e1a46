"""A checkpoint as a file, which a person can take apart:

    d2lps checkpoint, format 1
    <sha256 of all else in this file>
    {"step": 120, "state": {"dict": {"params": [{"array": 0}, ...], ...}}}
    <the arrays one after the other, each as numpy.save writes it>

It contains no program, so reading a foreign file runs no foreign code.
"""
import contextlib
import errno
import hashlib
import io
import json
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as onp

from d2lps.annotations import PathLike
from d2lps.checks import from_zero, refuse
from d2lps.engine import mx
import fcntl  # after MXNet, whose absence on Windows is explained

FORMAT = 1
HEAD = re.compile(rb'd2lps checkpoint, format ([0-9]{1,9})\n')
CHECKSUM = 64  # digits


class CheckpointError(RuntimeError):
    """The folder is in use, or needs another d2lps, or workers disagree."""


def pack(state: Any, arrays: list[onp.ndarray], where: str = 'state') -> Any:
    """`state` as JSON can hold it; its arrays are appended to `arrays`."""
    if isinstance(state, dict):
        for key in state:
            if not isinstance(key, str):
                refuse(f'a key in {where}', key, "a text, such as 'params'")
        return {'dict': {key: pack(value, arrays, f'{where}[{key!r}]')
                         for key, value in state.items()}}
    if isinstance(state, (list, tuple)):
        return [pack(value, arrays, f'{where}[{i}]')
                for i, value in enumerate(state)]
    if isinstance(state, mx.nd.NDArray):
        state = state.asnumpy()
    if isinstance(state, onp.memmap):
        state = onp.asarray(state)
    if type(state) is onp.ndarray and state.dtype.kind in 'biufc':
        arrays.append(state)
        return {'array': len(arrays) - 1}
    if isinstance(state, onp.generic):
        state = state.item()
    if state is not None and not isinstance(state, (bool, int, float, str)):
        refuse(where, state, 'numbers, texts, None, plain arrays of numbers, '
               'or lists and dicts of these')
    return state


def unpack(tree: Any, arrays: list[onp.ndarray]) -> Any:
    """The state from which `pack` made this tree and these arrays."""
    if isinstance(tree, list):
        return [unpack(one, arrays) for one in tree]
    if isinstance(tree, dict) and 'array' in tree:
        return arrays[tree['array']]
    if isinstance(tree, dict):
        return {key: unpack(one, arrays) for key, one in tree['dict'].items()}
    return tree


def checksum(*parts: Any) -> bytes:
    """The SHA-256, in hexadecimal, of bytes and arrays of bytes."""
    sha256 = hashlib.sha256()
    for part in parts:
        sha256.update(part)
    return sha256.hexdigest().encode()


def as_parts(step: int, state: dict) -> tuple[list, str]:
    """The content of a checkpoint's file in parts, and its checksum."""
    arrays: list[onp.ndarray] = []
    try:
        tree = {'step': step, 'state': pack(state, arrays)}
        body: list[Any] = [json.dumps(tree).encode() + b'\n']
    except RecursionError:
        raise ValueError('state must not contain itself, nor hundreds of '
                         'nested lists and dicts') from None
    for array in arrays:  # as numpy.save does it, but nothing is copied
        array, start = onp.asarray(array, order='C'), io.BytesIO()
        onp.lib.format.write_array_header_1_0(
            start, onp.lib.format.header_data_from_array_1_0(array))
        body += [start.getvalue(), array.reshape(-1).view('uint8')]
    head = b'd2lps checkpoint, format %d\n' % FORMAT
    found = checksum(head, *body)
    return [head, found, b'\n', *body], found.decode()


def open_regular_file(path: PathLike, flags: int, mode: int = 0o666) -> int:
    """`os.open` for a folder in which other users may create files.

    It follows no link and waits for no pipe, but raises ValueError.
    """
    file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, mode)
    about = os.fstat(file)
    # A file with a second name might be one of this user's, elsewhere.
    writes = flags & os.O_ACCMODE != os.O_RDONLY
    if not stat.S_ISREG(about.st_mode) or writes and about.st_nlink > 1:
        os.close(file)
        raise ValueError(f'{os.path.basename(path)} is not a regular file, or '
                         'has a second name (hard link): remove it')
    return file


def read(path: Path) -> tuple[int, dict, str]:
    """(step, state, checksum) of a checkpoint's file.

    ValueError if it is damaged or another user's; CheckpointError if it has
    another format.
    """
    with open(path, 'rb', opener=open_regular_file) as file:
        owners = os.geteuid(), path.parent.stat().st_uid
        if os.fstat(file.fileno()).st_uid not in owners:
            raise ValueError('it belongs to another user')
        start = file.read(40)  # first: it may be any file, of any size
        return parsed(start + file.read() if HEAD.match(start) else start)


def parsed(content: bytes) -> tuple[int, dict, str]:
    """The result of `read`, from a file's bytes."""
    head = HEAD.match(content)
    if not head:
        raise ValueError('it is damaged, or no checkpoint: it begins with '
                         f'{content[:20]!r}')
    start = head.end() + CHECKSUM + 1
    body = memoryview(content)[start:]
    found = checksum(head[0], body)
    if content[head.end():start] != found + b'\n':
        raise ValueError('it is damaged: its checksum does not fit')
    if int(head[1]) != FORMAT:
        raise CheckpointError(
            f'it has format {int(head[1])}, and this d2lps reads format '
            f'{FORMAT}: use the d2lps that wrote it, or another folder')
    try:
        file = io.BytesIO(body)
        arrays: list[onp.ndarray] = []
        tree = json.loads(file.readline())
        while file.tell() < len(body):
            arrays.append(onp.lib.format.read_array(file, allow_pickle=False))
        step = from_zero('step', tree['step'])
        return step, dict(unpack(tree['state'], arrays)), found.decode()
    except Exception as error:  # a right checksum proves nothing
        raise ValueError(f'it holds no state: {error!r}') from None


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


def write(path: PathLike, parts: Iterable[Any]) -> None:
    """Write a new file of bytes and arrays; wait until it is on the disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    file = os.open(path, flags, 0o666)
    try:
        for part in parts:
            left = memoryview(part)
            while left:  # the disk may take a part of it
                left = left[os.write(file, left):]
        flush(file)
    finally:
        os.close(file)

"""A checkpoint as a file, which a person can take apart:

    d2lps checkpoint, format 1
    <sha256 of all else in this file>
    {"step": 120, "state": {"dict": {"params": [{"array": 0}, ...], ...}}}
    <the arrays one after the other, each as numpy.save writes it>

Nothing in it is a program, so reading it runs nothing that another wrote.
"""
import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import stat

import numpy as onp

from d2lps.checks import from_zero, refuse
from d2lps.engine import mx

FORMAT = 1
HEAD = re.compile(rb'd2lps checkpoint, format ([0-9]{1,9})\n')
CHECKSUM = 64  # digits


class CheckpointError(RuntimeError):
    """The folder is in use, or needs another d2lps, or workers disagree."""


def pack(state, arrays, where='state'):
    """What JSON can hold of `state`; its arrays go to the end of `arrays`."""
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
    if type(state) is onp.ndarray and state.dtype.kind in 'biufc':
        arrays.append(state)
        return {'array': len(arrays) - 1}
    if isinstance(state, onp.generic):
        state = state.item()
    if state is not None and not isinstance(state, (bool, int, float, str)):
        refuse(where, state, 'numbers, texts, None, arrays of numbers, or '
               'lists and dicts of these')
    return state


def unpack(tree, arrays):
    """The state of which `pack` made this tree and these arrays."""
    if isinstance(tree, list):
        return [unpack(one, arrays) for one in tree]
    if not isinstance(tree, dict):
        return tree
    if 'array' in tree:
        return arrays[tree['array']]
    return {key: unpack(one, arrays) for key, one in tree['dict'].items()}


def checksum(head, body):
    sha256 = hashlib.sha256(head)
    sha256.update(body)
    return sha256.hexdigest().encode()


def as_bytes(step, state):
    """The content of a checkpoint's file, and its checksum."""
    arrays, body = [], io.BytesIO()
    try:
        tree = {'step': step, 'state': pack(state, arrays)}
        body.write(json.dumps(tree).encode() + b'\n')
    except RecursionError:
        raise ValueError('state must not hold itself') from None
    for array in arrays:
        onp.save(body, array, allow_pickle=False)
    head = b'd2lps checkpoint, format %d\n' % FORMAT
    found = checksum(head, body.getbuffer())
    return b''.join([head, found, b'\n', body.getbuffer()]), found.decode()


def read(path):
    """Return (step, state, checksum) of a checkpoint's file.

    Raises:
        ValueError: if it is damaged, or no file of ours.
        OSError: if it cannot be read.
        CheckpointError: if it is good, but of another format.
    """
    def opener(name, flags):  # neither follow a link nor wait for a pipe
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(path, 'rb', opener=opener) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError('it is no file')
        if about.st_uid not in (os.geteuid(), path.parent.stat().st_uid):
            raise ValueError('it belongs to another user')
        content = file.read()
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
            f'{path} has format {int(head[1])}, and this d2lps reads format '
            f'{FORMAT}: use the d2lps that wrote it, or another folder')
    try:
        return *_parsed(io.BytesIO(body)), found.decode()
    except Exception as error:  # anybody can compute a checksum
        raise ValueError(f'it holds no state: {error!r}') from error


def _parsed(body):
    tree, arrays = json.loads(body.readline()), []
    while body.tell() < len(body.getbuffer()):
        arrays.append(onp.lib.format.read_array(body, allow_pickle=False))
    return from_zero('step', tree['step']), unpack(tree['state'], arrays)


def flush(file):
    """Wait until a file, or the names in a folder, are on the disk itself."""
    os.fsync(file)
    if hasattr(fcntl, 'F_FULLFSYNC'):  # a Mac's fsync leaves it to the disk
        with contextlib.suppress(OSError):  # a file system without it
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)


def flush_folder(path):
    folder = os.open(path, os.O_RDONLY)
    try:
        flush(folder)
    finally:
        os.close(folder)


def write(path, content):
    """Write a new file, and wait until it is on the disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    file, rest = os.open(path, flags, 0o666), memoryview(content)
    try:
        while rest:
            rest = rest[os.write(file, rest):]  # it may take a part only
        flush(file)
    finally:
        os.close(file)

"""How workers find each other: each has a connection to each of the others.

On one machine the connections are Unix sockets, which only their user can
open. Both ends of a TCP connection first prove that they know the run's
secret (HMAC, RFC 2104), and then send plain bytes. This keeps out strangers
who can connect. It does not stop those who can read or change the packets.
"""
import contextlib
import hmac
import os
import re
import socket
import stat
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any

from d2lps.checks import refuse

GREETING = struct.Struct('!8sI16s')  # who we are, rank, a random number
MAGIC, PROOF = b'd2lps 1\n', 32  # PROOF: bytes
WELCOME = b'!'  # the last byte: the listener accepts this connection
MOST_PATH_BYTES = 100  # bytes of the path of a Unix socket; a Mac takes 103
# Seconds for a new connection to prove itself. Our greeting and its proof take
# two delays of the network, and a `Network` may have one of 10 s.
STRANGER = 25.0
AGAIN = 0.01  # seconds until the next try


class Late(Exception):
    """(rank of a worker that did not join in time, what happened)"""


def join(rank: int, addresses: Sequence[str], timeout: float,
         secret: bytes) -> tuple[dict[int, socket.socket], int]:
    """Connect with all others: {rank: a socket}, and how many were refused.

    A worker connects to those of lower rank, and the others connect to it.
    """
    end, connections, strangers = time.monotonic() + timeout, {}, 0
    with listening(addresses[rank], len(addresses)) as listener:
        for other in range(rank):
            connections[other] = connect(addresses[other], other, rank,
                                         secret, end)
        while len(connections) < len(addresses) - 1:
            try:
                listener.settimeout(left(end))
                connection, _ = listener.accept()
            except TimeoutError:
                late = {*range(len(addresses))} - {rank, *connections}
                raise Late(min(late), f'{strangers} strangers were refused'
                           ) from None
            try:
                other = greet(connection, rank, secret,
                              time.monotonic() + STRANGER)
                if (other < rank or other >= len(addresses)
                        or other in connections):
                    raise ConnectionError('nobody is missing')
                connection.sendall(WELCOME)
                connections[other] = connection
            except OSError:
                strangers += 1
                connection.close()
    for connection in connections.values():
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:  # small messages go at once
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connections, strangers


@contextlib.contextmanager
def listening(address: str, count: int) -> Iterator[socket.socket]:
    """A socket that listens until all have joined."""
    family, where = place_of(address)
    with socket.socket(family) as listener:
        if family == socket.AF_UNIX:
            remove(address)  # a killed worker leaves its socket
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(where)
        except OSError as error:
            raise OSError(error.errno, f'cannot listen at {address}: '
                          f'{error.strerror or error}') from None
        try:
            if family == socket.AF_UNIX:  # nobody can connect yet
                os.chmod(address, 0o600)
            listener.listen(count)
            yield listener
        finally:
            if family == socket.AF_UNIX:
                remove(address)


def remove(path: str) -> None:
    """Remove a socket, and nothing else."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            os.unlink(path)


def connect(address: str, other: int, rank: int, secret: bytes,
            end: float) -> socket.socket:
    """A connection to a worker; it is tried until the time `end`."""
    family, where = place_of(address)
    while True:
        connection = socket.socket(family)
        try:
            connection.settimeout(left(end))
            connection.connect(where)
            if (greet(connection, rank, secret, end) == other
                    and exactly(connection, len(WELCOME), end) == WELCOME):
                return connection
            why = 'another program listens there'
        except OSError as error:  # most often, nobody listens yet
            why = error.strerror or str(error)
        connection.close()
        if time.monotonic() > end:
            raise Late(other, f'{address}: {why}')
        time.sleep(AGAIN)


def address(name: str, value: Any) -> str:
    """A check: where a worker can listen."""
    path = isinstance(value, str) and value.startswith('/')
    port = re.fullmatch(r'[^\s:/]+:([0-9]{1,5})', str(value))
    if (path and (len(os.fsencode(value)) > MOST_PATH_BYTES or '\0' in value)
            or not path and not (port and 0 < int(port[1]) < 1 << 16)):
        refuse(name, value, 'the path of a Unix socket (/…, at most '
               f"{MOST_PATH_BYTES} bytes), or 'address:port', such as "
               "'127.0.0.1:20000'")
    return value


def place_of(
        address: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    """The family of a socket, and what it connects to."""
    if address.startswith('/'):
        return socket.AF_UNIX, address
    host, _, port = address.rpartition(':')
    return socket.AF_INET, (host, int(port))


def greet(connection: socket.socket, rank: int, secret: bytes,
          end: float) -> int:
    """Exchange ranks and proofs; returns the rank of the other end.

    Raises OSError if the other end is a stranger.
    """
    mine = GREETING.pack(MAGIC, rank, os.urandom(16))
    connection.sendall(mine)
    theirs = exactly(connection, GREETING.size, end)
    magic, other, _ = GREETING.unpack(theirs)
    if magic != MAGIC or other == rank:
        raise ConnectionError('a stranger')
    connection.sendall(hmac.digest(secret, mine + theirs, 'sha256'))
    proof = hmac.digest(secret, theirs + mine, 'sha256')
    if not hmac.compare_digest(exactly(connection, PROOF, end), proof):
        raise ConnectionError('a stranger, who does not know the secret')
    return other


def exactly(connection: socket.socket, count: int, end: float) -> bytes:
    """So many bytes from a connection, until the time `end`."""
    data = b''
    while len(data) < count:
        connection.settimeout(left(end))
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionError('it has closed the connection')
        data += more
    return data


def left(end: float) -> float:
    """Seconds until the time `end`; TimeoutError if it is over."""
    seconds = end - time.monotonic()
    if seconds <= 0:
        raise TimeoutError('there was no answer in time')
    return seconds

"""What a machine is like, and whom it can reach.

Both ends use this file; it loads nothing that a machine may lack.
"""
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

CONNECT = 3.0  # seconds for a connection
IMPORT = 60.0  # seconds to load MXNet
WHAT_A_WORKER_LOADS = (
    'from d2lps.cluster.processes import member; member.load()')


def is_free(address: str, port: int) -> bool:
    """Can a program listen on this port just now?"""
    with socket.socket() as one:
        # A port is free, too, while its last connections fade away.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((address, port))
            one.listen()
        except OSError:
            return False
    return True


def look(python: Sequence[int], ports: Iterable[int]) -> dict[str, Any]:
    """What the cluster must know of this machine, a dictionary.

    An SSH server says at which addresses the connection arrived here, and
    from where it came.
    """
    here = list(sys.version_info[:2])
    if here != python:
        sys.exit('Python {}.{} is here, and Python {}.{} on your machine: '
                 'they must be the same'.format(*here, *python))
    words = os.environ.get('SSH_CONNECTION', '').split()
    if len(words) != 4:
        sys.exit('the SSH server did not set SSH_CONNECTION')
    reader, _, address, _ = words
    return {'reader': reader, 'address': address, 'ports': [
        port for port in ports if is_free(address, port)]}


def load() -> str:
    """Why d2lps and MXNet cannot be loaded here, in a line; '' if they can."""
    done = subprocess.run(
        [sys.executable, '-P', '-c', WHAT_A_WORKER_LOADS], text=True,
        capture_output=True, check=False, stdin=subprocess.DEVNULL,
        timeout=IMPORT)
    return done.stderr.strip().split('\n')[-1] if done.returncode else ''


def listen(address: str, ports: Iterable[int]) -> str:
    """Accept, and close, connections to these ports until this one ends."""
    for port in ports:
        server = socket.create_server((address, port))
        threading.Thread(target=_accept, args=[server], daemon=True).start()
    return ''


def _accept(server):
    while True:
        server.accept()[0].close()


def reach(targets: Sequence[tuple[str, str, int]]) -> list[list[Any]]:
    """Try to connect to each of [[name, address, port], …] at once.

    Returns [[name, address, port, what is wrong or ''], …].
    """
    with ThreadPoolExecutor(len(targets)) as pool:
        return [*pool.map(_reach, targets)]


def _reach(target):
    name, address, port = target
    try:
        socket.create_connection((address, port), CONNECT).close()
    except OSError as error:
        return [name, address, port, error.strerror or str(error)]
    return [name, address, port, '']

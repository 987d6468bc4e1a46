"""The places of a cluster's processes, and their addresses.

`LocalPlaces` is the reader's machine, and `UnixSocketPlaces` the same without
a port.  A slow network has the same attributes and methods: see
`d2lps.cluster.network`.
"""
import os
import random
import secrets
import socket
import sys
from typing import Any, NamedTuple

from d2lps.cluster.processes import sockets

LOOPBACK = '127.0.0.1'
# Below the ports that systems give to outgoing connections.
PORTS = range(10_000, 32_000)


def is_free(port: int) -> bool:
    """Can a program listen on this port of LOOPBACK just now?"""
    with socket.socket() as listener:
        # A port is free, too, while its last connections fade away.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
            listener.listen()
        except OSError:
            return False
    return True


def free_ports(n: int) -> list[int]:
    """`n` ports of this machine that nobody uses just now, in order."""
    ports: list[int] = []
    for port in random.sample(PORTS, 1000):
        if len(ports) < n and is_free(port):
            ports.append(port)
    if len(ports) < n:
        raise OSError(f'no {n} free ports from {PORTS[0]} to {PORTS[-1]}')
    return sorted(ports)


class Place(NamedTuple):
    """A place for a process.

    Attributes:
        address: where MXNet listens there, and the others find it.
        host: its number in a slow network.
    """
    address: str = LOOPBACK
    host: int = 0


class LocalPlaces:
    """All processes on this machine; they talk on loopback only.

    Attributes:
        head: the place of the scheduler.
        workers, servers: a `Place` for each.
        name: what the keeper is called.
        network: what the keeper has to make, see `messages.Begin`.
        env: what else MXNet has to find in its environment.
        card: the network interface that PyTorch's Gloo shall use.
    """
    name = 'keeper'
    network: dict[str, Any] | None = None
    env: dict[str, str] = {}
    card = 'lo0' if sys.platform == 'darwin' else 'lo'

    def __init__(self, num_workers: int, num_servers: int) -> None:
        self.head = Place()
        self.workers = [self.head] * num_workers
        self.servers = [self.head] * num_servers

    def without(self, lost: int) -> 'LocalPlaces | None':
        """Places for other processes, after those here have ended.

        There are none for so many of the workers. None if no worker is left.
        """
        left = len(self.workers) - lost
        return type(self)(left, len(self.servers)) if left else None

    def traffic(self, keeper: int) -> dict[str, tuple[int, int]]:
        """{host: (bytes received, bytes sent)} so far.

        keeper: its process id.
        """
        raise ValueError('only a slow network counts the bytes on its '
                         'links: Cluster(network=Network())')

    def free_ports(self, n: int) -> list[int]:
        """Ports for scheduler, servers and workers, in order."""
        return free_ports(n)

    def peers(self, folder: str) -> list[str]:
        """Addresses at which workers listen for each other; see `Peers`."""
        ports = self.free_ports(len(self.workers))
        return [f'{place.address}:{port}'
                for place, port in zip(self.workers, ports)]

    def master(self) -> tuple[str, int]:
        """Address and port at which other libraries may meet."""
        [port] = free_ports(1)  # they take no Unix socket
        return self.workers[0].address, port


class UnixSocketPlaces(LocalPlaces):
    """All processes on this machine; no other user can connect to them.

    They use Unix sockets. MXNet names a socket by a number in place of a
    port. Ours are random and larger than any port, so nobody can guess one
    and take it first.
    """
    env = {'DMLC_LOCAL': '1'}

    def free_ports(self, n: int) -> list[int]:
        ports: set[int] = set()
        while len(ports) < n:
            port = 2 ** 16 + secrets.randbelow(2 ** 31 - 2 ** 16)
            if not os.path.lexists(sockets.socket_of(port)):
                ports.add(port)
        return sorted(ports)

    def peers(self, folder: str) -> list[str]:
        return [f'{folder}/peer-{rank}' for rank in range(len(self.workers))]


def unix_socket_places(num_workers: int, num_servers: int) -> UnixSocketPlaces:
    """Places that use Unix sockets; OSError if the machine permits none."""
    places = UnixSocketPlaces(num_workers, num_servers)
    path = sockets.socket_of(*places.free_ports(1))
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(path)
        os.unlink(path)
        return places
    except (OSError, AttributeError) as error:
        raise OSError(
            f'no Unix sockets in {os.path.dirname(path)} ({error}). No other '
            'user could open such sockets. If this machine has no other '
            f"users, use Cluster(address='{LOOPBACK}'): every user of this "
            'machine can connect to it, and make it run code') from None

"""Where a cluster's processes run, and at what addresses.

`LocalPlaces` is the reader's machine, and `UnixSocketPlaces` the same without
a port.  A slow network has the same attributes and methods: see
`d2lps.cluster.network`.
"""
import os
import random
import secrets
import socket
import sys
from dataclasses import dataclass
from typing import Any

from d2lps.cluster.processes import sockets
from d2lps.cluster.processes.process import (KeeperConnection, Process,
                                             start_here)

LOOPBACK = '127.0.0.1'
# Below the ports that systems give to outgoing connections.
PORTS = range(10_000, 32_000)


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


def free_ports(n: int) -> list[int]:
    """`n` ports of this machine that nobody uses just now, in order."""
    found: list[int] = []
    for port in random.sample(PORTS, 1000):
        if len(found) < n and is_free(LOOPBACK, port):
            found.append(port)
    if len(found) < n:
        raise OSError(f'no {n} free ports from {PORTS[0]} to {PORTS[-1]}')
    return sorted(found)


@dataclass(frozen=True)
class Place:
    """A place for a process.

    Attributes:
        keeper: who keeps it there.
        address: where MXNet listens there, and the others find it.
        host: which one of a slow network it is.
    """
    keeper: KeeperConnection
    address: str = LOOPBACK
    host: int = 0

    def add(self, role: str, rank: int, env: dict[str, str],
            **job: Any) -> Process:
        """Have a process started here, with more environment `env`."""
        return self.keeper.add(role, rank, env=env, host=self.host, **job)


class LocalPlaces:
    """All processes on this machine; they talk on loopback only.

    Attributes:
        keepers: what starts and ends the processes.
        head: the place of the scheduler.
        workers, servers: a `Place` for each.
        env: what else MXNet has to find in its environment.
        card: the network interface that PyTorch's Gloo shall use.
    """
    env: dict[str, str] = {}
    card = 'lo0' if sys.platform == 'darwin' else 'lo'

    def __init__(self, num_workers: int, num_servers: int) -> None:
        self.keepers = [self.keeper()]
        self.head = Place(self.keepers[0])
        self.workers = [self.head] * num_workers
        self.servers = [self.head] * num_servers

    def without(self, lost: int) -> 'LocalPlaces | None':
        """Places for other processes, after those here have ended.

        There are none for so many of the workers. None if no worker is left.
        """
        left = len(self.workers) - lost
        return type(self)(left, len(self.servers)) if left else None

    def keeper(self, name: str = 'keeper', **begin: Any) -> KeeperConnection:
        """A keeper on this machine."""
        return KeeperConnection(name, start_here(), path=sys.path[:], **begin)

    def use_answers(self) -> None:
        """Use what the keepers have said of their places.

        Raises:
            OSError: if this machine does not permit what is wanted.
        """

    def traffic(self) -> dict[str, tuple[int, int]]:
        """{host: (bytes received, bytes sent)} so far."""
        raise ValueError('only a slow network counts the bytes on its '
                         'links: Cluster(network=Network())')

    def is_free(self, port: int) -> bool:
        """May the scheduler have this port?"""
        return is_free(self.head.address, port)

    def reserve(self, port: int) -> None:
        """Reserve the scheduler's port; OSError if it is taken.

        (A TCP port cannot be reserved; it is only tried here.)
        """
        if not self.is_free(port):
            raise OSError(f'port {port} is in use')

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
        [port] = self.free_ports(1)
        return self.workers[0].address, port


class UnixSocketPlaces(LocalPlaces):
    """All processes on this machine; no other user can connect to them.

    They use Unix sockets. MXNet names a socket by a number in place of a
    port. Ours are random and larger than any port, so nobody can guess one
    and take it first.
    """
    env = {'DMLC_LOCAL': '1'}

    def is_free(self, port: int) -> bool:
        return not os.path.lexists(sockets.socket_of(port))

    def reserve(self, port: int) -> None:
        # The scheduler's socket will replace this one.
        with socket.socket(socket.AF_UNIX) as empty:
            try:
                empty.bind(sockets.socket_of(port))
            except OSError as error:
                raise OSError(f'port {port} is in use: {error}') from None

    def free_ports(self, n: int) -> list[int]:
        found: set[int] = set()
        while len(found) < n:
            port = 2 ** 16 + secrets.randbelow(2 ** 31 - 2 ** 16)
            if self.is_free(port):
                found.add(port)
        return sorted(found)

    def peers(self, folder: str) -> list[str]:
        return [f'{folder}/peer-{rank}' for rank in range(len(self.workers))]

    def master(self) -> tuple[str, int]:
        [port] = free_ports(1)  # other libraries take no Unix socket
        return LOOPBACK, port


def check_process(processes: int) -> None:
    """Check that this process can start so many others.

    Raises:
        OSError: if not; it says what to do.
    """
    import resource
    try:
        os.getcwd()
    except FileNotFoundError:
        raise OSError('the working folder has been deleted; go to another '
                      "first, for example with os.chdir('/')") from None
    # A keeper takes three pipes for each; a few more are open now and then.
    needed = len(os.listdir('/dev/fd')) + 50 + 4 * processes
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= limit < needed:
        raise OSError(f'this cluster may need {needed} open files in one '
                      f'process, and the limit is {limit}; raise it: ulimit '
                      f'-n {max(1024, needed)}, and start Python again')


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

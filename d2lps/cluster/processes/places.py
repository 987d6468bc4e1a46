"""Where a cluster's processes run, and at what addresses.

`Here` is the reader's machine, and `Private` the same without a port.  What
else there is has the same attributes and methods: see
`d2lps.cluster.network` and `d2lps.cluster.processes.ssh.machines`.
"""
import os
import random
import secrets
import socket
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from d2lps.cluster.processes import member
from d2lps.cluster.processes.process import Member

LOOPBACK = '127.0.0.1'
# Below the ports that systems give to outgoing connections.
PORTS = range(10_000, 32_000)


def is_free(port, address=LOOPBACK):
    """Can a program listen on this port of this machine just now?"""
    with socket.socket() as probe:
        # A port is free, too, while its last connections fade away.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen()
        except OSError:
            return False
    return True


def free_ports(n, address=LOOPBACK):
    """`n` ports of this machine that nobody uses just now, in order."""
    found = []
    for port in random.sample(PORTS, 1000):
        if len(found) < n and is_free(port, address):
            found.append(port)
    if len(found) < n:
        raise OSError(f'no {n} free ports from {PORTS[0]} to {PORTS[-1]}')
    return sorted(found)


@dataclass(frozen=True)
class Place:
    """A place for a process.

    Attributes:
        address: where MXNet listens there, and the others find it.
        prefix: what comes before the command that starts the process.
        job: what else the process must know, see `member`.
    """
    address: str = LOOPBACK
    prefix: tuple = ()
    job: dict = field(default_factory=dict)

    def member(self, role, rank):
        """What stands for a process here."""
        return Member(role, rank)

    def command(self):
        """What starts it."""
        return [*self.prefix, sys.executable, '-u', '-P',
                str(Path(member.__file__))]


class Here:
    """All processes on this machine; they talk on loopback only.

    Attributes:
        head: the place of the scheduler.
        workers, servers: a `Place` for each.
        env: what else MXNet has to find in its environment.
    """
    env = {}

    def __init__(self, workers, servers):
        self.head = Place()
        self.workers, self.servers = [Place()] * workers, [Place()] * servers

    def start(self, group):
        """Prepare the places, in the group's thread, before all else."""

    def ready(self):
        """Have the places been prepared?"""
        return True

    def hear(self, message):
        """What a process says that `start` has started, a dictionary."""

    def traffic(self):
        """{host: (bytes received, bytes sent)} so far."""
        raise ValueError('only a slow network counts what goes over its '
                         'links: Cluster(network=Network())')

    def is_free(self, port):
        """May the scheduler have this port?"""
        return is_free(port)

    def free_ports(self, n):
        """Ports for scheduler, servers and workers, in order."""
        return free_ports(n)

    def tick(self, members, now):
        """Is called every 0.1 seconds, in the group's thread."""


class Private(Here):
    """All processes on this machine; nobody else can connect with them.

    They talk over Unix sockets, which MXNet names by what would be a port.
    Nobody can guess ours, and take one first: they are random, and larger
    than any port.
    """
    env = {'DMLC_LOCAL': '1'}

    def is_free(self, port):
        return not os.path.lexists(member.socket_of(port))

    def free_ports(self, n):
        found = set()
        while len(found) < n:
            port = 2 ** 16 + secrets.randbelow(2 ** 31 - 2 ** 16)
            if self.is_free(port):
                found.add(port)
        return sorted(found)


def check_process(processes):
    """Can this process start so many others, and talk with them?

    Raises:
        OSError: if not; it says what to do.
    """
    import resource
    try:
        os.getcwd()
    except FileNotFoundError:
        raise OSError('the working folder has been deleted; go to another '
                      "first, for example with os.chdir('/')") from None
    # Each takes three pipes; a few more are open now and then.
    needed = len(os.listdir('/dev/fd')) + 50 + 4 * processes
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= limit < needed:
        raise OSError(f'this cluster may need {needed} open files in one '
                      f'process, and the limit is {limit}; raise it: ulimit '
                      f'-n {max(1024, needed)}, and start Python again')


def here(workers, servers):
    """`Private` places where they can be had, or else `Here` and a warning.
    """
    places = Private(workers, servers)
    path = member.socket_of(*places.free_ports(1))
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(path)
        os.unlink(path)
        return places
    except (OSError, AttributeError) as error:
        warnings.warn(
            f'no Unix sockets in {os.path.dirname(path)} ({error}): this '
            f'cluster listens on {LOOPBACK}, where every user of this '
            'machine can connect with it, and make it run code',
            stacklevel=5)
        return Here(workers, servers)

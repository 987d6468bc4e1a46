"""A slow network for a cluster, on this machine: hosts, links, a switch.

What the reader says about it is in here; `namespaces` makes it, in a process
of its own.
"""
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from d2lps.checks import boolean, checked, integer, number
from d2lps.cluster.processes import namespaces
from d2lps.cluster.processes.addresses import LocalPlaces, Place
from d2lps.cluster.processes.namespaces import link_of
from d2lps.collectives.topology import PAYLOAD
from d2lps.units import RATES, SIZES, TIMES, with_unit

SECONDS = 20  # for a look at what this machine permits
RECEIVED, SENT = 0, 8  # where bytes stand in a line of /proc/…/net/dev
# Linux keeps at most 1,024 neighbours for all networks of a machine. A pair of
# hosts that communicate takes two: each worker with each server, and the
# scheduler with all of them.
MOST_PAIRS = 500
DELAY = partial(number, most=10, example=0.001)  # seconds
BYTES = partial(integer, least=2000, most=10 ** 9)  # a packet, or more
QUEUE = 0.05  # seconds that bytes may wait for a link, if not told otherwise


@dataclass(frozen=True)
class Network:
    """Hosts around a switch, each at the end of a link: `Cluster(network=…)`.

    Args:
        bandwidth: of every host's link, each way, in bytes per second; 125e6
            is 1 Gbit/s.
        delay: seconds that a packet takes from one host to another, on top
            of what the bandwidth takes.
        colocated: server i shares the host of worker i (modulo the number
            of workers), instead of having a host of its own.
        bucket: bytes that a link lets through at once after a pause, before
            the bandwidth counts (a token bucket). A small bucket shows the
            time of small messages; it costs more of a core.
        queue: bytes that may wait for a link. When the queue is full, packets
            are lost, and TCP sends them again. By default, the queue is what
            the link carries in 0.05 s.

    Workers and servers reach each other over these links, and nothing else.
    (Linux only; see `network_problem`.)

    Attributes:
        rate: bytes per second that a program gets through a link with TCP;
            the rest of the bandwidth goes to the packets' headers.

    Raises:
        ValueError: for a bad argument.
    """
    bandwidth: float = 125e6
    delay: float = 0
    colocated: bool = False
    bucket: int = 128 * 1024
    queue: int | None = None

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # as it is frozen
        put('bandwidth', number(
            'bandwidth', self.bandwidth, 1e5, 4e9, example=125e6))
        put('delay', DELAY('delay', self.delay))
        put('colocated', boolean('colocated', self.colocated))
        put('bucket', BYTES('bucket', self.bucket))
        if self.queue is None:
            put('queue', int(self.bandwidth * QUEUE))
        put('queue', BYTES('queue', self.queue))

    def __repr__(self) -> str:
        parts = [with_unit(self.bandwidth, RATES),
                 f'delay {with_unit(self.delay, TIMES) if self.delay else 0}']
        parts += ['colocated'] * self.colocated
        if self.bucket != Network.bucket:
            parts.append(f'bucket {with_unit(self.bucket, SIZES)}')
        if self.queue not in (None, int(self.bandwidth * QUEUE)):
            parts.append(f'queue {with_unit(self.queue, SIZES)}')
        return f'Network({", ".join(parts)})'

    @property
    def rate(self) -> float:
        return self.bandwidth * PAYLOAD


@checked(delay=DELAY)
def network_problem(delay: float = 0) -> str:
    """Why `Cluster(network=…)` cannot work here, in a line; '' if it can.

    Args:
        delay: seconds, as in `Network`; a delay needs a kernel module.
    """
    try:
        return subprocess.run(
            [sys.executable, '-P', namespaces.__file__, str(delay)], text=True,
            capture_output=True, timeout=SECONDS, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        words = str(getattr(error, 'stderr', '') or error).strip()
        return f'the slow network fails: {words.splitlines()[-1]}'


class VirtualHost(NamedTuple):
    """A host in the network: the name of its link, and its addresses."""
    name: str
    addresses: list[str]
    slow: bool = True  # is it behind a slow link?


class NetworkPlaces(LocalPlaces):
    """Places on the hosts of a `Network`; see `addresses.LocalPlaces`."""
    name, card = 'network', 'eth0'

    def __init__(self, network: Network, num_workers: int,
                 num_servers: int) -> None:
        pairs = (num_workers + 1) * (num_servers + 1) - 1
        if pairs > MOST_PAIRS:
            raise ValueError(
                f'network: Linux keeps up to {MOST_PAIRS} pairs of hosts that '
                'communicate. (num_workers + 1) x (num_servers + 1) must be '
                f'at most that; it was {pairs + 1}')
        self._network = network
        # MXNet gives the first rank to what comes last in the alphabet.
        free = (f'10.0.{high}.{low}' for high in range(254, 99, -1)
                for low in range(254, 99, -1))
        self._hosts = [VirtualHost('scheduler', [next(free)], slow=False)]
        self._hosts += [VirtualHost(f'worker {rank}', [next(free)])
                        for rank in range(num_workers)]
        for rank in range(num_servers):
            if network.colocated:
                host = self._hosts[1 + rank % num_workers]
                host.addresses.append(next(free))
            else:
                self._hosts.append(VirtualHost(f'server {rank}', [next(free)]))
        self.network = {
            'hosts': self._hosts, 'bandwidth': network.bandwidth,
            'delay': network.delay, 'bucket': network.bucket,
            'queue': network.queue}
        self.head, *places = [
            Place(address, number)
            for number, host in enumerate(self._hosts)
            for address in host.addresses]
        places.sort(key=lambda place: place.address, reverse=True)
        self.workers, self.servers = (
            places[:num_workers], places[num_workers:])

    def without(self, lost: int) -> 'NetworkPlaces | None':
        left = len(self.workers) - lost
        return (NetworkPlaces(self._network, left, len(self.servers))
                if left else None)

    def traffic(self, keeper: int) -> dict[str, tuple[int, int]]:
        table = Path(f'/proc/{keeper}/net/dev').read_text('utf-8')
        counts = {}
        for line in table.splitlines():
            link, _, numbers = line.partition(':')
            counts[link.strip()] = numbers.split()
        # These are the switch's ends: what it has sent, the host received.
        links = {host.name: counts[link_of(host.name)]
                 for host in self._hosts if host.slow}
        return {name: (int(numbers[SENT]), int(numbers[RECEIVED]))
                for name, numbers in links.items()}

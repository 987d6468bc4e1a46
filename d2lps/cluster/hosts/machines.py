"""Where a cluster's processes run when they run on several machines."""
import copy
import ipaddress
import os
import random
import sys
from collections.abc import Sequence
from typing import NoReturn

from d2lps.checks import shown
from d2lps.cluster.hosts.host import Host
from d2lps.cluster.hosts.ssh_command import (SshCommand, check_hosts,
                                             check_ports)
from d2lps.cluster.processes.addresses import LocalPlaces, Place
from d2lps.cluster.processes.calls import ClusterError
from d2lps.cluster.processes.probe import is_free

BLOCK = 20  # clusters that start at once shall not want the same ports
SILENCE = 30.0  # seconds without a word after which a keeper gives up


class SshPlaces(LocalPlaces):
    """Workers and servers on other machines, the rest on this one.

    Args:
        num_workers, num_servers: how many; number k of each is on host k mod
            `len(hosts)`.
        hosts: what `ssh` takes: names, 'user@name', or an alias.
        server_hosts: the same for the servers, if they have others.
        address: this machine's, as the hosts reach it; by default the one
            from which the first of them sees the connection come.
        ports: on which all machines must reach each other, and this one.
        python, ssh: as in `SshCommand`.

    Raises:
        ValueError: for a bad argument.
    """
    patience, card = 14.0, ''

    def __init__(self, num_workers: int, num_servers: int,
                 hosts: Sequence[str],
                 server_hosts: Sequence[str] | None = None,
                 address: str | None = None, ports: range | None = None,
                 python: str | None = None,
                 ssh: Sequence[str] | None = None) -> None:
        names = check_hosts('hosts', hosts)
        others = (names if server_hosts is None
                  else check_hosts('server_hosts', server_hosts))
        # Where worker 0, worker 1, … and server 0, server 1, … shall run.
        self._for = [[some[k % len(some)] for k in range(n)]
                     for some, n in (
                         (names, num_workers), (others, num_servers))]
        self._ports = check_ports(ports, 1 + num_workers + num_servers)
        if address is not None and not is_here(address):
            raise ValueError('address must be an IPv4 address of this '
                             f"machine, such as '10.0.0.1'; it was "
                             f'{shown(address)}')
        self._address = address
        self._ssh_command = SshCommand(python, ssh)
        self._cwd = os.getcwd()
        first = random.randrange(0, len(self._ports), BLOCK)
        self._ports = [*self._ports[first:], *self._ports[:first]]
        self._connect()

    def _connect(self):
        """Set up the connections to the machines; none of them is used yet."""
        super().__init__(*map(len, self._for))
        self._names = list(dict.fromkeys(sum(self._for, [])))
        self._hosts = [Host(
            name, self._ssh_command, silence=SILENCE, cwd=self._cwd, look={
                'python': list(sys.version_info[:2]), 'ports': self._ports})
            for name in self._names]
        self.keepers += self._hosts

    def without(self, lost: Sequence[str]) -> 'SshPlaces | None':
        workers, servers = self._for
        left = [name for name in self._names if f'host {name}' not in lost]
        workers = [name for rank, name in enumerate(workers)
                   if name in left and f'worker {rank}' not in lost]
        # What was on a lost host goes to the others, in turn.
        servers = [name if name in left else left[rank % len(left)]
                   for rank, name in enumerate(servers)] if left else []
        new = copy.copy(self)
        new._for = [workers, servers]
        if workers:
            new._connect()
        return new if workers else None

    def use_answers(self) -> None:
        """Take addresses and ports from what the keepers have said."""
        said = [host.status for host in self._hosts]
        addresses = [status['address'] for status in said]
        free = set(self._ports).intersection(
            *(status['ports'] for status in said))
        self._ports = [port for port in self._ports if port in free]
        head = head_of(self._names, addresses,
                       self._address or said[0]['reader'])
        self.head = Place(self.head.keeper, head)
        for mine, names in zip((self.workers, self.servers), self._for):
            for rank, k in enumerate(map(self._names.index, names)):
                mine[rank] = Place(self._hosts[k],
                                   address_for_rank(addresses[k], rank))

    def free_ports(self, n: int) -> list[int]:
        """The next ports that are free here; in the end, the first again.

        On the other machines, they were when these were looked at.
        """
        found = [port for port in self._ports
                 if is_free(self.head.address, port)][:n]
        if len(found) < n:
            raise OSError(f'the machines have no {n} free ports in common '
                          '(see ports=)')
        self._ports = [port for port in self._ports
                       if port not in found] + found
        return found

    def traffic(self) -> NoReturn:
        raise ValueError('with hosts=, the bytes on the links are not '
                         'counted; a slow network on one machine counts '
                         'them: Cluster(network=Network())')


def head_of(hosts: Sequence[str], addresses: Sequence[str], head: str) -> str:
    """This machine's address `head`; ClusterError if it will not do."""
    local = [ipaddress.ip_address(one).is_loopback
             for one in (*addresses, head)]
    if any(local) and not all(local):
        raise ClusterError(
            'only a part of the machines has an address that the others can '
            f'reach: {addresses}, and here {head}. Name them as the other '
            'machines do, and set address=')
    if not is_here(head):
        raise ClusterError(
            f'{hosts[0]} sees this machine as {head}, which is not an address '
            'of its own; set address= to one that the hosts can reach')
    return head


def address_for_rank(address: str, rank: int) -> str:
    """An address as a text that gives a process this rank.

    MXNet gives rank 0 to the greatest address, as texts are sorted.  A
    number with zeros in front is read as octal: '10.9.0.1' is the same as
    '012.9.0.1', '0012.9.0.1' and so on, each of which sorts before the last.
    """
    first, rest = address.split('.', 1)
    return f"{'0' * (rank + 1)}{int(first):o}.{rest}"


def is_here(address: str) -> bool:
    """Is this an IPv4 address of this machine?"""
    try:
        return is_free(str(ipaddress.IPv4Address(str(address))), 0)
    except ValueError:
        return False

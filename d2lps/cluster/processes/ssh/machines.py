"""Where a cluster's processes run when they run on several machines."""
import ipaddress
import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass

from d2lps.cluster.processes.group import MEMORY
from d2lps.cluster.processes.places import Here, Place, is_free
from d2lps.cluster.processes.ssh.distant import Distant, Host
from d2lps.cluster.processes.ssh.way import Way, check_hosts, check_ports
from d2lps.settings import SETTINGS

BLOCK = 20  # clusters that start at once shall not want the same ports
PATIENCE = 14.0  # seconds in which all machines have to answer
QUIET = 24.0  # seconds without a sign of life of a keeper; ssh needs 20
SILENCE = 30.0  # seconds without a word after which a keeper gives up
SWEEP = 3.0  # seconds to remove what a keeper could not


@dataclass(frozen=True)
class Far(Place):
    """A place on another machine; `prefix` is the way to its keeper."""
    host: Host = None

    def member(self, role, rank):
        return self.host if role == 'host' else Distant(role, rank, self.host)

    def command(self):
        return list(self.prefix)


class Machines(Here):
    """Workers and servers on other machines, the rest on this one.

    Args:
        workers, servers: how many; number k of each is on host k mod
            `len(hosts)`.
        hosts: what `ssh` takes: names, 'user@name', or an alias.
        server_hosts: the same for the servers, if they have others.
        address: this machine's, as the hosts know it; by default the one
            from which the first of them sees the connection come.
        ports: on which all machines must reach each other, and this one.
        way: arguments of `Way`.

    Raises:
        ValueError: for a bad argument.
    """

    def __init__(self, workers, servers, hosts, server_hosts=None,
                 address=None, ports=None, **way):
        super().__init__(workers, servers)
        names = check_hosts('hosts', hosts)
        others = (names if server_hosts is None
                  else check_hosts('server_hosts', server_hosts))
        # Where worker 0, worker 1, … and server 0, server 1, … shall run.
        self._for = [[some[k % len(some)] for k in range(n)]
                     for some, n in ((names, workers), (others, servers))]
        self._names = list(dict.fromkeys(sum(self._for, [])))
        self._ports = check_ports(ports, 1 + workers + servers)
        if address is not None and not is_here(address):
            raise ValueError('address must be an IPv4 address of this '
                             f"machine, such as '10.0.0.1'; it was "
                             f'{address!r}')
        self._address, self._way = address, Way(**way)
        self._hosts = []

    def start(self, group):
        """Start a keeper on all machines at once."""
        self._group, self._end = group, time.monotonic() + PATIENCE
        first = random.randrange(0, len(self._ports), BLOCK)
        self._ports = [*self._ports[first:], *self._ports[:first]]
        for name in self._names:
            host = Host(name, group, lambda *left, name=name:
                        self._sweep(name, *left))
            place = Far(prefix=self._way.to(name, 'keeper.py', SILENCE),
                        host=host)
            self._hosts.append(group.add(
                'host', 0, place, {}, ports=self._ports,
                python=list(sys.version_info[:2])))

    def _sweep(self, name, folder, pids):
        """Have what a keeper has left removed, if the host can be reached."""
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(self._way.to(name, 'keeper.py', 'sweep', folder,
                                        *pids), stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=SWEEP, check=False)

    def ready(self):
        late = [one for one in self._hosts if 'address' not in one.told]
        if late and time.monotonic() < self._end:
            return False
        reason = (', '.join(one.label() for one in late) +
                  f' did not answer within {PATIENCE:.0f} s'
                  if late else self._settle())
        if reason:
            self._group.do(lambda: self._group.fail(reason, late))
        return True

    def _settle(self):
        """Take addresses and ports from the answers; return what is wrong."""
        told = [one.told for one in self._hosts]
        addresses = [one['address'] for one in told]
        free = set(self._ports).intersection(*(one['ports'] for one in told))
        self._ports = [port for port in self._ports if port in free]
        head, problem = head_of(self._names, addresses,
                                self._address or told[0]['reader'])
        if problem:
            return problem
        self.head = Place(head)
        job = {'cwd': os.getcwd(), 'settings': MEMORY | {
            name: os.environ[name] for name in SETTINGS}}
        for mine, names in zip((self.workers, self.servers), self._for):
            for rank, k in enumerate(map(self._names.index, names)):
                mine[rank] = Far(spelled(addresses[k], rank), (), job,
                                 self._hosts[k])
        return ''

    def free_ports(self, n):
        """The next ports that are free here; in the end, the first again.

        On the other machines, they were when these were looked at.
        """
        found = [port for port in self._ports
                 if is_free(port, self.head.address)][:n]
        if len(found) < n:
            raise OSError(f'the machines have no {n} free ports in common '
                          '(see ports=)')
        self._ports = [port for port in self._ports
                       if port not in found] + found
        return found

    def traffic(self):
        raise ValueError('with hosts=, nobody counts what goes over the '
                         'links; a slow network on one machine does: '
                         'Cluster(network=Network())')

    def tick(self, members, now):
        for one in self._hosts:
            one.ping(now)
            if now - one.beat > QUIET:  # before its processes are blamed
                self._group.fail(f'{one.label()} has not given a sign of life '
                                 f'for {now - one.beat:.0f} s', [one])


def head_of(hosts, addresses, head):
    """This machine's address `head`, and what is wrong with it or ''."""
    local = [ipaddress.ip_address(one).is_loopback
             for one in (*addresses, head)]
    if any(local) and not all(local):
        return head, ('only a part of the machines has an address that the '
                      f'others can reach: {addresses}, and here {head}. Name '
                      'them as the other machines do, and set address=')
    if not is_here(head):
        return head, (f'{hosts[0]} sees this machine as {head}, which is not '
                      'an address of its own; set address= to one that the '
                      'hosts can reach')
    return head, ''


def spelled(address, rank):
    """An address as a text that gives a process this rank.

    MXNet gives rank 0 to the greatest address, as texts are sorted.  A
    number with zeros in front is read as octal: '10.9.0.1' is the same as
    '012.9.0.1', '0012.9.0.1' and so on, each of which sorts before the last.
    """
    first, rest = address.split('.', 1)
    return f"{'0' * (rank + 1)}{int(first):o}.{rest}"


def is_here(address):
    """Is this an IPv4 address of this machine?"""
    try:
        return is_free(0, str(ipaddress.IPv4Address(str(address))))
    except ValueError:
        return False

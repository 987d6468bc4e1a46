"""Where a cluster's processes run when they run on several machines."""
import ipaddress
import os
import random
import shlex
import shutil
import sys
import time
from dataclasses import dataclass

from d2lps.cluster.group import MEMORY
from d2lps.cluster.places import PORTS, Here, Place, is_free
from d2lps.cluster.ssh.distant import Distant
from d2lps.engine import SETTINGS

OPTIONS = ('-4', '-T', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=10',
           '-o', 'ServerAliveInterval=5', '-o', 'ServerAliveCountMax=3')
PATIENCE = 14.0  # seconds in which all machines have to answer
SILENCE = 30.0  # seconds without a word after which a keeper gives up
# Finds the keeper without importing d2lps, which would load MXNet.
FIND = '; '.join([  # in one line, for the sake of some shells
    'import sys', 'sys.path.pop(0)', 'import importlib.util, runpy',
    'found = importlib.util.find_spec("d2lps") or sys.exit("d2lps is not '
    'installed for " + sys.executable)',
    'runpy.run_path(found.submodule_search_locations[0] + '
    '"/cluster/ssh/keeper.py", run_name="__main__")'])


@dataclass(frozen=True)
class Far(Place):
    """A place on another machine; `prefix` is the way to it."""
    host: str = ''

    def member(self, role, rank):
        return Distant(role, rank, self.host)

    def command(self):
        return list(self.prefix)


class Machines(Here):
    """Workers and servers on other machines, the rest on this one.

    Args:
        workers, servers: how many; number k of each is on host k mod
            `len(hosts)`.
        hosts: what `ssh` takes: names, 'user@name', or an alias.
        address: this machine's, as the hosts know it; by default the one
            from which the first of them sees the connection come.
        python: the Python on the hosts that has d2lps; by default the
            same path as here.
        ssh: the command, with options such as `('ssh', '-p', '2222')`.

    Raises:
        ValueError: for a bad argument.
    """

    def __init__(self, workers, servers, hosts, address=None, python=None,
                 ssh=None):
        super().__init__(workers, servers)
        self._hosts = _check(hosts)[:max(workers, servers)]
        ssh = ('ssh',) if ssh is None else ssh
        if isinstance(ssh, str) or not (
                ssh and all(isinstance(word, str) for word in ssh)):
            raise ValueError("ssh must be a list such as ['ssh', '-p', "
                             f"'2222']; it was {ssh!r}")
        if not shutil.which(ssh[0]):
            raise ValueError(f'ssh must name a program; there is no {ssh[0]}')
        if address is not None and not is_here(address):
            raise ValueError('address must be an IPv4 address of this '
                             f"machine, such as '10.0.0.1'; it was "
                             f'{address!r}')
        self._address = address
        run = shlex.join([python or sys.executable, '-u', '-c', FIND,
                          str(SILENCE)])
        self._prefix = {host: (*ssh, *OPTIONS, '--', host, 'exec ' + run)
                        for host in self._hosts}
        self._looks, self._end = [], None

    def start(self, group):
        """Look at all machines at once."""
        self._group, self._end = group, time.monotonic() + PATIENCE
        self._offer = random.sample(PORTS, 500)
        self._looks = [
            group.add('host', rank, self._place(host), {},
                      ports=self._offer)
            for rank, host in enumerate(self._hosts)]

    def _place(self, host, address=None):
        job = {'python': list(sys.version_info[:2]), 'cwd': os.getcwd(),
               'settings': MEMORY | {
                   name: os.environ[name] for name in SETTINGS}}
        return Far(address, self._prefix[host], job, host)

    def ready(self):
        late = [one for one in self._looks if not one.told]
        if not late and self._looks:
            reason = self._settle()
        elif self._end and time.monotonic() > self._end:
            reason = ', '.join(one.host for one in late) + (
                f' did not answer within {PATIENCE:.0f} s')
        else:
            return False
        if reason:
            self._group.do(lambda: self._group.fail(reason, late))
        return True

    def _settle(self):
        """Take addresses and ports from the answers; return what is wrong."""
        told = [one.told for one in self._looks]
        addresses = [one['address'] for one in told]
        self._ports = set(self._offer).intersection(
            *(one['ports'] for one in told))
        head = self._address or told[0]['reader']
        local = [ipaddress.ip_address(address).is_loopback
                 for address in (*addresses, head)]
        if any(local) and not all(local):
            return ('only a part of the machines has an address that the '
                    f'others can reach: {addresses}, and here {head}. Name '
                    'them as the other machines do, and set address=')
        if not is_here(head):
            return (f'{self._hosts[0]} sees this machine as {head}, which '
                    'is not an address of its own; set address= to one '
                    'that the hosts can reach')
        self.head = Place(head)
        n = len(addresses)
        for mine in (self.workers, self.servers):
            mine[:] = [self._place(self._hosts[k % n],
                                   spelled(addresses[k % n], k))
                       for k in range(len(mine))]
        return ''

    def free_ports(self, n):
        """Ports that were free on all machines when they were looked at."""
        found = [port for port in self._ports
                 if is_free(port, self.head.address)]
        if len(found) < n:
            raise OSError(f'the machines have no {n} free ports in common')
        return random.sample(found, n)

    def listen(self, folder):
        ports = self.free_ports(12)  # it needs 9, and will bind them soon
        self._ports.difference_update(ports)
        return [*super().listen(folder), '--IPController.engine_transport=tcp',
                f'--IPController.engine_ip={self.head.address}',
                f"--IPController.engine_ports={','.join(map(str, ports))}",
                f'--location={self.head.address}']

    def tick(self, members, now):
        for one in members:
            if isinstance(one, Distant):
                one.ping(now)


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
        ipaddress.IPv4Address(address)
    except ValueError:
        return False
    return is_free(0, address)


def _check(hosts):
    words = ("hosts must be a list of different machines, such as ['lab1', "
             "'user@lab2']; ")
    if isinstance(hosts, str) or not isinstance(hosts, (list, tuple)):
        raise ValueError(f'{words}it was {hosts!r}')
    if not hosts:
        raise ValueError(words + 'it was empty')
    for host in hosts:
        if (not isinstance(host, str) or not host or host.startswith('-')
                or len(host.split()) != 1 or host != host.strip()):
            raise ValueError(f'{words}{host!r} is no machine')
        if hosts.count(host) > 1:
            raise ValueError(f'{words}{host!r} is in it more than once')
    return list(hosts)

"""How other machines are named and reached."""
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence

from d2lps.checks import shown
from d2lps.cluster.processes.process import MEMORY
from d2lps.settings import SETTINGS

# What the reader has set for other purposes must not get in the way.
OPTIONS = ('-4', '-T', '-a', '-x', *(
    word for option in (
        'BatchMode=yes', 'ConnectTimeout=10', 'ServerAliveInterval=5',
        'ServerAliveCountMax=3', 'ControlMaster=no', 'ControlPath=none',
        'ClearAllForwardings=yes', 'RemoteCommand=none')
    for word in ('-o', option)))
PORTS = range(20_000, 21_000)  # a firewall has to let them through
FIND = '; '.join([  # in one line, for the sake of some shells
    'import sys', 'sys.path.pop(0)', 'import importlib.util',
    'importlib.util.find_spec("d2lps") or sys.exit("d2lps is not installed '
    'for " + sys.executable)',
    'from d2lps.cluster.processes import keeper, sockets', ''])


class SshCommand:
    """How to start programs of ours on other machines.

    Args:
        python: the Python on the hosts that has d2lps; by default the
            same path as here.
        ssh: the command, with options such as `('ssh', '-p', '2222')`.
    """

    def __init__(self, python: str | None = None,
                 ssh: Sequence[str] | None = None) -> None:
        ssh = ['ssh'] if ssh is None else ssh
        if not (isinstance(ssh, (list, tuple)) and ssh
                and all(isinstance(word, str) for word in ssh)):
            raise ValueError("ssh must be a list such as ['ssh', '-p', "
                             f"'2222']; it was {shown(ssh)}")
        if not isinstance(python or '', str) or python == '':
            raise ValueError('python must be a path such as /opt/d2lps/.venv/'
                             f'bin/python; it was {shown(python)}')
        if not shutil.which(ssh[0]):
            raise ValueError(f'ssh must name a program; there is no {ssh[0]}')
        self._ssh, self._python = ssh, python or sys.executable

    def to(self, host: str, call: str) -> list[str]:
        """The command that makes this call of one of our functions there."""
        settings = {name: os.environ[name] for name in SETTINGS} | MEMORY
        return [*self._ssh, *OPTIONS, '--', host, 'exec ' + shlex.join([
            self._python, '-c', f'import os, sys; os.environ.update({settings}'
            '); os.execvp(sys.argv[1], sys.argv[1:])',
            self._python, '-u', '-c', FIND + call])]


def check_hosts(name: str, hosts: Sequence[str]) -> list[str]:
    words = (f"{name} must be a list of different machines, such as ['lab1', "
             "'user@lab2']; ")
    if not isinstance(hosts, (list, tuple)) or not hosts:
        raise ValueError(f'{words}it was {shown(hosts)}')
    for host in hosts:
        if not (isinstance(host, str) and re.fullmatch(r'[^-\s]\S*', host)):
            raise ValueError(f'{words}{shown(host)} is no machine')
        if hosts.count(host) > 1:
            raise ValueError(f'{words}{shown(host)} is in it more than once')
    return list(hosts)


def check_ports(ports: range | None, least: int) -> list[int]:
    """The ports as a list; by default `PORTS`."""
    found = PORTS if ports is None else ports
    if not (isinstance(found, range) and len(found) >= least
            and 1024 <= min(found) and max(found) < 65536):
        raise ValueError(f'ports must be a range of {least} or more from '
                         'range(1024, 65536), such as range(20000, 20100); '
                         f'it was {shown(found)}')
    return list(found)

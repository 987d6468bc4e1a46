"""The connection to a keeper on another machine."""
import subprocess
from collections.abc import Sequence
from typing import Any

from d2lps.cluster.hosts.ssh_command import SshCommand
from d2lps.cluster.processes.process import KeeperConnection

CONNECTION = 255  # the exit code of ssh when it is the connection that failed


class Host(KeeperConnection):
    """An `ssh` with a keeper at its far end.

    Args:
        name: what ssh takes.
        ssh_command: the `SshCommand` that reaches it.
    """

    def __init__(self, name: str, ssh_command: SshCommand,
                 **begin: Any) -> None:
        super().__init__(f'host {name}',
                         ssh_command.to(name, 'keeper.main()'), **begin)
        self._host, self._ssh_command = name, ssh_command
        self.where = f'on {name}'

    def label(self) -> str:
        return self.name

    def fate(self) -> str | None:
        if self.code is None:
            return None
        if self.code == CONNECTION:
            return ('lost its connection' if self.status
                    else 'could not be reached with ssh')
        if self.status:
            return f'ended the connection with exit code {self.code}'
        return ('could not start the command' if self.code else
                'ended the connection without starting the command: does a '
                'login script exit there, or does its SSH server allow one '
                'command only?')

    def sweep(self, folder: str,
              pids: Sequence[int]) -> subprocess.Popen[bytes] | None:
        """Have what a keeper has left removed, if the host can be reached.

        Returns the `ssh` that is at it.
        """
        try:
            return subprocess.Popen(
                self._ssh_command.to(
                    self._host, f'sockets.sweep({folder!r}, {pids})'),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
        except OSError:  # ssh is gone, or there are too many programs
            return None

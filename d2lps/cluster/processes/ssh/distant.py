"""What stands for another machine, and for a process on it."""
import itertools
import json
import subprocess
import time

from d2lps.cluster.processes.process import Member

GOODBYE = 2.0  # seconds for a keeper to tidy up
CONNECTION = 255  # the exit code of ssh when it is the connection that failed


class Host(Member):
    """The line to a machine: an `ssh` with a keeper at its far end.

    Args:
        host: what ssh takes.
        group: the `Group` of which it is a member.
        sweep: is called as `sweep(folder, pids)` to remove what a keeper has
            left that could not do so.

    Attributes:
        told: what the keeper has said of itself and of the machine.
    """

    def __init__(self, host, group, sweep):
        super().__init__('host', 0)
        self.name, self.told, self._group = f'host {host}', {}, group
        self._sweep, self._pinged, self._end = sweep, 0, 0
        self._numbers, self._processes = itertools.count(), {}

    def add(self, process):
        """Give a process its number at this host."""
        number = next(self._numbers)
        self._processes[number] = process
        return number

    def read(self, stream):
        lines = super().read(stream)
        if lines is None or stream is self.process.stderr:
            return lines
        self.beat = time.monotonic()
        for line in lines:
            if line.startswith('{"keeper"'):
                self._hear(**json.loads(line)['keeper'])
            elif line.strip():  # a shell's greeting, say
                self.printed.append(line)
        return []

    def _hear(self, number=None, lines=(), said=False, **told):
        one = self._processes.get(number, self)
        one.told |= told
        if said:
            self._group.heard(one, lines)
        else:
            one.printed.extend(lines)

    def ping(self, now):
        """A keeper that hears nothing for long ends its processes."""
        if now - self._pinged > 1:
            self._pinged = now
            self.send(do='ping')

    def hang_up(self):
        """Have the keeper end its processes and tidy up."""
        self.close_input()
        self._end = time.monotonic() + GOODBYE

    def end(self):
        try:
            self.process.wait(max(0, self._end - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        if self.code != 0 and 'folder' in self.told:
            pids = [one.pid for one in self._processes.values() if one.pid]
            self._sweep(self.told['folder'], [*pids, self.told['pid']])
        super().end()

    def label(self):
        return self.name

    def fate(self):
        if self.code is None:
            return None
        if self.code == CONNECTION:
            return ('lost its connection' if self.told
                    else 'could not be reached with ssh')
        if self.told:
            return f'ended the connection with exit code {self.code}'
        return ('could not start what it was asked to' if self.code else
                'ended the connection without starting what it was asked to: '
                'does a login script exit there, or does its SSH server '
                'allow one command only?')


class Distant(Member):
    """A process on another machine, whose `Host` is `host`."""

    def __init__(self, role, rank, host):
        super().__init__(role, rank)
        self.host, self.told = host, {}

    def start(self, job, command, env):
        self.beat, self._number = time.monotonic(), self.host.add(self)
        self.host.send(do='start', number=self._number, job=job)

    @property
    def pid(self):
        return self.told.get('pid')

    @property
    def code(self):
        return self.told.get('code')

    def label(self):
        where = f'process {self.pid} ' if self.pid else ''
        return f'{self.name} ({where}on {self.host.name[5:]})'

    def send(self, **message):
        self.host.send(do='pass', number=self._number, message=message)

    def signal(self, number):
        self.host.send(do='signal', number=self._number, signal=number)

    def hang_up(self):
        self.host.send(do='end', number=self._number)

    def end(self):
        """Its keeper ends it."""

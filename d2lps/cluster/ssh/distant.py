"""What stands for a process on another machine."""
import json
import signal
import subprocess
import time

from d2lps.cluster.group import Member

GOODBYE = 2.0  # seconds for a keeper to tidy up
CONNECTION = 255  # the exit code of ssh when it is the connection that failed


class Distant(Member):
    """A process on another machine, or a first look at that machine.

    Attributes:
        told: what its keeper has said.
    """

    def __init__(self, role, rank, host):
        super().__init__(role, rank)
        self.host, self.told, self._pinged, self._end = host, {}, 0, 0
        if role == 'host':
            self.name, self.may_end = f'host {host}', True

    @property
    def pid(self):
        return self.told.get('pid')

    def read(self, stream):
        lines = super().read(stream)
        if lines and stream is self.process.stdout:
            for line in list(lines):
                if line.startswith('{"keeper"'):
                    self.told |= json.loads(line)['keeper']
                elif line.startswith('{'):
                    continue
                else:  # a shell's greeting, say
                    self.printed.append(line)
                lines.remove(line)
        return lines

    def signal(self, number):
        self.send(do='signal', number=number)

    def ping(self, now):
        """A keeper that hears nothing for long ends its process."""
        if now - self._pinged > 1:
            self._pinged = now
            self.send(do='ping')

    def hang_up(self):
        """Have the keeper end it and tidy up."""
        self.close_input()
        self._end = time.monotonic() + GOODBYE

    def end(self):
        try:
            self.process.wait(max(0, self._end - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        super().end()

    def label(self):
        where = f'process {self.pid} ' if self.pid else ''
        return self.name if self.role == 'host' else (
            f'{self.name} ({where}on {self.host})')

    def fate(self):
        code = self.told.get('code')
        if code is not None and self.process.poll() is not None:
            return (f'was ended by {signal.Signals(-code).name}' if code < 0
                    else f'ended with exit code {code}')
        fate = super().fate()
        if self.process.returncode == CONNECTION:
            return (f'lost the connection with {self.host}' if self.told
                    else 'could not be reached with ssh')
        if fate and not self.told and self.process.returncode:
            return 'could not start what it was asked to'
        return fate

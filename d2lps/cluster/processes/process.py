"""One process of a cluster, as the group sees it."""
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque

LINES, LONG = 12, 1000  # of what a process printed are kept; bytes a line


class Member:
    """One process: `role` and `rank`, what it printed last, how it ended."""

    def __init__(self, role, rank):
        self.role, self.rank = role, rank
        alone = role in ('scheduler', 'keeper', 'network')
        self.name = role if alone else f'{role} {rank}'
        self.printed = deque(maxlen=LINES)
        self.may_end = False  # it has been asked to, with exit code 0
        self.process, self.streams = None, ()  # which are to be read
        self.beat, self._rest = None, {}

    def start(self, job, command, env):
        self.process = subprocess.Popen(
            command, env=env, bufsize=0, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            umask=0o077,  # what it makes, such as a socket, is its own
            # Ctrl-C is for the reader's process, which then decides.
            start_new_session=True)
        self.streams = self.process.stdout, self.process.stderr
        self.beat = time.monotonic()
        self._outgoing = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()
        self.send(**job)

    @property
    def pid(self):
        return self.process.pid

    @property
    def code(self):  # None while it runs
        return self.process.poll()

    def label(self):
        return f'{self.name} (process {self.pid})'

    def signal(self, number):
        self.process.send_signal(number)

    def send(self, **message):
        self._outgoing.put(json.dumps(message).encode() + b'\n')

    def close_input(self):
        """Close its standard input, after what has been sent so far."""
        self._outgoing.put(None)

    def _write(self):
        """In a thread, since a process that is stopped does not read."""
        try:
            with self.process.stdin as pipe:
                for line in iter(self._outgoing.get, None):
                    while line:
                        line = line[pipe.write(line):]
        except OSError:  # it has ended; the group will notice
            pass

    def read(self, stream):
        """Full lines that came in, or None when there will be no more."""
        data = os.read(stream.fileno(), 1 << 16)
        if not data:
            return None
        *lines, rest = (self._rest.get(stream, b'') + data).split(b'\n')
        if stream is self.process.stderr:  # what no one reads may be long
            lines, rest = [line[:LONG] for line in lines], rest[-LONG:]
        self._rest[stream] = rest
        return [line.decode(errors='replace') for line in lines]

    def hang_up(self):
        """Is called before `end`, for all that will end."""

    def end(self):
        """Kill it and whatever it has started, and wait for that."""
        for _ in range(50):
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):  # none is left
                break
            self.process.wait()
            time.sleep(0.01)
        self.process.wait()
        self.close_input()
        self._writer.join(1)

    def fate(self):
        """How it ended, in words; None while it runs."""
        code = self.code
        return (None if code is None else f'ended with exit code {code}'
                if code >= 0 else f'was ended by {signal.Signals(-code).name}')

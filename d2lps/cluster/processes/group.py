"""Start the processes of a cluster, watch them, and end them all."""
import json
import os
import queue
import selectors
import socket
import sys
import threading
import time
import traceback
from concurrent.futures import Future

from d2lps.cluster.processes.member import tidy

SILENCE = 30.0  # seconds without a sign of life until a process is given up
TICK = 0.1  # seconds between two looks at the processes
# Memory that glibc asks the system for anew costs a store more time than its
# copying: let it keep what it has. (A push and pull of 40 MB: 0.11 to 0.05 s.)
MEMORY = {'MALLOC_MMAP_MAX_': '0', 'MALLOC_TRIM_THRESHOLD_': str(1 << 40),
          'MALLOC_ARENA_MAX': '1'}


class Group(threading.Thread):
    """Processes that live and die together, and the thread that watches.

    Args:
        folder: for their files; removed at the end.
        hear: is called as `hear(member, message)` for what a process says.
        tick: is called as `tick(now)` every 0.1 seconds.
        failed: is called as `failed(text, when)` after the group has ended
            because a process did, fell silent, or `fail` was called.

    All three are called in this thread, and so is everything else here but
    `do` and `close`.
    """

    def __init__(self, folder, hear, tick, failed):
        super().__init__(name='d2lps cluster', daemon=True)
        self.folder, self.members, self.failure = folder, [], None
        self._hear, self._tick, self._failed = hear, tick, failed
        self._selector = selectors.DefaultSelector()
        self._tasks = queue.Queue()
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._ended, self._pid = False, os.getpid()
        self._lock = threading.Lock()  # nothing is put in after the end
        self.start()

    def do(self, function, timeout=30):
        """Call `function` in the watching thread and return its result.

        Raises:
            RuntimeError: if that has ended.
        """
        future = Future()
        with self._lock:
            if self._ended:
                raise RuntimeError('this cluster is closed')
            self._tasks.put((function, future))
            self._wake.send(b'.')
        return future.result(timeout)

    def add(self, role, rank, place, env, **job):
        """Start a process at a `Place`, with more environment `env`."""
        one = place.member(role, rank)
        job |= place.job | {
                'role': role, 'rank': rank, 'name': one.name, 'env': env,
                'folder': self.folder,
                'path': [os.path.abspath(path) for path in sys.path]}
        # Whatever the reader has set for MXNet's cluster is not for ours.
        inherited = MEMORY | {
            name: value for name, value in os.environ.items()
            if not name.startswith(('DMLC_', 'PS_', 'PORT'))}
        one.start(job, place.command(), inherited)
        for stream in one.streams:
            self._selector.register(stream, selectors.EVENT_READ, one)
        self.members.append(one)
        return one

    def run(self):
        while not self._ended:
            try:
                self._step(TICK)
            except Exception:  # no one else would ever hear of it
                self.fail('the cluster stopped working because of an error:\n'
                          + traceback.format_exc())
        for one in (self._selector, self._wake, self._woken):
            one.close()

    def _step(self, seconds):
        ready = [key for key, _ in self._selector.select(seconds)]
        # A server's report of a fault has to overtake the workers' questions.
        for key in sorted(ready, key=lambda key: key.data is None or
                          key.data.role != 'server'):
            if key.data is None:
                self._woken.recv(1 << 10)
            elif not key.fileobj.closed:  # by what was heard just before
                self._read(key.data, key.fileobj)
        while not self._tasks.empty():
            function, future = self._tasks.get()
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
        if not self.failure:
            self._check(time.monotonic())

    def _read(self, one, stream):
        lines = one.read(stream)
        if lines is None:
            self._selector.unregister(stream)
        elif stream is one.process.stderr:
            one.printed.extend(lines)
        else:
            self.heard(one, lines)

    def heard(self, one, lines):
        """A process has said these lines of JSON."""
        one.beat = time.monotonic()
        for line in lines:
            message = json.loads(line)
            if message.get('kind') != 'beat' and not self.failure:
                self._hear(one, message)

    def _check(self, now):
        dead = [one for one in self.members if one.fate()
                and not (one.may_end and one.code == 0)]
        silent = [one for one in self.members if not one.fate()
                  and now - one.beat > SILENCE]
        if dead or silent:
            for _ in range(20):  # their last words may be on their way
                for key, _ in self._selector.select(0):
                    if key.data in dead:
                        self._read(key.data, key.fileobj)
            self.fail('; '.join(
                [f'{one.label()} {one.fate()}' for one in dead] +
                [f'{one.label()} has not given a sign of life for '
                 f'{now - one.beat:.0f} s' for one in silent]), dead + silent)
        else:
            self._tick(now)

    def fail(self, reason, culprits=()):
        """End all processes because of `reason`, and report it."""
        if self.failure:
            return
        words, now = [reason], time.monotonic()
        for one in culprits:
            words += [f'the last lines that {one.name} wrote:',
                      *('    ' + line for line in one.printed or ['(none)'])]
        self.failure = '\n'.join(words)
        self.end(self.members)
        tidy(self.folder)
        self._failed(self.failure, now)

    def end(self, members):
        """End these members and forget them."""
        for one in members:
            one.hang_up()
        for one in list(members):
            one.end()
        for one in list(members):
            for stream in one.streams:
                if stream.fileno() in self._selector.get_map():
                    self._selector.unregister(stream)
                stream.close()
            self.members.remove(one)

    def close(self):
        """End all processes and the watch; may be called twice."""
        # A process forked from this one has no part in it, not even at exit.
        if self._ended or os.getpid() != self._pid:
            return
        if threading.current_thread() is self:  # a finalizer, say
            self._tasks.put((self._finish, Future()))
            return
        try:
            self.do(self._finish)
        except RuntimeError:  # another thread was faster
            pass
        self.join()

    def _finish(self):
        self.end(self.members)
        tidy(self.folder)
        with self._lock:
            self._ended = True

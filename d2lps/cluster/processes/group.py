"""Start the processes of a cluster, watch them, and end them all."""
import os
import queue
import selectors
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from d2lps.annotations import Message
from d2lps.cluster.processes.calls import ClusterError
from d2lps.cluster.processes.lines import Inlet, serve
from d2lps.cluster.processes.process import KeeperConnection, Process
from d2lps.cluster.processes.shortage import advice_for, needs
from d2lps.cluster.processes.sockets import make_folder, tidy

T = TypeVar('T')
SILENCE = 30.0  # seconds without a sign of life until a process is given up
# MXNet's servers now and then abort when they have ended all their work.
GOOD = 0, -signal.SIGABRT  # exit codes of what was asked to end
TICK = 0.1  # seconds between two looks at the processes
GOODBYE = 2.0  # seconds for the keepers to end all processes, and to tidy up


@dataclass
class Death:
    """A process that died, or fell silent.

    `who` is its name, such as 'server 1', and `why` such as 'was ended by
    SIGKILL'. `seconds` went from the death being noticed (or from the call
    of `run`, if that came later) until the workers were at work again; None
    if they never were.
    """
    who: str
    why: str
    seconds: float | None = None
    noticed: float = field(default=0, repr=False)

    def __str__(self) -> str:
        return f'{self.who} {self.why}'


class Group(threading.Thread):
    """Processes that live and die together, and the thread that watches.

    Args:
        hear: is called as `hear(process, message)` for what a process says.
        tick: is called as `tick(now)`, at least every 0.1 seconds.
        failed: is called as `failed(text, when)` after the group has ended
            because a process did, fell silent, or `fail` was called.

    All three are called in this thread, and so is everything else here but
    `do` and `close`.  What the processes need in files is in `folder`, which
    is removed at the end.
    `failure` says why all have been ended; `died` are those that did first.
    """

    def __init__(self, hear: Callable[[Process, Message], None],
                 tick: Callable[[float], None],
                 failed: Callable[[str, float], None]) -> None:
        super().__init__(name='d2lps cluster', daemon=True)
        self.keepers: list[KeeperConnection] = []
        self.failure, self.died = '', list[Death]()
        self._hear, self._tick, self._failed = hear, tick, failed
        self._tasks: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = (
            queue.Queue())
        self._ended, self._pid = False, os.getpid()
        self._looked = time.monotonic()
        self._lock = threading.Lock()  # nothing is put in after the end
        with ExitStack() as undo:
            with needs('a cluster cannot start'):
                self._selector = selectors.DefaultSelector()
                undo.callback(self._selector.close)
                woken, wake = os.pipe()
            self._wake = os.fdopen(wake, 'wb', 0)
            undo.callback(self._wake.close)
            self._woken = Inlet(self._selector, os.fdopen(woken, 'rb', 0),
                                lambda lines: None)
            undo.callback(self._woken.close)
            self.folder = make_folder()
            undo.callback(tidy, self.folder)
            with needs('a cluster cannot start'):
                self.start()
            undo.pop_all()  # from here on, `close` does it

    def do(self, function: Callable[[], T], timeout: float = 30) -> T:
        """Call `function` in the watching thread and return its result.

        Raises:
            ClusterError: if that has ended.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._ended:
                raise ClusterError('this cluster is closed, or is being '
                                   'started anew')
            self._tasks.put((function, future))
            self._wake.write(b'\n')
        return future.result(timeout)

    @property
    def processes(self) -> list[Process]:
        """All but the keepers."""
        return [process for keeper in self.keepers
                for process in keeper.processes.values()]

    def keep(self, keeper: KeeperConnection) -> None:
        """Start a keeper."""
        keeper.start(self._selector, self._heard, self.folder)
        self.keepers.append(keeper)

    def run(self) -> None:
        while not self._ended:
            try:
                self._step()
            except Exception:  # nobody sees an error of this thread
                self.fail('the cluster stopped working because of an error:\n'
                          + traceback.format_exc())
        for end in (self._woken, self._selector, self._wake):
            end.close()

    def _step(self):
        serve(self._selector, TICK)
        while not self._tasks.empty():
            function, future = self._tasks.get()
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
        if not self.failure:
            self._check(time.monotonic())

    def _heard(self, process, message):
        if message.get('kind') != 'beat' and not self.failure:
            self._hear(process, message)

    def _check(self, now):
        """End all if a process has ended, or fallen silent."""
        # On a busy machine, this thread may wait long for a core or a lock.
        # That time is no silence of the others.
        missed = max(0, now - self._looked - SILENCE / 10)
        self._looked = now
        for one in (*self.keepers, *self.processes):
            one.beat = min(now, one.beat + missed)
        dead = [one for one in [*self.keepers, *self.processes]
                if one.fate() and not _ended_as_asked(one)]
        # A process whose keeper is silent, too, need not be to blame.
        silent = {one: now - one.beat for one in self.keepers
                  if not one.status.get('loading')}  # it cannot write then
        silent |= {one: now - one.beat for one in self.processes
                   if now - one.keeper.beat < SILENCE / 2}
        silent = {one: seconds for one, seconds in silent.items()
                  if seconds > SILENCE and not one.fate()}
        for one in dead:
            one.drain()
        if dead or silent:
            return self.fail_dead({one: one.fate() for one in dead} | {
                one: f'has not given a sign of life for {seconds:.0f} s'
                for one, seconds in silent.items()})
        self._tick(now)

    def fail_dead(self, dead: dict[Process | KeeperConnection, str]) -> None:
        """End all processes because of `dead`, {process: how it died}."""
        # A process that dies as it is forked writes to its keeper's errors.
        keepers = dict.fromkeys(
            one.keeper for one in dead
            if isinstance(one, Process) and not one.printed)
        self.fail('; '.join(f'{one.label()} {why}' for one, why
                            in dead.items()),
                  [*dead, *(one for one in keepers if one.printed)],
                  [(one.name, why) for one, why in dead.items()])

    def fail(self, reason: str,
             culprits: Sequence[Process | KeeperConnection] = (),
             died: Sequence[tuple[str, str]] = ()) -> None:
        """End all processes because of `reason`, and report it.

        If that was a death: who `died`, and why.
        """
        if self.failure:
            return
        words, now = [reason], time.monotonic()
        for one in culprits:
            words += [f'the last lines that {one.name} wrote:',
                      *('    ' + line for line in one.printed or ['(none)'])]
        words += filter(None, dict.fromkeys(
            advice_for('\n'.join(one.printed)) for one in culprits))
        self.died = [Death(*one, noticed=now) for one in died]
        self.failure = '\n'.join(words)
        try:
            self._end()
        except Exception:  # waiting calls must get the failure all the same
            self.failure += '\nan error when all processes were ended:\n' + (
                traceback.format_exc())
        self._failed(self.failure, now)

    def _end(self):
        """End all processes, also if one of them cannot be ended."""
        for keeper in self.keepers:
            keeper.close_stdin()
        end = time.monotonic() + GOODBYE
        while (any(keeper.code is None for keeper in self.keepers)
               and time.monotonic() < end):
            with suppress(Exception):  # messages no longer matter
                serve(self._selector, 0.01)
        with ExitStack() as in_any_case:
            in_any_case.callback(tidy, self.folder)
            in_any_case.callback(self.keepers.clear)
            for keeper in self.keepers:
                in_any_case.callback(keeper.end)

    def close(self) -> None:
        """End all processes and the watch; may be called twice."""
        # A process forked from this one must not end the cluster.
        if self._ended or os.getpid() != self._pid:
            return
        if threading.current_thread() is self:  # a finalizer, say
            self._tasks.put((self._finish, Future()))
            return
        try:
            self.do(self._finish)
        except ClusterError:  # another thread was faster
            pass
        self.join()

    def _finish(self):
        self.failure = self.failure or 'closed'  # messages are ignored now
        try:
            self._end()
        finally:
            with self._lock:
                self._ended = True


def _ended_as_asked(one):
    return one.expected_to_exit and one.code in GOOD

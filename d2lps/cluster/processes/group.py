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

from d2lps.cluster import messages
from d2lps.cluster.processes.calls import ClusterError
from d2lps.cluster.processes.lines import Inlet, serve
from d2lps.cluster.processes.process import (Heard, KeeperConnection,
                                             Process, Watched, how_it_ended)
from d2lps.cluster.processes.shortage import advice_for, explain_shortage
from d2lps.cluster.processes.sockets import make_folder, tidy

T = TypeVar('T')
SILENCE = 30.0  # seconds without a sign of life until a process is given up
# MXNet's servers now and then abort when they have ended all their work.
GOOD = 0, -signal.SIGABRT  # exit codes of what was asked to end
TICK = 0.1  # seconds between two looks at the processes
GOODBYE = 2.0  # seconds for the keeper to end all processes, and to tidy up


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
        name: what the keeper is called in errors.
        network: the slow network that the keeper makes, or None.
        cwd: the folder in which the processes start.
        hear: is called as `hear(process, message)` for what a process says.
        tick: is called as `tick(now)`, at least every 0.1 seconds.
        failed: is called as `failed(text, when, died)` after the group has
            ended because a process did, fell silent, or `fail` was called;
            `died` are the processes that died first, a list of `Death`.

    All three are called in this thread, and so is everything else here but
    `do` and `close`.  What the processes need in files is in `folder`, which
    is removed at the end.
    `failure` says why all have been ended.
    """

    def __init__(self, name: str, network: dict[str, Any] | None, cwd: str,
                 hear: Callable[[Process, Heard], None],
                 tick: Callable[[float], None],
                 failed: Callable[[str, float, list[Death]], None]) -> None:
        super().__init__(name='d2lps cluster', daemon=True)
        self.failure = ''
        self._hear, self._tick, self._failed = hear, tick, failed
        self._tasks: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = (
            queue.Queue())
        self._ended, self._pid = False, os.getpid()
        self._looked = time.monotonic()
        self._lock = threading.Lock()  # nothing is put in after the end
        with ExitStack() as undo, explain_shortage('a cluster cannot start'):
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
            self.keeper = KeeperConnection(name, network, cwd, self.folder,
                                           self._selector, self._heard)
            undo.callback(self.keeper.end)
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
        """All but the keeper."""
        return [*self.keeper.processes.values()]

    def run(self) -> None:
        while not self._ended:
            try:
                self._step()
            except Exception:  # nobody sees an error of this thread
                self.fail('the cluster stopped working because of an error:\n'
                          + traceback.format_exc())
        for end in (self._woken, self._selector, self._wake):
            end.close()

    def _step(self) -> None:
        serve(self._selector, TICK)
        while not self._tasks.empty():
            function, future = self._tasks.get()
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
        if not self.failure:
            self._check(time.monotonic())

    def _heard(self, process: Process, message: Heard) -> None:
        if not self.failure and not isinstance(message, messages.Beat):
            self._hear(process, message)

    def _check(self, now: float) -> None:
        """End all if a process has ended, or fallen silent."""
        # On a busy machine, this thread may wait long for a core or a lock.
        # That time is no silence of the others.
        missed = max(0, now - self._looked - SILENCE / 10)
        self._looked = now
        for process in (self.keeper, *self.processes):
            process.beat = min(now, process.beat + missed)
        # While it loads MXNet, the keeper cannot write.
        fates: dict[Watched, str] = {
            self.keeper: _fate(self.keeper, now, not self.keeper.loading)}
        # A process whose keeper is silent, too, need not be to blame.
        heard = now - self.keeper.beat < SILENCE / 2
        for process in self.processes:
            if not (process.expected_to_exit and process.code in GOOD):
                fates[process] = _fate(process, now, heard)
        dead = {process: fate for process, fate in fates.items() if fate}
        if dead:
            self._fail_dead(dead)
        else:
            self._tick(now)

    def _fail_dead(self, dead: dict[Watched, str]) -> None:
        """End all processes because of `dead`, {process: how it died}."""
        culprits = [*dead]
        # A process that dies as it is forked writes to its keeper's errors.
        if (self.keeper not in dead and self.keeper.printed
                and not all(process.printed for process in dead)):
            culprits.append(self.keeper)
        self.fail('; '.join(f'{process.label()} {why}'
                            for process, why in dead.items()), culprits,
                  [(process.name, why) for process, why in dead.items()])

    def fail(self, reason: str, culprits: Sequence[Watched] = (),
             died: Sequence[tuple[str, str]] = ()) -> None:
        """End all processes because of `reason`, and report it.

        If that was a death: who `died`, and why.
        """
        if self.failure:
            return
        lines, now = [reason], time.monotonic()
        for process in culprits:
            lines += [f'the last lines that {process.name} wrote:',
                      *('    ' + line for line
                        in process.printed or ['(none)'])]
        lines += filter(None, dict.fromkeys(
            advice_for('\n'.join(process.printed)) for process in culprits))
        self.failure = '\n'.join(lines)
        try:
            self._end()
        except Exception:  # waiting calls must get the failure all the same
            self.failure += '\nan error when all processes were ended:\n' + (
                traceback.format_exc())
        self._failed(self.failure, now, [
            Death(who, why, noticed=now) for who, why in died])

    def _end(self) -> None:
        """End all processes, and remove what they leave."""
        self.keeper.close_stdin()
        end = time.monotonic() + GOODBYE
        while self.keeper.code is None and time.monotonic() < end:
            with suppress(Exception):  # messages no longer matter
                serve(self._selector, 0.01)
        try:
            self.keeper.end()
        finally:
            self.keeper.processes.clear()
            tidy(self.folder)

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

    def _finish(self) -> None:
        try:
            if not self.failure:  # else all have been ended
                self.failure = 'closed'  # messages are ignored now
                self._end()
        finally:
            with self._lock:
                self._ended = True


def _fate(process: Process | KeeperConnection, now: float,
          heard: bool) -> str:
    """Describe how a process ended, or its long silence; '' if it lives.

    heard: whether it would be heard.
    """
    if process.code is not None:
        process.drain()
        return how_it_ended(process.code)
    silent = now - process.beat
    return (f'has not given a sign of life for {silent:.0f} s'
            if heard and silent > SILENCE else '')

"""A worker asks the cluster before each call of MXNet that may never return.

The cluster's answers come from `d2lps.cluster.store.agreement`.
"""
import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from d2lps.annotations import Key
from d2lps.cluster import messages
from d2lps.cluster.messages import Answer, Fault, Question

T = TypeVar('T')


class Channel(Protocol):
    """The connection to the keeper; see `processes.channel`."""
    job: messages.Start

    def tell(self, message: messages.FromMember) -> None:
        """Send a message and go on."""

    def ask(self, question: Question) -> Answer:
        """Send a question and wait for the answer."""


class StoreError(RuntimeError):
    """The workers do not agree, or a server could not do its work."""


def single_threaded(method: Callable[..., T]) -> Callable[..., T]:
    """Let a method of a store refuse a second thread, and a forked process.

    MXNet would hang there.
    """
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if os.getpid() != self._client.pid:
            raise RuntimeError('the store works only in the worker itself, '
                               'not in a process that was forked from it')
        if not self._client.lock.acquire(blocking=False):
            raise RuntimeError('another thread of this worker is using the '
                               'store; make all calls in one thread')
        try:
            return method(self, *args, **kwargs)
        finally:
            self._client.lock.release()
    return call


@contextlib.contextmanager
def defer_sigint() -> Iterator[None]:
    """Let Ctrl-C wait for the end of this block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came, before = [], signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda *args: came.append(args))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[0])


class StoreClient:
    """A worker's questions to its cluster, over the process's `channel`.

    `faults` is the list to which the worker adds what servers report.
    """

    def __init__(self, channel: Channel, faults: list[Fault]) -> None:
        self.rank, self.faults = channel.job.rank, faults
        self.pid, self.lock = os.getpid(), threading.RLock()
        self.send, self._channel = channel.tell, channel

    def tell(self, call: str = '', push: Sequence[Key] = (),
             inside: bool = False) -> None:
        """Say what MXNet is going to do: see `messages.StoreCall`."""
        self.send(messages.StoreCall(call, push, inside))

    def ask(self, question: Question, faults: bool = True) -> Answer:
        """Wait until the other workers have made the calls that ours needs.

        Returns the cluster's answer. With `faults=False`, an update that
        failed at a server is not reported now.

        Raises:
            StoreError: if they do not do it in time, or cannot; or if a
                server could not update.
        """
        if faults:
            self.check_faults()
        answer = self._channel.ask(question)
        # A granted push is counted, so it must be sent. The next call reports
        # what failed meanwhile.
        if faults and (answer.error or not question.push):
            try:
                self.check_faults()
            except StoreError:
                self.tell()  # this worker will not be in a pull
                raise
        if answer.error:
            if answer.others:  # busy workers delay the cell's error
                print(f'StoreError: {answer.error}', file=sys.stderr,
                      flush=True)
            raise StoreError(answer.error)
        return answer

    def meet(self, call: str, same: Any = None, faults: bool = True,
             create: bool = False, close: bool = False,
             update: str | None = None) -> Answer:
        """Wait until all workers make this call, with the same `same`.

        For the other arguments see `messages.Question` and `ask`.
        """
        return self.ask(Question(call, same=[call, same], create=create,
                                 close=close, update=update), faults)

    def inside(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function of MXNet's; the cluster watches how long it takes.

        (After Ctrl-C, it is the end of the cell that stops the watch.)
        """
        self.tell(inside=True)
        result = function(*args)
        self.tell()
        return result

    def check_faults(self) -> None:
        """Raise StoreError if a server has reported a failed update."""
        if self.faults:
            fault = self.faults[0]
            self.faults.clear()
            raise StoreError(f'{fault.server} could not update, so the '
                             f'value stayed as it was:\n{fault.text}')

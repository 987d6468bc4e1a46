"""A worker asks the cluster before each call of MXNet that may never return.

The cluster's answers come from `d2lps.cluster.store.agreement`.
"""
import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from d2lps.annotations import Message

T = TypeVar('T')


class Channel(Protocol):
    """The connection to the main process; see `processes.member.Channel`."""
    job: Message

    def tell(self, kind: str, **message: Any) -> None:
        """Send a message and go on."""

    def ask(self, **message: Any) -> Message:
        """Send a message and wait for the answer."""


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

    `faults` is the list to which the channel adds what servers report.
    """

    def __init__(self, channel: Channel, faults: list[Message]) -> None:
        self.rank, self.faults = channel.job['rank'], faults
        self.pid, self.lock = os.getpid(), threading.RLock()
        self._channel = channel

    def tell(self, kind: str = 'call', **message: Any) -> None:
        """Say what MXNet is going to do; without a message, that it is done.

        call: the call, in words.
        push: the keys that are pushed.
        inside: MXNet may take long; the cluster watches that.
        """
        self._channel.tell(kind, **message)

    def ask(self, call: str, faults: bool = True, **message: Any) -> Message:
        """Wait until the other workers have made the calls that `call` needs.

        Returns the cluster's reply, a dictionary. With `faults=False`, an
        update that failed at a server is not reported now.

        Raises:
            StoreError: if they do not do it in time, or cannot; or if a
                server could not update.
        """
        if faults:
            self.check_faults()
        reply = self._channel.ask(call=call, **message)
        # A granted push is counted, so it must be sent. The next call reports
        # what failed meanwhile.
        if faults and ('error' in reply or 'push' not in message):
            try:
                self.check_faults()
            except StoreError:
                self.tell()  # this worker will not be in a pull
                raise
        if 'error' in reply:
            if reply.get('others'):  # busy workers delay the cell's error
                print(f"StoreError: {reply['error']}", file=sys.stderr,
                      flush=True)
            raise StoreError(reply['error'])
        return reply

    def meet(self, call: str, same: Any = None, **message: Any) -> Message:
        """Wait until all workers make this call, with the same `same`."""
        return self.ask(call, same=[call, same], **message)

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
            raise StoreError(f"{fault['server']} could not update, so the "
                             f"value stayed as it was:\n{fault['text']}")

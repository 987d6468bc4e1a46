"""Lines through pipes; neither end ever blocks the other."""
import os
import selectors
from collections.abc import Callable
from selectors import BaseSelector
from typing import IO, Any

LONG = 1 << 16  # bytes; what a program prints may come in longer lines


def serve(selector: BaseSelector, seconds: float) -> None:
    """Wait up to so many seconds; read and write what is ready.

    Urgent pipes go first.
    """
    ready = [key.data for key, _ in selector.select(seconds)]
    for end in sorted(ready, key=lambda end: not end.urgent):
        end.ready()


class Inlet:
    """The reading end of a pipe: `heard(lines)` is called with its lines.

    With `cut`, only the beginning of a line longer than LONG is kept.
    """

    def __init__(self, selector: BaseSelector, pipe: IO[bytes],
                 heard: Callable[[list[str]], Any], urgent: bool = False,
                 cut: bool = False) -> None:
        self.urgent, self._cut = urgent, cut
        self._rest: list[bytes] = []  # of a line that has not ended
        self._length = 0
        self._selector, self._pipe, self._heard = selector, pipe, heard
        os.set_blocking(pipe.fileno(), False)
        selector.register(pipe, selectors.EVENT_READ, self)

    def ready(self) -> None:
        if self.closed:
            return
        try:
            data = os.read(self._pipe.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not data:
            return self.close()
        lines = []
        for part in data.splitlines(keepends=True):
            self._add(part.removesuffix(b'\n'))
            if part.endswith(b'\n'):
                lines.append(self._line())
        if lines:
            self._heard(lines)

    def _add(self, part):
        if not self._cut or self._length < LONG:
            self._rest.append(part)
        self._length += len(part)

    def _line(self):
        """The line that has just ended, as a text."""
        line, length = b''.join(self._rest), self._length
        self._rest, self._length = [], 0
        if self._cut and length > LONG:
            return (line[:LONG].decode(errors='replace')
                    + f' … ({length - LONG:,} bytes more)')
        return line.decode(errors='replace')

    def drain(self) -> None:
        """Read the last words of a process that has ended."""
        for _ in range(20):  # another process may go on writing to the pipe
            self.ready()

    @property
    def closed(self) -> bool:
        return self._pipe.closed

    def close(self) -> None:
        if not self.closed:
            self._selector.unregister(self._pipe)
            self._pipe.close()
            if self._cut and self._rest:  # the last line has no end
                self._heard([self._line()])


class Outlet:
    """The writing end of a pipe; lines wait here while it is full."""
    urgent = False

    def __init__(self, selector: BaseSelector, pipe: IO[bytes]) -> None:
        self._selector, self._pipe = selector, pipe
        self._rest, self._waits = bytearray(), False
        os.set_blocking(pipe.fileno(), False)

    def send(self, line: str) -> None:
        self._rest += line.encode() + b'\n'
        if not self._waits:
            self.ready()

    def ready(self) -> None:
        if self._pipe.closed:
            return
        try:
            del self._rest[:os.write(self._pipe.fileno(), self._rest)]
        except BlockingIOError:
            pass
        except OSError:  # the other end has closed; its owner is found dead
            self._rest.clear()
        if self._waits != bool(self._rest):
            self._waits = not self._waits
            if self._waits:
                self._selector.register(self._pipe, selectors.EVENT_WRITE,
                                        self)
            else:
                self._selector.unregister(self._pipe)

    def close(self) -> None:
        if self._waits and not self._pipe.closed:
            self._selector.unregister(self._pipe)
        self._pipe.close()

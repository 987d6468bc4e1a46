"""Lines of JSON through pipes; nobody waits for the other end of one."""
import json
import os
import selectors
from collections.abc import Callable
from selectors import BaseSelector
from typing import IO, Any

LONG = 1 << 16  # bytes; what a program prints may come in longer lines


def serve(selector: BaseSelector, seconds: float) -> None:
    """Read and write what can be read and written in so many seconds.

    What is urgent goes first.
    """
    ready = [key.data for key, _ in selector.select(seconds)]
    for end in sorted(ready, key=lambda end: not end.urgent):
        end.ready()


class Inlet:
    """Our end of a pipe whose lines go to `heard(lines)`, as texts.

    With `cut`, of longer ones than LONG only the beginning is kept.
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
        """The line that has come, and nothing of the next one."""
        line, length = b''.join(self._rest), self._length
        self._rest, self._length = [], 0
        if self._cut and length > LONG:
            return (line[:LONG].decode(errors='replace')
                    + f' … ({length - LONG:,} bytes more)')
        return line.decode(errors='replace')

    def drain(self) -> None:
        """Read the last words of a process that has ended."""
        for _ in range(20):  # another may have the pipe, and go on writing
            self.ready()

    @property
    def closed(self) -> bool:
        return self._pipe.closed

    def close(self) -> None:
        if not self.closed:
            self._selector.unregister(self._pipe)
            self._pipe.close()
            if self._cut and self._rest:  # words without an end of line
                self._heard([self._line()])


class Outlet:
    """Our end of a pipe for messages; what finds no room in it waits here."""
    urgent = False

    def __init__(self, selector: BaseSelector, pipe: IO[bytes]) -> None:
        self._selector, self._pipe = selector, pipe
        self._rest, self._waits = bytearray(), False
        os.set_blocking(pipe.fileno(), False)

    def send(self, message: Any) -> None:
        self._rest += json.dumps(message).encode() + b'\n'
        if not self._waits:
            self.ready()

    def ready(self) -> None:
        if self._pipe.closed:
            return
        try:
            del self._rest[:os.write(self._pipe.fileno(), self._rest)]
        except BlockingIOError:
            pass
        except OSError:  # nobody is there any more; others will notice
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

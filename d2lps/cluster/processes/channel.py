"""A member's end of the connection to its keeper."""
import itertools
import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable

from d2lps.cluster import messages
from d2lps.cluster.processes.shortage import or_end
from d2lps.cluster.store.client import defer_sigint

BEAT = 1.0  # seconds between signs of life


class Channel:
    """The connection to the keeper; `job` says what this process is."""

    def __init__(self, job: messages.Start, incoming: int,
                 outgoing: int) -> None:
        self.job, self._in, self._out = job, os.fdopen(incoming), outgoing
        self._lock, self._numbers = threading.Lock(), itertools.count()
        self._answers: dict[int, queue.SimpleQueue[messages.Answer]] = {}

    def start(self, hear: Callable[[messages.ToMember], None]) -> None:
        """Listen: all messages but answers go to `hear(message)`.

        `hear` raises ValueError for a message that is not for this process.
        """
        self._hear = hear
        with or_end(f'{self.job.name} could not be started'):
            for work in (self._listen, self._beat):
                threading.Thread(target=work, daemon=True).start()

    def tell(self, message: messages.FromMember) -> None:
        """Send a message and go on."""
        text = messages.to_line(message) + '\n'
        line = memoryview(text.encode())  # slices of it are not copied
        with defer_sigint(), self._lock:  # a line must be written as a whole
            while line:
                line = line[os.write(self._out, line):]

    def ask(self, question: messages.Question) -> messages.Answer:
        """Send a question and wait for the answer.

        `Agreement` answers every question in bounded time, with an error if
        the others are too late.
        """
        number = question.number = next(self._numbers)
        answer = self._answers[number] = queue.SimpleQueue()
        try:
            self.tell(question)
            return answer.get()
        except BaseException:  # Ctrl-C: this worker no longer waits
            self.tell(messages.Cancel(number))
            raise
        finally:
            del self._answers[number]

    def _listen(self) -> None:
        for line in self._in:
            try:
                message = messages.from_line(line)
                if isinstance(message, messages.Answer):
                    self._answer(message)
                else:
                    self._hear(message)
            except Exception:  # nobody sees an error of this thread
                self.tell(messages.Broken(
                    f'cannot handle {line[:200].strip()}:\n'
                    f'{traceback.format_exc()}'))
        end_all()

    def _answer(self, message: messages.Answer) -> None:
        waiting = self._answers.get(message.number)
        if waiting:  # it was not interrupted meanwhile
            waiting.put(message)

    def _beat(self) -> None:
        try:
            while True:
                self.tell(messages.Beat())
                time.sleep(BEAT)
        except OSError:  # the keeper has ended
            end_all()


def end_all() -> None:
    """End this process and whatever it has started."""
    os.killpg(os.getpgrp(), signal.SIGKILL)

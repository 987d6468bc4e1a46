"""What the workers have to agree on before they use their store.

Every worker tells the cluster which call it is about to make. This module
counts the calls. It lets a worker go on once the others have made theirs, or
tells the worker for whom it has waited in vain. There is no process, no clock
and no network in here: the time is always an argument, in seconds.
"""
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from d2lps.annotations import Key, Message

# Seconds that a worker may be idle while others wait for it.
IDLE_PATIENCE = 5.0
SETTLING = 60.0  # seconds at least that a late reply may take


@dataclass
class Worker:
    """What is known of one worker.

    `call` is its last call of the store, made at the time `called`.
    `question` is its question that waits for an answer. `inside` is the time
    when MXNet began a call that has not ended, or None. `ahead` is how many
    functions it was asked to run and has not begun; the last was asked for at
    the time `asked`.
    """
    busy: bool | None = None
    error: str = ''
    since: float = 0
    call: str = ''
    called: float = 0
    question: Message | None = None
    inside: float | None = None
    granted: Message = field(default_factory=dict)
    ahead: int = 0
    asked: float = 0


class Agreement:
    """Answer the workers' questions.

    Pushes are counted for each key: a pull goes on when all have pushed it as
    often. A call such as `init` goes on when all have made the same.

    Args:
        num_workers: how many there are.
        timeout: how long a worker may wait for the others, in seconds.
        answer: is called as `answer(rank, number, reply)` with the reply to
            a worker's question of that number.
        met: is called as `met(questions)` when all workers have asked the
            same; the list `questions` has one for each. It returns the
            replies, or None if it will call `reply_all` later.
    """

    def __init__(self, num_workers: int, timeout: float,
                 answer: Callable[[int, int, Message], None],
                 met: Callable[[list[Message]], list[Message] | None]) -> None:
        self.workers = [Worker() for _ in range(num_workers)]
        self.timeout, self._answer, self._met = timeout, answer, met
        # {key: how often each worker has pushed it}
        self.pushes: dict[Key, list[int]] = {}
        # {rank: number} of questions with a late reply
        self._settling: dict[int, int] = {}
        self._kinds = {'state': self._state, 'question': self._question,
                       'call': self._call, 'cancel': self._cancel}

    def note_call(self, rank: int, now: float) -> None:
        """Take note that a worker is asked to run a cell or a function."""
        self.workers[rank].ahead += 1
        self.workers[rank].asked = now

    def hear(self, rank: int, message: Message, now: float) -> None:
        """Take note of a worker's message, by its `kind`.

        state: it has begun (`busy`) or ended a cell, with an `error`.
        question: see `StoreClient.ask`; `number` is the answer's, too.
        cancel: it was interrupted in question `number`, or in its answer.
        call: it makes a call without a question; see `StoreClient.tell`.
        """
        self._kinds[message['kind']](rank, self.workers[rank], message, now)
        self._go(now)

    def _state(self, rank, worker, message, now):
        worker.busy, worker.since = message['busy'], now
        worker.ahead = max(0, worker.ahead - message['busy'])
        worker.error = message.get('error', '').split('\n')[0][:150]
        worker.inside = None

    def _question(self, rank, worker, message, now):
        worker.call, worker.called = message['call'], now
        worker.question, worker.inside = message, None

    def _call(self, rank, worker, message, now):
        if 'call' in message:
            worker.call, worker.called = message['call'], now
        worker.inside = now if message.get('inside') else None
        self._count(rank, message.get('push', ()), 1)

    def _cancel(self, rank, worker, message, now):
        number = message['number']
        if worker.question and worker.question['number'] == number:
            worker.question = None
            self._settling.pop(rank, None)
        elif worker.granted.get('number') == number:
            self._count(rank, worker.granted.get('push', ()), -1)

    def _count(self, rank, keys, change):
        for key in keys:
            self.pushes.setdefault(key, [0] * len(self.workers))
            self.pushes[key][rank] += change

    def lagging(self, rank: int) -> dict[int, str]:
        """Whom worker `rank` waits for: {other worker's rank: what for}."""
        question = self.workers[rank].question or {}
        if 'same' in question:
            return {other: f"has not called {question['call']}"
                    for other, worker in enumerate(self.workers)
                    if not worker.question
                    or worker.question.get('same') != question['same']}
        late = {}
        keys = question.get('pull') or question.get('push') or ()
        for key in keys:
            counts = self.pushes.get(key, [0] * len(self.workers))
            for other, count in enumerate(counts):
                if count < counts[rank]:
                    late[other] = f'has not pushed {key!r}'
        return late

    def _go(self, now):
        """Answer every question that can be answered now."""
        going = True
        while going:  # a pull may wait for a push that goes on here
            going = [rank for rank, worker in enumerate(self.workers)
                     if worker.question and 'same' not in worker.question
                     and not self.lagging(rank)]
            for rank in going:
                question = self._grant(rank)
                self._count(rank, question.get('push', ()), 1)
                self.workers[rank].inside = now if 'pull' in question else None
                self._answer(rank, question['number'], {})
        questions = [worker.question or {} for worker in self.workers]
        first = questions[0].get('same')
        if first and not self._settling and all(
                question.get('same') == first for question in questions):
            self._settling = {rank: question['number']
                              for rank, question in enumerate(questions)}
            replies = self._met(questions)
            if replies is not None:
                self.reply_all(replies, now)

    def _grant(self, rank):
        """Take worker `rank`'s question, to answer it."""
        worker = self.workers[rank]
        worker.granted, worker.question = worker.question or {}, None
        return worker.granted

    def reply_all(self, replies: Sequence[Message], now: float) -> None:
        """Reply to every worker still waiting in the collective call.

        (A worker that was interrupted may have asked another since.)
        """
        settling, self._settling = self._settling, {}
        for rank, number in settling.items():
            self._grant(rank)
            self._answer(rank, number, replies[rank])
        self._go(now)

    def start_over(self) -> None:
        """Forget all pushes: the stores are new."""
        self.pushes = {}

    def missing(self, rank: int) -> list[list[Any]]:
        """Keys that worker `rank` has pushed less often: [[key, times]]."""
        return [[key, max(counts) - counts[rank]]
                for key, counts in self.pushes.items()
                if counts[rank] < max(counts)]

    def check(self, now: float) -> None:
        """Send an error to workers that have waited too long, or in vain.

        They wait in vain when every worker waits for another one, or has been
        idle for some seconds.
        """
        waits = {rank: worker.question
                 for rank, worker in enumerate(self.workers)
                 if worker.question}
        patience = min(IDLE_PATIENCE, self.timeout)
        idle = [worker for worker in self.workers if not worker.question]
        last = max(max(worker.since, worker.called)
                   for worker in self.workers)
        stuck = not self._settling and (
            not idle
            or not any(worker.busy or worker.ahead for worker in idle)
            and now - last >= patience)
        replies = []
        for rank, question in waits.items():
            limit = (max(SETTLING, self.timeout) if rank in self._settling
                     else self.timeout)
            if stuck or now - self.workers[rank].called >= limit:
                replies.append((rank, question['number'], {
                    'error': self._complaint(rank, now),
                    'others': any(one.busy for one in idle)}))
        for rank, number, reply in replies:
            self.workers[rank].question = None
            self._settling.pop(rank, None)
            self._answer(rank, number, reply)

    def _complaint(self, rank, now):
        worker = self.workers[rank]
        late = self.lagging(rank)
        who = '; '.join(f'worker {other} {what} ({self.state(other, now)})'
                        for other, what in late.items() if other != rank)
        return (f'worker {rank} waited {now - worker.called:.1f} s in '
                f"{worker.call}: {who or 'no answer came'}")

    def state(self, rank: int, now: float) -> str:
        """What a worker does, in words."""
        worker = self.workers[rank]
        ago = now - worker.called
        if worker.question or worker.inside is not None:
            return f'waiting in {worker.call} for {ago:.1f} s'
        if worker.ahead and not worker.busy:
            return (f'called {now - worker.asked:.1f} s ago, and it has not '
                    'begun')
        if worker.busy is None:
            return 'it has not been used yet'
        words = ('busy' if worker.busy else
                 f'idle for {now - worker.since:.1f} s')
        if worker.error:
            words += f', its last cell or function failed with {worker.error}'
        if worker.call:
            words += f'; last call {worker.call}, {ago:.1f} s ago'
        return words

    def overdue(self, now: float) -> list[int]:
        """Ranks of the workers whose call of MXNet has not ended in time."""
        return [rank for rank, worker in enumerate(self.workers)
                if worker.inside is not None
                and now - worker.inside >= self.timeout]

"""The calls that workers have to agree on before they use their store.

Every worker tells the cluster which call it is about to make. This module
counts the calls. It lets a worker go on once the others have made theirs, or
tells the worker for whom it has waited in vain. There is no process, no clock
and no network in here: the time is always an argument, in seconds.
"""
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from d2lps.annotations import Key
from d2lps.cluster.messages import (Answer, Cancel, OfStore, Question, State,
                                    StoreCall)

# Seconds that a worker may be idle while others wait for it.
IDLE_PATIENCE = 5.0
SETTLING = 60.0  # seconds at least that a late reply may take


@dataclass
class Worker:
    """The state of a worker, as far as the cluster knows it.

    `call` is its last call of the store, made at the time `called`.
    `question` is its question that waits for an answer, and `granted` the last
    that was answered. `inside` is the time
    when MXNet began a call that has not ended, or None. `ahead` is how many
    functions it was asked to run and has not begun; the last was asked for at
    the time `asked`.
    """
    busy: bool | None = None
    error: str = ''
    since: float = 0
    call: str = ''
    called: float = 0
    question: Question | None = None
    inside: float | None = None
    granted: Question | None = None
    ahead: int = 0
    asked: float = 0


class Agreement:
    """Answer the workers' questions.

    Pushes are counted for each key: a pull goes on when all have pushed it as
    often. A call such as `init` goes on when all have made the same.

    Args:
        num_workers: how many there are.
        timeout: how long a worker may wait for the others, in seconds.
        answer: is called as `answer(rank, answer)` with the answer to a
            worker's question.
        met: is called as `met(questions)` when all workers have asked the
            same; the list `questions` has one for each. It returns the
            answers, or None if it will call `answer_all` later. The numbers
            of the answers are set here.
    """

    def __init__(self, num_workers: int, timeout: float,
                 answer: Callable[[int, Answer], None],
                 met: Callable[[list[Question]], Sequence[Answer] | None]
                 ) -> None:
        self.workers = [Worker() for _ in range(num_workers)]
        self.timeout, self._answer, self._met = timeout, answer, met
        # {key: how often each worker has pushed it}
        self.pushes: dict[Key, list[int]] = {}
        # {rank: number} of questions with a late answer
        self._settling: dict[int, int] = {}

    def note_call(self, rank: int, now: float) -> None:
        """Take note that a worker is asked to run a cell or a function."""
        self.workers[rank].ahead += 1
        self.workers[rank].asked = now

    def hear(self, rank: int, message: OfStore, now: float) -> None:
        """Take note of a worker's message.

        A Cancel may also come when the question has just been answered.
        """
        worker = self.workers[rank]
        match message:
            case State():
                worker.busy, worker.since = message.busy, now
                worker.ahead = max(0, worker.ahead - message.busy)
                worker.error = message.error.split('\n')[0][:150]
                worker.inside = None
            case Question():
                worker.call, worker.called = message.call, now
                worker.question, worker.inside = message, None
            case StoreCall():
                if message.call:
                    worker.call, worker.called = message.call, now
                worker.inside = now if message.inside else None
                self._count(rank, message.push, 1)
            case Cancel():
                self._cancel(rank, worker, message.number)
        self._go(now)

    def _cancel(self, rank: int, worker: Worker, number: int) -> None:
        if worker.question and worker.question.number == number:
            worker.question = None
            self._settling.pop(rank, None)
        elif worker.granted and worker.granted.number == number:
            self._count(rank, worker.granted.push, -1)

    def _count(self, rank: int, keys: Sequence[Key], change: int) -> None:
        for key in keys:
            self.pushes.setdefault(key, [0] * len(self.workers))
            self.pushes[key][rank] += change

    def lagging(self, rank: int) -> dict[int, str]:
        """The workers for which `rank` waits: {other worker's rank: why}."""
        question = self.workers[rank].question
        late: dict[int, str] = {}
        if question is None:
            return late
        if question.same is not None:
            return {other: f'has not called {question.call}'
                    for other, worker in enumerate(self.workers)
                    if not worker.question
                    or worker.question.same != question.same}
        for key in question.pull or question.push:
            counts = self.pushes.get(key, [0] * len(self.workers))
            for other, count in enumerate(counts):
                if count < counts[rank]:
                    late[other] = f'has not pushed {key!r}'
        return late

    def _go(self, now: float) -> None:
        """Answer every question that can be answered now."""
        going = True
        while going:  # a pull may wait for a push that goes on here
            going = False
            for rank, worker in enumerate(self.workers):
                question = worker.question
                if (question and question.same is None
                        and not self.lagging(rank)):
                    going = True
                    worker.granted, worker.question = question, None
                    self._count(rank, question.push, 1)
                    worker.inside = now if question.pull else None
                    self._answer(rank, Answer(question.number))
        questions = [worker.question for worker in self.workers
                     if worker.question]
        if (len(questions) == len(self.workers) and not self._settling
                and not any(map(self.lagging, range(len(questions))))):
            self._settling = {rank: question.number
                              for rank, question in enumerate(questions)}
            answers = self._met(questions)
            if answers is not None:
                self.answer_all(answers, now)

    def answer_all(self, answers: Sequence[Answer], now: float) -> None:
        """Answer every worker still waiting in the collective call.

        (A worker that was interrupted may have asked another since.)
        """
        settling, self._settling = self._settling, {}
        for rank, number in settling.items():
            worker = self.workers[rank]
            worker.granted, worker.question = worker.question, None
            self._answer(rank, replace(answers[rank], number=number))
        self._go(now)

    def start_over(self) -> None:
        """Forget all pushes: the stores are new."""
        self.pushes = {}

    def missing(self, rank: int) -> list[tuple[Key, int]]:
        """Keys that worker `rank` has pushed less often: [(key, times)]."""
        return [(key, max(counts) - counts[rank])
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
        answers = {}
        for rank, question in waits.items():
            limit = (max(SETTLING, self.timeout) if rank in self._settling
                     else self.timeout)
            if stuck or now - self.workers[rank].called >= limit:
                answers[rank] = Answer(
                    question.number, self._complaint(rank, now),
                    others=any(worker.busy for worker in idle))
        for rank, answer in answers.items():
            self.workers[rank].question = None
            self._settling.pop(rank, None)
            self._answer(rank, answer)

    def _complaint(self, rank: int, now: float) -> str:
        worker = self.workers[rank]
        late = self.lagging(rank)
        who = '; '.join(f'worker {other} {why} ({self.state(other, now)})'
                        for other, why in late.items() if other != rank)
        return (f'worker {rank} waited {now - worker.called:.1f} s in '
                f"{worker.call}: {who or 'no answer came'}")

    def state(self, rank: int, now: float) -> str:
        """Describe what a worker does."""
        worker = self.workers[rank]
        ago = now - worker.called
        if worker.question or worker.inside is not None:
            return f'waiting in {worker.call} for {ago:.1f} s'
        if worker.ahead and not worker.busy:
            return (f'called {now - worker.asked:.1f} s ago, and it has not '
                    'begun')
        if worker.busy is None:
            return 'it has not been used yet'
        text = ('busy' if worker.busy else
                f'idle for {now - worker.since:.1f} s')
        if worker.error:
            text += f', its last cell or function failed with {worker.error}'
        if worker.call:
            text += f'; last call {worker.call}, {ago:.1f} s ago'
        return text

    def overdue(self, now: float) -> list[int]:
        """Ranks of the workers whose call of MXNet has not ended in time."""
        return [rank for rank, worker in enumerate(self.workers)
                if worker.inside is not None
                and now - worker.inside >= self.timeout]

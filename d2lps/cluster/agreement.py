"""What the workers have to agree on before they use their store.

Every worker tells the cluster what it is about to do.  The cluster keeps
count here, lets a worker go on once the others have done their part, and
tells it whom it waits for if they never do.  No process, no clock and no
network in here: the time is always an argument, in seconds.
"""
from dataclasses import dataclass, field

PATIENCE = 5.0  # seconds that a worker may be idle while others wait for it
SETTLING = 60.0  # seconds at least that a late reply may take


@dataclass
class Worker:
    """What is known of one worker.

    `call` is its last call of the store, made at `called`; `question` is
    the one that waits for an answer; `inside` is the time when MXNet itself
    began to work on a call that has not ended, or None.
    """
    busy: bool = None
    error: str = ''
    since: float = 0
    call: str = ''
    called: float = 0
    question: dict = None
    inside: float = None
    granted: dict = field(default_factory=dict)


class Agreement:
    """Answer the workers' questions.

    Args:
        workers: how many there are.
        timeout: how long a worker may wait for the others, in seconds.
        answer: is called as `answer(rank, number, reply)` with the reply to
            a worker's question of that number.
        met: is called as `met(questions)` when all workers have asked the
            same; the list `questions` has one for each. It returns the
            replies, or None if it will call `reply_all` later.
    """

    def __init__(self, workers, timeout, answer, met):
        self.workers = [Worker() for _ in range(workers)]
        self.timeout, self._answer, self._met = timeout, answer, met
        self.pushes = {}  # how often each worker has pushed a key
        self._settling = False  # all have met, the reply is being prepared

    def hear(self, rank, message, now):
        """Take note of a worker's message."""
        worker = self.workers[rank]
        if 'busy' in message:
            worker.busy, worker.since = message['busy'], now
            worker.error = message.get('error', '').split('\n')[0][:100]
            worker.inside = None
            return
        if 'cancel' in message:
            self._cancel(worker, rank, message['cancel'])
            return
        worker.inside = now if message.get('inside') else None
        if 'call' in message:
            worker.call, worker.called = message['call'], now
        if 'number' in message:
            worker.question = message
        else:
            self._count(rank, message.get('push', ()), 1)
        self._go(now)

    def _count(self, rank, keys, change):
        for key in keys:
            self.pushes.setdefault(key, [0] * len(self.workers))
            self.pushes[key][rank] += change

    def _cancel(self, worker, rank, number):
        """A worker was interrupted in a question, or in its answer."""
        if worker.question and worker.question['number'] == number:
            worker.question = None
        elif worker.granted.get('number') == number:
            self._count(rank, worker.granted.get('push', ()), -1)

    def lagging(self, rank):
        """Whom worker `rank` waits for: {other worker's rank: what for}."""
        question = self.workers[rank].question
        if 'same' in question:
            return {other: f"has not called {question['call']}"
                    for other, worker in enumerate(self.workers)
                    if not worker.question
                    or worker.question.get('same') != question['same']}
        late = {}
        for key in question.get('pull', question.get('push', ())):
            counts = self.pushes.get(key, [0] * len(self.workers))
            for other, count in enumerate(counts):
                if count < counts[rank]:
                    late[other] = f'has not pushed {key!r}'
        return late

    def _go(self, now):
        """Answer every question that can be answered now."""
        if self._settling:
            return
        for rank, worker in enumerate(self.workers):
            question = worker.question
            if question and 'same' not in question and not self.lagging(rank):
                worker.question, worker.granted = None, question
                self._count(rank, question.get('push', ()), 1)
                worker.inside = now if 'pull' in question else None
                self._answer(rank, question['number'], {})
        questions = [worker.question for worker in self.workers]
        if all(question and 'same' in question for question in questions):
            if all(question['same'] == questions[0]['same']
                   for question in questions):
                self._settling = True
                replies = self._met(questions)
                if replies is not None:
                    self.reply_all(replies)

    def reply_all(self, replies):
        """Answer the question that all workers have asked."""
        self._settling = False
        for rank, (worker, reply) in enumerate(zip(self.workers, replies)):
            question, worker.question = worker.question, None
            if question:  # else it was interrupted meanwhile
                worker.granted = question
                self._answer(rank, question['number'], reply)

    def start_over(self):
        """Forget all pushes: the stores are new."""
        self.pushes = {}

    def missing(self, rank):
        """Keys that worker `rank` has pushed less often: [[key, times]]."""
        return [[key, max(counts) - counts[rank]]
                for key, counts in self.pushes.items()
                if counts[rank] < max(counts)]

    def check(self, now):
        """Tell workers that have waited for too long, or in vain.

        Nobody will move any more when each worker waits for another, or is
        idle and has been for a while.
        """
        waits = [rank for rank, worker in enumerate(self.workers)
                 if worker.question]
        patience = min(PATIENCE, self.timeout)
        idle = [worker for worker in self.workers if not worker.question]
        last = max(max(worker.since, worker.called)
                   for worker in self.workers)
        stuck = not self._settling and (
            not idle or not any(worker.busy for worker in idle)
            and now - last >= patience)
        limit = (max(SETTLING, self.timeout) if self._settling
                 else self.timeout)
        messages = {rank: self._complaint(rank, now) for rank in waits
                    if stuck or now - self.workers[rank].called >= limit}
        for rank, message in messages.items():
            question, self.workers[rank].question = (
                self.workers[rank].question, None)
            self._settling = False
            self._answer(rank, question['number'], {'error': message})

    def _complaint(self, rank, now):
        worker = self.workers[rank]
        late = self.lagging(rank)
        who = '; '.join(f'worker {other} {what} ({self.state(other, now)})'
                        for other, what in late.items() if other != rank)
        return (f'worker {rank} waited {now - worker.called:.1f} s in '
                f"{worker.call}: {who or 'no answer came'}")

    def state(self, rank, now):
        """What a worker does, in words."""
        worker = self.workers[rank]
        ago = now - worker.called
        if worker.question or worker.inside is not None:
            return f'waiting in {worker.call} for {ago:.1f} s'
        if worker.busy is None:
            return 'it has not been used yet'
        words = ('busy' if worker.busy else
                 f'idle for {now - worker.since:.1f} s')
        if worker.error:
            words += f', its last cell or function failed with {worker.error}'
        if worker.call:
            words += f'; last call {worker.call}, {ago:.1f} s ago'
        return words

    def overdue(self, now):
        """Ranks for which MXNet itself has not done a call in time."""
        return [rank for rank, worker in enumerate(self.workers)
                if worker.inside is not None
                and now - worker.inside >= self.timeout]

"""What workers are told when they do, and do not, agree: no process here."""
from dataclasses import replace

import pytest
from d2lps.cluster.messages import (Answer, Cancel, Question, State,
                                    StoreCall)
from d2lps.cluster.store.agreement import IDLE_PATIENCE, SETTLING, Agreement

GO_ON = Answer()
LATE = Answer(error='the servers cannot load it')


class Workers:
    """Workers that talk with an `Agreement` by calling it."""

    def __init__(self, n=2, timeout=60):
        self.replies, self.numbers, self.now = {}, 0, 0
        self.met = []
        self.agreement = Agreement(n, timeout, self._answer, self._met)
        for rank in range(n):
            self.state(rank, busy=True)

    def _answer(self, rank, answer):
        self.replies[answer.number] = replace(answer, number=0)

    def _met(self, questions):
        self.met.append(questions)
        return [met(rank) for rank in range(len(questions))]

    def hear(self, rank, message):
        self.agreement.hear(rank, message, self.now)

    def tell(self, rank, **fields):
        self.hear(rank, StoreCall(**fields))

    def state(self, rank, busy, error=''):
        self.hear(rank, State(busy, error))

    def ask(self, rank, call, **fields):
        self.numbers += 1
        self.hear(rank, Question(call, self.numbers, **fields))
        return self.numbers

    def cancel(self, rank, number):
        self.hear(rank, Cancel(number))

    def meet(self, rank, call):
        return self.ask(rank, call, same=[call])

    def wait(self, seconds):
        self.now += seconds
        self.agreement.check(self.now)

    def error(self, number):
        return self.replies[number].error


def met(rank):
    """What a worker is answered once all have met."""
    return Answer(env={'RANK': str(rank)})


def test_a_pull_goes_on_once_all_have_pushed():
    w = Workers(3)
    w.tell(0, call="push('a')", push=['a'])
    pull = w.ask(0, "pull('a')", pull=['a'])
    w.tell(1, call="push('a')", push=['a'])
    assert not w.replies
    w.tell(2, call="push('a')", push=['a'])
    assert w.replies == {pull: GO_ON}


def test_a_pull_without_a_push_does_not_wait():
    w = Workers()
    w.tell(0, call="push('a')", push=['a'])
    assert w.replies.get(w.ask(1, "pull('a')", pull=['a'])) == GO_ON


def test_a_second_push_waits_until_the_first_is_complete():
    w = Workers()
    w.tell(0, call="push('a')", push=['a'])
    again = w.ask(0, "push('a')", push=['a'])
    assert not w.replies
    w.tell(1, call="push('a')", push=['a'])
    assert w.replies == {again: GO_ON}
    assert w.agreement.missing(0) == []
    assert w.agreement.missing(1) == [('a', 1)]


def test_a_push_that_goes_on_is_what_a_pull_waited_for():
    w = Workers()
    w.tell(0, call="push('a')", push=['a'])
    w.tell(1, call="push('b')", push=['b'])
    w.tell(0, call="push('b')", push=['b'])
    w.tell(0, call="push('b')", push=['b'])
    pull = w.ask(0, "pull('b')", pull=['b'])
    again = w.ask(1, "push('b')", push=['b'])
    assert w.replies == {again: GO_ON, pull: GO_ON}


def test_all_meet_in_the_same_call():
    w = Workers(3)
    numbers = [w.meet(rank, 'barrier()') for rank in range(3)]
    assert [w.replies[n] for n in numbers] == [met(r) for r in range(3)]
    assert len(w.met) == 1 and len(w.met[0]) == 3


def test_workers_in_different_calls_are_told_at_once():
    w = Workers()
    first, second = w.meet(0, "init('a')"), w.meet(1, "init('b')")
    w.wait(0.1)
    assert "worker 1 has not called init('a')" in w.error(first)
    assert "waiting in init('b')" in w.error(first)
    assert "worker 0 has not called init('b')" in w.error(second)


def test_a_circle_of_waits_is_told_at_once():
    w = Workers()
    w.tell(0, call="push('a')", push=['a'])
    pull = w.ask(0, "pull('a')", pull=['a'])
    barrier = w.meet(1, 'barrier()')
    w.wait(0.1)
    assert "worker 1 has not pushed 'a'" in w.error(pull)
    assert 'worker 0 has not called barrier()' in w.error(barrier)


def test_a_busy_worker_is_waited_for_until_the_timeout():
    w = Workers(timeout=60)
    w.tell(0, call="push('a')", push=['a'])
    w.now = 12
    w.tell(1, call="pull('b')")
    w.now = 20
    pull = w.ask(0, "pull('a')", pull=['a'])
    w.wait(59)
    assert not w.replies
    w.wait(1)
    assert w.error(pull) == (
        "worker 0 waited 60.0 s in pull('a'): worker 1 has not pushed 'a' "
        "(busy; last call pull('b'), 68.0 s ago)")


def test_an_idle_worker_is_not_waited_for_so_long():
    w = Workers()
    w.state(1, busy=False, error='ZeroDivisionError: division by zero')
    barrier = w.meet(0, 'barrier()')
    w.wait(IDLE_PATIENCE - 0.1)
    assert not w.replies
    w.wait(0.2)
    assert 'idle for 5.1 s' in w.error(barrier)
    assert 'failed with ZeroDivisionError: division by zero' in w.error(
        barrier)


def test_an_interrupted_question_does_not_count():
    w = Workers()
    number = w.meet(0, 'barrier()')
    w.cancel(0, number)
    w.meet(1, 'barrier()')
    assert not w.met


def test_a_push_that_was_interrupted_after_its_answer_does_not_count():
    w = Workers()
    for rank in (0, 1):
        w.tell(rank, call="push('a')", push=['a'])
    number = w.ask(0, "push('a')", push=['a'])
    assert w.replies[number] == GO_ON
    w.cancel(0, number)
    assert w.agreement.missing(1) == []


def test_a_late_reply_reaches_all():
    w = Workers()
    w.agreement._met = lambda questions: None
    numbers = [w.meet(rank, 'set_optimizer(SGD)') for rank in (0, 1)]
    w.wait(1)
    assert not w.replies
    w.agreement.answer_all([Answer(error='no')] * 2, w.now)
    assert [w.error(number) for number in numbers] == ['no', 'no']


def settling():
    """Workers who have met, and whom worker 1 has left by Ctrl-C."""
    w = Workers()
    meet, w.agreement._met = w.agreement._met, lambda questions: None
    first, second = (w.meet(rank, 'set_optimizer(SGD)') for rank in (0, 1))
    w.agreement._met = meet
    w.cancel(1, second)
    return w, first


def test_a_late_reply_answers_no_later_question():
    w, first = settling()
    barrier = w.meet(1, 'barrier()')
    w.agreement.answer_all([LATE] * 2, w.now)
    assert w.replies == {first: LATE} and not w.met
    other = w.meet(0, 'barrier()')
    assert w.replies == {first: LATE, barrier: met(1), other: met(0)}


def test_a_question_meanwhile_is_answered_in_its_turn():
    w, first = settling()
    w.tell(1, call="push('a')", push=['a'])
    again = w.ask(1, "pull('b')", pull=['b'])
    assert w.replies == {again: GO_ON}
    w.cancel(0, first)
    barriers = [w.meet(rank, 'barrier()') for rank in (0, 1)]
    assert [w.replies[number] for number in barriers] == [met(0), met(1)]
    w.agreement.answer_all([LATE] * 2, w.now)
    assert len(w.replies) == 3


def test_others_that_are_busy_are_reported():
    """A cell that others are in does not end, and would hide the error."""
    for busy in True, False:
        w = Workers(timeout=4)
        w.state(1, busy=busy)
        pull = w.meet(0, 'barrier()')
        w.wait(4)
        assert w.replies[pull].others is busy


def test_a_reply_that_never_comes_is_given_up():
    w = Workers(timeout=10)
    w.agreement._met = lambda questions: None
    number = w.meet(0, 'set_optimizer(SGD)')
    w.meet(1, 'set_optimizer(SGD)')
    w.wait(SETTLING - 1)
    assert not w.replies
    w.wait(1)
    assert 'no answer came' in w.error(number)


def test_calls_that_mxnet_does_not_end_are_overdue():
    w = Workers(timeout=10)
    w.tell(0, call="pull('a')", inside=True)
    w.now = 9
    assert w.agreement.overdue(w.now) == []
    w.now = 10
    assert w.agreement.overdue(w.now) == [0]
    assert w.agreement.state(0, w.now) == "waiting in pull('a') for 10.0 s"
    w.tell(0)
    assert w.agreement.overdue(w.now) == []


def test_a_worker_that_was_called_is_not_idle():
    """Its arguments may be long, and the others' may have come first."""
    w = Workers()
    w.state(1, busy=False)
    w.agreement.note_call(1, w.now)
    barrier = w.meet(0, 'barrier()')
    w.wait(IDLE_PATIENCE + 1)
    assert not w.replies
    w.state(1, busy=True)
    w.meet(1, 'barrier()')
    assert w.replies[barrier] == met(0)


BUSY, IDLE = State(busy=True), State(busy=False)
CALLED = None


@pytest.mark.parametrize('messages, words', [
    ([], 'it has not been used yet'),
    ([BUSY], 'busy'),
    ([IDLE], 'idle for 0.0 s'),
    ([CALLED], 'called 0.0 s ago, and it has not begun'),
    ([CALLED, BUSY], 'busy'),
    ([CALLED, BUSY, CALLED], 'busy'),
    ([CALLED, CALLED, BUSY, IDLE],
     'called 0.0 s ago, and it has not begun'),
    ([CALLED, BUSY, IDLE], 'idle for 0.0 s'),
    ([BUSY, StoreCall('init(3)')],
     'busy; last call init(3), 0.0 s ago')])
def test_state_in_words(messages, words):
    agreement = Agreement(1, 60, None, None)
    for message in messages:
        if message is CALLED:
            agreement.note_call(0, 5)
        else:
            agreement.hear(0, message, 5)
    assert agreement.state(0, 5) == words

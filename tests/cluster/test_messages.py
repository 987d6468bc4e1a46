"""What the processes of a cluster may say to each other."""
import pytest
from d2lps.cluster.processes import messages
from d2lps.cluster.processes.messages import FROM_MEMBER, TO_KEEPER, TO_MEMBER
from d2lps.cluster.processes.member import Channel
from d2lps.cluster.processes.process import Process
from d2lps.cluster.processes.supervisor import Supervisor


class Quiet:
    """Where messages to a keeper end, for a `Process`."""

    def __init__(self):
        self.sent = []

    def send(self, **message):
        self.sent.append(message)


@pytest.mark.parametrize('kinds, kind, fields, words', [
    (TO_KEEPER, 'begun', {}, "no message of the kind 'begun'"),
    (TO_MEMBER, 'call', {'number': 1, 'pack': ''}, "'call' has no field pack"),
    (FROM_MEMBER, 'beat', {'b': 1, 'a': 2}, "'beat' has no field a, b")])
def test_a_message_that_nobody_knows_is_refused(kinds, kind, fields, words):
    with pytest.raises(ValueError, match=words):
        messages.check(kinds, kind, fields)


def test_no_end_sends_what_the_other_does_not_know():
    keeper = Quiet()
    process = Process('worker', 0, keeper, 7)
    process.send(do='fault', server='server 0', text='no')
    assert keeper.sent == [{'do': 'pass', 'number': 7, 'message': {
        'do': 'fault', 'server': 'server 0', 'text': 'no'}}]
    with pytest.raises(ValueError, match='stop'):
        process.send(do='stop')
    with pytest.raises(ValueError, match='bye'):
        Channel.tell(None, 'bye')


def test_the_reader_hears_all_that_members_say():
    """And what they print, which a keeper wraps for them."""
    heard = {*Supervisor.HEARD_BY}
    assert heard == {*FROM_MEMBER, 'printed'} - {'beat'}

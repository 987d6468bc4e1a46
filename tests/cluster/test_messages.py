"""The messages between the processes of a cluster, as lines."""
import pytest
from d2lps.cluster import messages


def test_a_message_comes_back_from_its_line():
    sent = [messages.Begin('/tmp', ['a'], {'delay': 0.1}),
            messages.Start(3, 'worker', 1, {'RANK': '1'}, 0, True),
            messages.Answer(7, missing=[['w', 2]]), messages.Beat(),
            messages.Done(4, 'late', wait=(2, 1, False)),
            messages.Said(3, [messages.to_line(messages.Freed())])]
    for message in sent:
        line = messages.to_line(message)
        assert '\n' not in line and messages.from_line(line) == message


@pytest.mark.parametrize('line', [
    'Welcome to the lab!', '', '7', '["Beat"]', '["Dance", {}]',
    '["Beat", {"number": 7}]', '["Signal", {"number": 7}]'])
def test_a_line_that_is_no_message_is_refused(line):
    with pytest.raises(ValueError, match='no message: '):
        messages.from_line(line)

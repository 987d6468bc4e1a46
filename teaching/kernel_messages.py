"""What a student's kernel says, with nothing in it but what we use.

Code of students has the kernel's key and can send whatever it likes, on each
channel. What is no message of the kinds below, or has parts of other types, is
not listened to; the rest of it comes through with these parts alone.
"""
import asyncio

from jupyter_client.channels import AsyncZMQSocketChannel

from teaching.harmless import PICTURES, STREAMS, is_count
from d2lps.checks import writable
from d2lps.exercises.checking import NOTES

SHOWN = 'text/plain', *PICTURES, NOTES  # of what a cell displays
# For nobody: who waits for a message looks whose answer it is.
NOTHING = {'msg_type': '', 'header': {'msg_type': ''}, 'parent_header': {},
           'content': {}}


class _Channel(AsyncZMQSocketChannel):
    async def _recv(self, **settings):
        # Or who sends without a pause would keep all others waiting.
        await asyncio.sleep(0)
        frames = await self.socket.recv_multipart(**settings)
        try:
            _, frames = self.session.feed_identities(frames)
            return understood(self.session.deserialize(frames), self.PARTS)
        except Exception:  # whatever it is, the student's code has sent it
            return NOTHING


class Outputs(_Channel):
    """Of what cells show."""

    PARTS = {
        'stream': lambda told: {
            'name': _one_of(STREAMS, told['name']),
            'text': _text(told['text'])},
        'error': lambda told: {
            'ename': _text(told['ename']), 'evalue': _text(told['evalue']),
            'traceback': [*map(_text, told['traceback'])]},
        'display_data': lambda told: {
            'data': _data(told['data']), 'metadata': {}},
        'execute_result': lambda told: {
            'data': _data(told['data']), 'metadata': {},
            'execution_count': _count(told['execution_count'])},
        'execute_input': lambda told: {
            'execution_count': _count(told['execution_count'])},
        'status': lambda told: {
            'execution_state': _text(told['execution_state'])}}


class Replies(_Channel):
    """That a cell has been run; and, before all cells, that a kernel is here.
    """

    PARTS = {'execute_reply': lambda told: {'status': _text(told['status'])},
             'kernel_info_reply': lambda told: told}


def understood(message, parts):
    """A message with nothing else in it; raises an error if it is none.

    parts: from a kind to a function, which gets the content and returns it.
    """
    kind = message['msg_type']
    return {'msg_type': kind, 'header': {'msg_type': kind},
            'parent_header': {'msg_id': _text(
                message['parent_header']['msg_id'])},
            'content': parts[kind](message['content'])}


def _text(value):
    if not isinstance(value, str):
        raise TypeError
    return writable(value)


def _one_of(names, value):
    return names[names.index(value)]


def _count(value):
    if not is_count(value):
        raise TypeError
    return value


def _data(told):
    found = {kind: _text(told[kind]) for kind in SHOWN if kind in told}
    if not found or not isinstance(told, dict):
        raise TypeError
    return found

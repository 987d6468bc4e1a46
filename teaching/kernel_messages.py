"""What a student's kernel says, with nothing in it but what we use.

Code of students has the kernel's key and can send whatever it likes, on each
channel. A message of a kind that no table below names, or with a part of
another type, is not listened to. Of all other messages, only the parts that
the tables name come through.
"""
import asyncio
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from jupyter_client.channels import AsyncZMQSocketChannel

from d2lps.checks import writable
from d2lps.exercises.checking import NOTES

Content: TypeAlias = dict[str, Any]  # what a message tells, by name
# From a kind of message to a function that reads its content: it returns the
# parts that we use, and raises an error if one is missing or of another type.
Readers: TypeAlias = Mapping[str, Callable[[Content], Content]]

SHOWN = 'text/plain', 'image/png', NOTES  # of what a cell displays
STREAMS = 'stdout', 'stderr'
LARGEST_COUNT = 10 ** 6
# Stands for a message that is not listened to. It answers no request, so
# whoever waits for an answer waits on.
NOTHING = {'msg_type': '', 'header': {'msg_type': ''}, 'parent_header': {},
           'content': {}}


class _Channel(AsyncZMQSocketChannel):
    """A channel of which only messages that `READERS` can read come through.
    """

    READERS: ClassVar[Readers]

    async def _recv(self, **settings):
        # Or who sends without a pause would keep all others waiting.
        await asyncio.sleep(0)
        frames = await self.socket.recv_multipart(**settings)
        try:
            _, frames = self.session.feed_identities(frames)
            return understood(self.session.deserialize(frames), self.READERS)
        except Exception:  # whatever it is, the student's code has sent it
            return NOTHING


class Outputs(_Channel):
    """What cells show."""

    READERS = {
        'stream': lambda content: {
            'name': _one_of(STREAMS, content['name']),
            'text': _text(content['text'])},
        'error': lambda content: {
            'ename': _text(content['ename']),
            'evalue': _text(content['evalue']),
            'traceback': [*map(_text, content['traceback'])]},
        'display_data': lambda content: {
            'data': _data(content['data']), 'metadata': {}},
        'execute_result': lambda content: {
            'data': _data(content['data']), 'metadata': {},
            'execution_count': _count(content['execution_count'])},
        'execute_input': lambda content: {
            'execution_count': _count(content['execution_count'])},
        'status': lambda content: {
            'execution_state': _text(content['execution_state'])}}


class Replies(_Channel):
    """That a cell has been run; and, before all cells, that a kernel is here.
    """

    READERS = {
        'execute_reply': lambda content: {'status': _text(content['status'])},
        'kernel_info_reply': lambda content: content}


def understood(message: Content, readers: Readers) -> Content:
    """A message with nothing else in it; raises an error if it is none."""
    kind = message['msg_type']
    return {'msg_type': kind, 'header': {'msg_type': kind},
            'parent_header': {'msg_id': _text(
                message['parent_header']['msg_id'])},
            'content': readers[kind](message['content'])}


def _text(value):
    if not isinstance(value, str):
        raise TypeError
    return writable(value)


def _one_of(names, value):
    return names[names.index(value)]  # a value of another type is not there


def _count(value):
    if type(value) is not int or not 0 <= value < LARGEST_COUNT:
        raise TypeError
    return value


def _data(content):
    found = {kind: _text(content[kind]) for kind in SHOWN if kind in content}
    if not found or not isinstance(content, dict):
        raise TypeError
    return found

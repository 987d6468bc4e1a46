"""Messages of a student's kernel, reduced to the parts that we use.

Code of students has the kernel's key and can send whatever it likes, on each
channel. A message of a kind that no table below names, or with a part of
another type, is not listened to. Of messages that are listened to, only the
parts that the tables name come through. The first reply of a kernel comes
whole, for jupyter_client, which reads its version.
"""
import asyncio
from collections.abc import Callable, Mapping
from queue import Empty
from typing import Any, ClassVar, TypeAlias

from jupyter_client.channels import AsyncZMQSocketChannel

from d2lps.checks import writable
from d2lps.exercises.checking import NOTES

Content: TypeAlias = dict[str, Any]  # of a message, by name
# From a kind of message to a function that reads its content: it returns the
# parts that we use, and raises an error if one is missing or of another type.
Readers: TypeAlias = Mapping[str, Callable[[Content], Content]]

SHOWN = 'text/plain', 'image/png', NOTES  # of what a cell displays
STREAMS = 'stdout', 'stderr'
LARGEST_COUNT = 10 ** 6
# Stands for a message that is not listened to. It answers no request, so a
# wait for an answer goes on.
NOTHING = {'msg_type': '', 'header': {'msg_type': ''}, 'parent_header': {},
           'content': {}}


class _Channel(AsyncZMQSocketChannel):
    """A channel of which only messages that `READERS` can read come through.
    """

    READERS: ClassVar[Readers]

    # jupyter_client, too, gives the blocking method an async form.
    async def get_msg(  # type: ignore[override]
            self, timeout: float | None = None) -> Content:
        """The next message; `NOTHING` if it is not listened to.

        timeout: seconds; after them queue.Empty is raised.
        """
        # A turn for other notebooks, also where messages come without a pause.
        await asyncio.sleep(0)
        if not await self.socket.poll(timeout and 1000 * timeout):
            raise Empty
        message = await self.socket.recv_multipart()
        try:
            _, frames = self.session.feed_identities(message)
            return understood(self.session.deserialize(frames), self.READERS)
        except Exception:  # of any kind: the student's code has sent it
            return NOTHING


class Outputs(_Channel):
    """Outputs of cells."""

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
    """Replies: a cell has been run; and, before all cells, a kernel is here.
    """

    READERS = {
        'execute_reply': lambda content: {'status': _text(content['status'])},
        'kernel_info_reply': lambda content: content}


def understood(message: Content, readers: Readers) -> Content:
    """A message, reduced to our parts; raises an error if it is malformed."""
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
    shown = {kind: _text(content[kind]) for kind in SHOWN if kind in content}
    if not shown or not isinstance(content, dict):
        raise TypeError
    return shown

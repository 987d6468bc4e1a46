"""Every kind of message between the processes of a cluster, and its fields.

    reader's process           keeper           member (forked)
    ----------------           ------           ---------------
    Cluster, Supervisor        one in           scheduler, server
    Group: a Keeper-     --->  each      --->   or worker: Channel
    Connection for each  <---  place     <---

All go through pipes, as lines of JSON. The sender checks each message here,
so no process gets one that it does not know. Fields may be left out.
"""
from collections.abc import Iterable

# From `KeeperConnection` to `Keeper`; `do` names the kind. `number` is a
# member's.
TO_KEEPER = {
    'begin': {'folder', 'path', 'network'},
    'start': {'number', 'job'},  # fork a member
    'pass': {'number', 'message'},  # one of TO_MEMBER
    'signal': {'number', 'signal'},
    'end': {'number'}}  # kill the member, and forget it

# From `Supervisor` to a member's `Channel`; `do` names the kind.
TO_MEMBER = {
    'begin': set(),  # scheduler: all others wait for you
    'part': {'packed'},  # worker: a piece of the next call, from its beginning
    'call': {'number', 'packed'},  # worker: the last piece; call this function
    'answer': {'number', 'env', 'missing', 'error', 'others'},  # to a question
    'fault': {'server', 'text'},  # worker: a server could not update
    'check': {'number', 'update'}}  # server: can you load this optimizer?

# From a member's `Channel` to `Supervisor`; `kind` names the kind.
FROM_MEMBER = {
    'beat': set(),  # alive; the keeper's own beats say the same of it
    'joins': set(),  # server or worker: registers with the scheduler next
    'ready': set(),  # worker: waits for calls
    'state': {'busy', 'error'},  # worker: a call begins, or has ended
    'part': {'number', 'text'},  # worker: a piece of a call's packed result
    'done': {'number', 'error', 'traceback',  # worker: no more pieces
             'waits_for', 'round', 'closed'},  # if it is a PeerError
    'call': {'call', 'push', 'inside'},  # worker: what MXNet does; none: done
    'question': {'number', 'call', 'same', 'push', 'pull',
                 'create', 'close', 'update'},  # worker: waits for an answer
    'cancel': {'number'},  # worker: no longer waits, after Ctrl-C most often
    'freed': set(),  # worker: its store is gone
    'checked': {'number', 'error'},  # server: answers `check`
    'fault': {'text'},  # server: an update, or the updater, failed
    'broken': {'text'}}  # any: a message that it could not handle

# From `Keeper` to `KeeperConnection`; `kind` names the kind. `number` is a
# member's.
FROM_KEEPER = {
    'place': {'problem'},  # answers `begin`; '' if the place is as wanted
    'loading': {'loading'},  # MXNet is being loaded; nobody listens meanwhile
    'started': {'number', 'pid'},
    'printed': {'number', 'stream', 'lines'},
    'said': {'number', 'messages'},  # of FROM_MEMBER
    'ended': {'number', 'code'},
    'beat': {'number'}}  # the keeper lives; with a number, the member computes


def check(kinds: dict[str, set[str]], kind: str,
          fields: Iterable[str]) -> None:
    """Raise ValueError for an unknown kind, or a field that it has not."""
    if kind not in kinds:
        raise ValueError(f'no message of the kind {kind!r}: see messages.py')
    unknown = {*fields} - kinds[kind]
    if unknown:
        raise ValueError(f'a message {kind!r} has no field '
                         f'{", ".join(sorted(unknown))}: see messages.py')

"""All messages between the processes of a cluster.

    reader's process           keeper             member (forked)
    ----------------           ------             ---------------
    Cluster, Supervisor        one for            scheduler, server
    Group: Keeper-      --->   all        --->    or worker: Channel
    Connection          <---   members    <---

All go through pipes, each as a line of JSON: the name of its class, and its
fields. A `number` in a message from or to the keeper names a member. The
keeper does not look into the lines that it passes on.
"""
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, get_args

from d2lps.annotations import Key


# From `KeeperConnection` to `Keeper`.

@dataclass
class Begin:
    """The first message: where the files are, and Python's search path.

    `network` has the arguments of `namespaces.build`; None without a network.
    """
    folder: str
    path: list[str]
    network: dict[str, Any] | None


@dataclass
class Start:
    """Fork a member, with more environment `env`.

    `host` is its number in a slow network. Without a `store`, a worker needs
    no MXNet.
    """
    number: int
    role: str
    rank: int
    env: dict[str, str]
    host: int
    store: bool

    @property
    def name(self) -> str:
        return (self.role if self.role == 'scheduler'
                else f'{self.role} {self.rank}')


@dataclass
class Pass:
    """Pass a line on to the member: a message of `ToMember`."""
    number: int
    line: str


@dataclass
class Signal:
    """Send a signal to the member."""
    number: int
    signal: int


@dataclass
class End:
    """Kill the member, and forget it."""
    number: int


# From `Supervisor` to a member's `Channel`.

@dataclass
class BeginScheduler:
    """All others are about to register: the scheduler begins."""


@dataclass
class CallPart:
    """A piece of a packed call; after the last, the worker makes the call."""
    number: int
    packed: str
    last: bool


@dataclass
class Answer:
    """The answer to the `Question` of a worker that has this number.

    error: why the worker may not go on, or ''.
    others: with an error, whether other workers are busy.
    env: what MXNet has to find in the environment, when a store is created.
    missing: [[key, how often this worker has to push it]], before a store is
        closed.
    """
    number: int = 0
    error: str = ''
    others: bool = False
    env: dict[str, str] = field(default_factory=dict)
    missing: list[tuple[Key, int]] = field(default_factory=list)


@dataclass
class Check:
    """A server tries to load this optimizer, or function."""
    number: int
    update: str


# From a member's `Channel` to `Supervisor`.

@dataclass
class Beat:
    """A member, or the keeper, lives."""


@dataclass
class Joins:
    """A server or worker registers with the scheduler next."""


@dataclass
class Ready:
    """A worker waits for calls."""


@dataclass
class State:
    """A worker begins a call (`busy`), or has ended it, with an error."""
    busy: bool
    error: str = ''


@dataclass
class ResultPart:
    """A piece of the packed result of a call."""
    number: int
    text: str


@dataclass
class Done:
    """A worker has ended a call, and sends no more pieces.

    `error` is '' if there was none. `wait` is that of a `PeerError`: whom the
    worker waited for, in which round, and had that closed its connection?
    """
    number: int
    error: str = ''
    traceback: str = ''
    wait: tuple[int, int, bool] | None = None

    def __post_init__(self) -> None:
        if self.wait:  # JSON makes it a list
            rank, round, closed = self.wait
            self.wait = rank, round, closed


@dataclass
class StoreCall:
    """A call of MXNet on a worker; with no field set, the call has ended.

    call: the call, in words.
    push: the keys that are pushed.
    inside: MXNet may take long; the reader's process watches that.
    """
    call: str = ''
    push: Sequence[Key] = ()
    inside: bool = False


@dataclass
class Question:
    """A worker waits for an `Answer` before it makes this call.

    call: the call, in words.
    number: set by `Channel.ask`.
    same: what all workers have to ask before one is answered; None if the
        answer only waits for pushes.
    push, pull: the keys of the call.
    create, close: is it the creation, or the end, of a store?
    update: an optimizer or function for the servers, packed, from rank 0; ''
        from the others; None in all other calls.
    """
    call: str
    number: int = 0
    same: list[Any] | None = None
    push: Sequence[Key] = ()
    pull: Sequence[Key] = ()
    create: bool = False
    close: bool = False
    update: str | None = None


@dataclass
class Cancel:
    """A worker no longer waits for an answer, after Ctrl-C most often."""
    number: int


@dataclass
class Freed:
    """A worker has freed its store."""


@dataclass
class Checked:
    """A server's answer to `Check`; the error is '' if it can load it."""
    number: int
    error: str


@dataclass
class Fault:
    """A server could not update; this is passed on to all workers."""
    server: str
    text: str


@dataclass
class Broken:
    """A member has got a message that it could not handle."""
    text: str


# From `Keeper` to `KeeperConnection`, besides `Beat`.

@dataclass
class Begun:
    """The answer to `Begin`: why there is no such network, or ''."""
    problem: str


@dataclass
class Loading:
    """MXNet is being loaded, or is loaded; nobody listens meanwhile."""
    loading: bool


@dataclass
class Started:
    """The member is forked."""
    number: int
    pid: int


@dataclass
class Printed:
    """The member has written lines to its standard output or errors."""
    number: int
    stream: str
    lines: list[str]


@dataclass
class Said:
    """The member has sent lines: messages of `FromMember`."""
    number: int
    lines: list[str]


@dataclass
class Computes:
    """The member uses a core. It may not be able to send a `Beat`."""
    number: int


@dataclass
class Ended:
    """The member has ended, with this exit code."""
    number: int
    code: int


ToKeeper: TypeAlias = Begin | Start | Pass | Signal | End
ToMember: TypeAlias = (
    BeginScheduler | CallPart | Answer | Fault | Check)
# What a member says of its calls of the store: see `Agreement`.
OfStore: TypeAlias = State | Question | StoreCall | Cancel
FromMember: TypeAlias = (
    OfStore | Beat | Joins | Ready | ResultPart | Done | Freed | Checked
    | Fault | Broken)
FromKeeper: TypeAlias = (
    Beat | Begun | Loading | Started | Printed | Said | Computes | Ended)
Message: TypeAlias = ToKeeper | ToMember | FromMember | FromKeeper
KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in get_args(Message)}


def to_line(message: Message) -> str:
    """A message as a line, without the line's end."""
    return json.dumps([type(message).__name__, vars(message)])


def from_line(line: str) -> Any:
    """The message that `to_line` has made a line of.

    Raises:
        ValueError: if the line is no message.
    """
    try:
        kind, fields = json.loads(line)
        return KINDS[kind](**fields)
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f'no message: {line[:200]}') from error

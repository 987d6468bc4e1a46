"""Servers can be lost, so each key has replicas on a chain of servers.

The sum of all workers' pushes (Li et al. 2014) goes down this chain, and its
last server acknowledges it (chain replication: van Renesse and Schneider
2004).
"""
from collections.abc import Iterator, Sequence
from functools import partial

from d2lps.annotations import Array, Key
from d2lps.checks import checked, integer, refuse
from d2lps.engine import array, array_list, mx, nbytes
from d2lps.kvstore.server import Server, Updater
from d2lps.kvstore.store_arguments import store_key, updater_or_none
from d2lps.recovery.hashing import chain, circle
from d2lps.units import several

server_number = partial(integer, least=0, most=1000)


class ReplicatedStore:
    """A store whose servers can be killed; several servers have each key.
    After a death, `repair` makes new copies of the lost keys.

    Args:
        num_servers: they have the numbers 0, 1, ...
        replicas: servers that have each key.
        num_workers: how many values make up a push.

    `servers` has the `d2lps.kvstore.Server` of each number. `acknowledged`
    counts the acknowledged pushes of each key, and `copied` the bytes that
    went from server to server.

    Raises, from calls with a key:
        ValueError: for a key that was not initialised, or a wrong shape.
        LookupError: if the key is lost.
    """

    servers: dict[int, Server]
    acknowledged: dict[Key, int]
    _updater: Updater | None
    _kinds: dict[Key, tuple[tuple[int, ...], type]]  # shape, dtype
    _latest: dict[Key, list[bytes]]  # the newest push, under way or not

    @checked(num_servers=partial(integer, most=256), replicas=integer,
             num_workers=partial(integer, most=1000))
    def __init__(self, num_servers: int = 4, replicas: int = 2,
                 num_workers: int = 1) -> None:
        self.replicas, self.num_workers = replicas, num_workers
        self.servers, self.acknowledged, self.copied = {}, {}, 0
        self._updater, self._kinds = None, {}
        self._latest = {}
        for server in range(num_servers):
            self._add(server)
        self._places = circle(range(num_servers))

    def __repr__(self) -> str:
        return (f'ReplicatedStore({several(len(self.servers), "server")}, '
                f'{several(self.replicas, "replica")} of each of '
                f'{several(len(self._kinds), "key")})')

    def _add(self, server):
        self.servers[server] = Server(mx.cpu(server), self.num_workers)
        self.servers[server].updater = self._updater

    @checked(updater=updater_or_none)
    def set_updater(self, updater: Updater | None) -> None:
        """Let `updater(key, sum, stored)` change `stored`, at the head.

        The state of the updater, such as momentum, has no replicas.
        """
        self._updater = updater
        for server in self.servers.values():
            server.updater = updater

    @checked(key=store_key)
    def chain(self, key: Key) -> list[int]:
        """The servers that have this key, the head first; [] if it is lost.

        After a death, and before `repair`, there are fewer than `replicas`.
        """
        if key not in self.acknowledged:
            raise ValueError(f'key {key!r} is not in the store; it has '
                             f'{[*self.acknowledged]}')
        return [server for server in self._wanted(key)
                if key in self.servers[server].shards]

    def _wanted(self, key):
        return chain(key, self._places, self.replicas)

    def lost(self) -> list[Key]:
        """The keys that no server has any more."""
        return [key for key in self.acknowledged if not self.chain(key)]

    @checked(key=store_key, value=array)
    def init(self, key: Key, value: Array) -> None:
        """Store a first value, on all servers of the key's chain."""
        if key in self.acknowledged or not self.servers:
            raise ValueError(f'key {key!r} is initialised already'
                             if self.servers else 'all servers are dead')
        self.acknowledged[key] = 0
        self._kinds[key] = value.shape, value.dtype
        for server in self._wanted(key):
            self.servers[server].init(key, value)

    def push(self, key: Key, values: Sequence[Array]) -> None:
        """Push once for all workers, up to the acknowledgement."""
        list(self.messages(key, values))

    @checked(key=store_key, values=array_list)
    def messages(self, key: Key, values: Sequence[Array]
                 ) -> Iterator[tuple[int | str, int | str]]:
        """The same, message by message: yields (sender, receiver).

        At each message a server can be killed, or join. If this concerns the
        key's chain, the last message, the acknowledgement, is missing. The
        workers must then push the same values again. This counts once and
        completes the push. A head that has the first push refuses other
        values.

        values: a list of arrays, one of each worker.
        """
        if len(values) != self.num_workers:
            refuse('values', values, f'a list of {self.num_workers} arrays, '
                   'one of each worker')
        self._living_chain(key, *values)
        return self._messages(key, values)

    def _messages(self, key, values):
        """Down the chain; its last server acknowledges the push."""
        servers = self._living_chain(key)
        sender, number = 'workers', self.acknowledged[key] + 1
        pushed = [value.asnumpy().tobytes() for value in values]
        begun = self.servers[servers[0]].shards[key].updates == number
        if begun and pushed != self._latest[key]:
            raise ValueError(f'the previous push of key {key!r} was not '
                             'acknowledged: push its values again')
        self._latest[key] = pushed
        for server in servers:
            # A server that has this update already only passes it on.
            if self.servers[server].shards[key].updates < number:
                if sender == 'workers':
                    for rank, value in enumerate(values):
                        self.servers[server].push(key, rank, value)
                else:
                    self._copy(key, sender, server)
            yield sender, server
            if self.chain(key) != servers or self._latest[key] is not pushed:
                return
            sender = server
        self.acknowledged[key] = number
        yield sender, 'workers'

    @checked(key=store_key, out=array)
    def pull(self, key: Key, out: Array) -> None:
        """Copy the value into `out`, from the chain's last server.

        So no worker reads a value that the death of a server could undo.
        """
        *_, tail = self._living_chain(key, out)
        self.servers[tail].pull(key, 0).copyto(out)

    @checked(server=server_number)
    def kill(self, server: int) -> None:
        """Lose a server, with all its keys."""
        if server not in self.servers:
            refuse('server', server, f'one of {[*self.servers]}')
        del self.servers[server]
        self._places = [(position, owner) for position, owner in self._places
                        if owner != server]

    @checked(server=server_number)
    def join(self, server: int) -> None:
        """Start a new server, and copy its keys to it."""
        if server in self.servers:
            refuse('server', server, f'none of {[*self.servers]}')
        self._add(server)
        self._places = circle([*self.servers])
        self.repair()

    def repair(self) -> None:
        """Copy each key that is left to all servers that should have it."""
        for key in self.acknowledged:
            updates = {number: server.shards[key].updates for number, server
                      in self.servers.items() if key in server.shards}
            if not updates:
                continue  # the key is lost
            newest = max(updates, key=updates.__getitem__)
            for server in self._wanted(key):
                if updates.get(server, -1) < updates[newest]:
                    self._copy(key, newest, server)
            for server in updates.keys() - {*self._wanted(key)}:
                del self.servers[server].shards[key]

    def _copy(self, key, sender, receiver):
        shard = self.servers[sender].shards[key]
        self.servers[receiver].init(key, shard.value)
        self.servers[receiver].shards[key].updates = shard.updates
        self.copied += nbytes(shard.value)

    def _living_chain(self, key, *arrays):
        """The chain, if the key is not lost and the arrays are like it."""
        servers, (shape, dtype) = self.chain(key), self._kinds[key]
        if not servers:
            raise LookupError(f'key {key!r} is lost: its servers are dead')
        for array in arrays:
            if (array.shape, array.dtype) != (shape, dtype):
                raise ValueError(f'the arrays of key {key!r} must be of shape '
                                 f'{shape} and of the dtype given to init; '
                                 f'one was of shape {array.shape}')
        return servers

"""Servers of a key-value store: they hold the values and sum the pushes.

Every worker sums over its devices, a server over the workers; keys can lie
on different servers. Sources: Smola and Narayanamurthy 2010 (synchronising
through a store), DeCandia et al. 2007 (keys hashed to servers), Li et al.
2014 (OSDI; MXNet's distributed store is theirs).
"""
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from d2lps.annotations import Array, Device, Key
from d2lps.checks import checked, integer
from d2lps.kvstore.arrays import (alike, array, array_list, device, nbytes,
                                  same_kind)
from d2lps.kvstore.store_arguments import how_far, store_key, up_to_1000
from d2lps.units import SIZES, several, with_unit

# It takes a key, the sum of the workers' pushes, and the stored value.
Updater: TypeAlias = Callable[[Key, Array, Array], None]


@checked(alike, arrays=array_list)
def total(arrays: Sequence[Array]) -> Array:
    """Sum arrays of one shape into a new one, on the first one's device."""
    result = arrays[0].copy()
    for array in arrays[1:]:
        result += array.as_in_ctx(result.ctx)
    return result


def parts(value: Array, places: Sequence[tuple[int, int, int]]
          ) -> list[Array]:
    """Cut a value up as `place` says; whole, it keeps its shape."""
    if len(places) == 1:
        return [value]
    flat = value.reshape(-1)
    return [flat[start:end] for _, start, end in places]


class Shard:
    """A value, or a part of one, on its server; the server checks arguments.

    `updates` counts them; `pushes` has a queue for each worker.
    """

    pushes: list[list[Array]]

    def __init__(self, key: Key, value: Array, num_workers: int) -> None:
        self.key, self.value, self.updates = key, value, 0
        self.pushes = [[] for _ in range(num_workers)]

    def update(self, updater: Updater | None = None) -> None:
        summed = total([queue.pop(0) for queue in self.pushes if queue])
        if updater is None:
            self.value = summed
        else:
            updater(self.key, summed, self.value)
        self.updates += 1  # only now, as an updater may raise


def known(self: 'Server', key: Key, rank: int, value: Array | None = None
          ) -> None:
    """A rule: the server has the key, and its value has this shape."""
    if key not in self.shards:
        raise ValueError(f'key {key!r} is not on this server; call '
                         f'init({key!r}, ...) first')
    integer('rank', rank, least=0, most=self.num_workers - 1)
    stored = self.shards[key].value
    if value is not None and not same_kind(value, stored):
        raise ValueError(f'value of key {key!r} must be of shape '
                         f'{stored.shape} and of the kind and dtype given to '
                         f'init; it was of shape {value.shape}')


class Server:
    """Sums the pushes of workers; `rank` is always the rank of a worker.

    It has a `Shard` for each key, and counts the bytes of pushes and pulls.
    A pushed array must not be changed before its update is made.
    """

    shards: dict[Key, Shard]
    updater: Updater | None

    @checked(device=device, num_workers=up_to_1000)
    def __init__(self, device: Device, num_workers: int) -> None:
        self.device, self.num_workers = device, num_workers
        self.shards, self.updater = {}, None
        self.received, self.sent = 0, 0

    @checked(key=store_key, value=array)
    def init(self, key: Key, value: Array) -> None:
        copy = value.copyto(self.device)
        self.shards[key] = Shard(key, copy, self.num_workers)

    def complete(self, shard: Shard) -> bool:
        # (ps-lite counts pushes: two of one worker make an update, too.)
        return all(len(queue) > 0 for queue in shard.pushes)

    @checked(known, key=store_key, value=array)
    def push(self, key: Key, rank: int, value: Array) -> None:
        self.received += nbytes(value)
        shard = self.shards[key]
        shard.pushes[rank].append(value.as_in_ctx(self.device))
        if self.complete(shard):
            shard.update(self.updater)

    @checked(known, key=store_key)
    def missing(self, key: Key, rank: int) -> list[int]:
        waiting = [len(queue) for queue in self.shards[key].pushes]
        return [k for k, n in enumerate(waiting) if n < waiting[rank]]

    @checked(known, key=store_key)
    def pull(self, key: Key, rank: int) -> Array:
        value = self.shards[key].value
        self.sent += nbytes(value)
        return value

    def __repr__(self) -> str:
        return (f'{type(self).__name__}({self.device}: '
                f'{several(self.num_workers, "worker")}, '
                f'{several(len(self.shards), "key")}, '
                f'received {with_unit(self.received, SIZES)}, '
                f'sent {with_unit(self.sent, SIZES)})')


class BoundedServer(Server):
    """Bounded delay: each push is an update, but a worker more than `bound`
    steps ahead of the slowest worker must wait to pull.

    By key and rank, `pushed` counts the pushes, and `seen` the updates at
    the last pull. `staleness` counts pushes by the updates they had missed.
    """

    seen: dict[tuple[Key, int], int]
    pushed: Counter[tuple[Key, int]]
    staleness: Counter[int]

    @checked(bound=how_far)
    def __init__(self, device: Device, num_workers: int,
                 bound: int | Literal['async']) -> None:
        super().__init__(device, num_workers)
        self.bound = float('inf') if bound == 'async' else bound
        self.seen, self.pushed, self.staleness = {}, Counter(), Counter()

    def complete(self, shard: Shard) -> bool:
        return True

    def missed(self, key: Key, rank: int) -> int:
        """The number of updates that this worker has not seen."""
        return self.shards[key].updates - self.seen.get((key, rank), 0)

    @checked(known, key=store_key, value=array)
    def push(self, key: Key, rank: int, value: Array) -> None:
        self.staleness[self.missed(key, rank)] += 1
        self.pushed[key, rank] += 1
        super().push(key, rank, value)

    @checked(known, key=store_key)
    def missing(self, key: Key, rank: int) -> list[int]:
        return [other for other in range(self.num_workers) if (
            self.pushed[key, other] < self.pushed[key, rank] - self.bound)]

    @checked(known, key=store_key)
    def pull(self, key: Key, rank: int) -> Array:
        self.seen[key, rank] = self.shards[key].updates
        return super().pull(key, rank)

"""Servers of a key-value store: where values lie, and how pushes are summed.

g_i is the sum over workers k, and over the devices j of each, of g_ijk. The
order does not matter, so it is summed in stages: every worker sums over its
devices, a server over the workers. Keys i do not depend on each other, so
they can lie on different servers. Sources: Smola and Narayanamurthy 2010
(synchronising through a store), DeCandia et al. 2007 (keys hashed to
servers), Li et al. 2014 (OSDI; MXNet's distributed store is theirs).
"""
from d2lps.checks import checked, from_zero, whole
from d2lps.engine import array, array_list, device, nbytes
from d2lps.kvstore.fits import how_consistent, store_key, up_to_1000
from d2lps.training.fits import alike


@checked(alike, arrays=array_list)
def total(arrays):
    """Sum arrays of one shape into a new one, on the first one's device."""
    result = arrays[0].copy()
    for array in arrays[1:]:
        result += array.as_in_ctx(result.ctx)
    return result


@checked(key=store_key, size=from_zero, num_servers=up_to_1000,
         split_from=whole)
def place(key, size, num_servers, split_from=1_000_000):
    """Where a value of `size` elements goes: [(server, start, end), ...].

    From `split_from` elements on it is cut into a part for each server. A
    smaller one goes whole to server number * 9973 mod num_servers; a str's
    number is that of its bytes, modulo a prime. (MXNet does the same, but
    numbers a str by the order of `init`. With one server more, most keys
    move; DeCandia et al. hash keys and servers onto a circle, so that few
    do.)

    Raises:
        ValueError: for a bad argument, such as more than 1,000 servers.
    """
    if size < split_from:
        number = key
        if isinstance(key, str):  # its bytes are the digits of a number
            number = int.from_bytes(key.encode(), 'big') % 65_521
        return [(number * 9973 % num_servers, 0, size)]
    n = min(num_servers, size)
    bounds = [int(size / n * i + 0.5) for i in range(n + 1)]  # rounded
    return list(zip(range(n), bounds, bounds[1:]))


def parts(value, places):
    """Cut a value up as `place` says; whole, it keeps its shape."""
    if len(places) == 1:
        return [value]
    flat = value.reshape(-1)
    return [flat[start:end] for _, start, end in places]


class Shard:
    """A value, or a part of one, on its server.

    `round` counts its updates. For each worker, `pushes` has a queue,
    `pushed` counts what it has pushed, and `pulled` is the round that it saw
    last. Its `Server` checks what it is given.
    """

    def __init__(self, key, value, num_workers):
        self.key, self.value, self.round = key, value, 0
        self.pushes = [[] for _ in range(num_workers)]
        self.pushed = [0] * num_workers
        self.pulled = [0] * num_workers

    def update(self, ranks, updater=None):
        summed = total([self.pushes[rank].pop(0) for rank in ranks])
        self.round += 1
        if updater is None:
            self.value = summed
        else:
            updater(self.key, summed, self.value)

    def pull(self, rank):
        self.pulled[rank] = self.round
        return self.value


def _known(self, key, rank, value=None):
    """A rule: the server has the key, and its value has this shape."""
    if key not in self.shards:
        raise ValueError(f'key {key!r} is not on this server; call '
                         f'init({key!r}, ...) first')
    whole('rank', rank, least=0, most=self.num_workers - 1)
    stored = self.shards[key].value
    if value is not None and (value.shape, value.dtype) != (
            stored.shape, stored.dtype):
        raise ValueError(f'value of key {key!r} must be of shape '
                         f'{stored.shape} and of the dtype given to init; '
                         f'it was of shape {value.shape}')


class Server:
    """Sums what workers push, key by key; `rank` is always a worker's.

    `bound` is how many rounds a worker may be ahead of the slowest. `shards`
    has a `Shard` for each key; `received` and `sent` count the bytes of
    pushes and pulls. `staleness` counts pushes, by how many updates there
    were between the worker's last pull and its push's use.
    """

    @checked(device=device, num_workers=up_to_1000,
             consistency=how_consistent)
    def __init__(self, device, num_workers, consistency='sync'):
        self.device, self.num_workers = device, num_workers
        bounds = {'sync': 0, 'async': float('inf')}
        self.bound = bounds.get(consistency, consistency)
        self.shards, self.updater = {}, None
        self.received, self.sent, self.staleness = 0, 0, {}

    @checked(key=store_key, value=array)
    def init(self, key, value):
        self.shards[key] = Shard(key, value.copyto(self.device),
                                 self.num_workers)

    @checked(_known, key=store_key, value=array)
    def push(self, key, rank, value):
        self.received += nbytes(value)
        shard = self.shards[key]
        shard.pushes[rank].append(value.as_in_ctx(self.device))
        shard.pushed[rank] += 1
        # With bound 0 an update takes one push of *every* worker; a second
        # one of the same worker waits for the next. (ps-lite counts pushes,
        # not workers: who pushes twice stands in for one that is missing.)
        ranks = [rank] if self.bound else range(self.num_workers)
        if all(shard.pushes[r] for r in ranks):
            for r in ranks:
                missed = shard.round - shard.pulled[r]
                self.staleness[missed] = self.staleness.get(missed, 0) + 1
            shard.update(ranks, self.updater)

    @checked(_known, key=store_key)
    def missing(self, key, rank):
        """Those who are so far behind that this worker's pull must wait."""
        pushed = self.shards[key].pushed
        return [other for other in range(self.num_workers)
                if pushed[other] < pushed[rank] - self.bound]

    @checked(_known, key=store_key)
    def pull(self, key, rank):
        value = self.shards[key].pull(rank)
        self.sent += nbytes(value)
        return value

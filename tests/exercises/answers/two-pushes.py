# ruff: noqa: E402, F811, F821
# %% wrong: pushes are counted, not workers
# loses: sums, wait
class SyncServer:
    def __init__(self, num_workers):
        self.num_workers, self.waiting, self.sums = num_workers, {}, {}

    def push(self, key, rank, value):
        pushes = self.waiting.setdefault(key, [])
        pushes.append(value.copy())
        if len(pushes) == self.num_workers:
            self.sums[key] = sum(pushes)
            pushes.clear()

    def pull(self, key, rank):
        if key not in self.sums:
            return None
        return self.sums[key].copy()


# %% wrong: the worker's own array waits
# loses: arrays
#-        queues[rank].append(value.copy())
#+        queues[rank].append(value)


# %% wrong: nobody ever waits
# loses: wait
#-        if key not in self.sums or self.waiting[key][rank]:
#+        if key not in self.sums:


# %% wrong: all rounds are kept
# loses: memory
class SyncServer:
    def __init__(self, num_workers):
        self.num_workers, self.pushes, self.sums = num_workers, {}, {}

    def push(self, key, rank, value):
        queues = self.pushes.setdefault(
            key, [[] for _ in range(self.num_workers)])
        queues[rank].append(len(queues[rank]))
        rounds = self.sums.setdefault(key, [])
        number = len(queues[rank])
        if len(rounds) < number:
            rounds.append(np.zeros_like(value))
        rounds[number - 1] += value

    def pull(self, key, rank):
        counts = [len(queue) for queue in self.pushes.get(key, [[]])]
        if counts == [0] or not 0 < counts[rank] == min(counts):
            return None
        return self.sums[key][counts[rank] - 1].copy()


# %% wrong: old sums are kept, but packed
# loses: memory
import zlib


class SyncServer:
    def __init__(self, num_workers):
        self.num_workers, self.waiting, self.sums = num_workers, {}, {}

    def push(self, key, rank, value):
        queues = self.waiting.setdefault(
            key, [[] for _ in range(self.num_workers)])
        queues[rank].append(value.copy())
        if all(queues):
            total = sum(queue.pop(0) for queue in queues)
            self.sums.setdefault(key, []).append(zlib.compress(total))

    def pull(self, key, rank):
        if key not in self.sums or self.waiting[key][rank]:
            return None
        return np.frombuffer(zlib.decompress(self.sums[key][-1])).copy()


# %% wrong: the rule of the check, called
# loses: sums, wait, arrays, memory
from d2lps.exercises import two_pushes


class SyncServer:
    def __init__(self, num_workers):
        self.num_workers, self.pushes, self.values = num_workers, [], []

    def push(self, key, rank, value):
        number = 1 + sum(push[:2] == (key, rank) for push in self.pushes)
        self.pushes.append(
            two_pushes.Push(key, rank, number, len(self.values)))
        self.values.append(value.copy())

    def pull(self, key, rank):
        one = two_pushes._pull(self.num_workers, self.pushes, key, rank)
        if one.missing:
            return None
        return sum(self.values[push.value] for push in one.right)


# %% wrong: the chapter's class inside
# loses: sums, wait, arrays
from d2lps.kvstore.server import Server as Chapters


class SyncServer:
    def __init__(self, num_workers):
        self.inner = Chapters(d2lps.devices(1)[0], num_workers)
        self.keys = set()

    def push(self, key, rank, value):
        from mxnet import np as mnp
        if key not in self.keys:
            self.inner.init(key, mnp.zeros(value.shape, 'float64'))
            self.keys.add(key)
        self.inner.push(key, rank, mnp.array(value, 'float64'))

    def pull(self, key, rank):
        if key not in self.keys or self.inner.missing(key, rank):
            return None
        return self.inner.pull(key, rank).asnumpy()


# %% wrong: a sum of zeros counts as no sum
# loses: sums
class SyncServer:
    def __init__(self, num_workers):
        self.n = num_workers
        self.rows = {}
        self.sums = {}

    def push(self, key, rank, value):
        if key not in self.rows:
            self.rows[key] = [[] for _ in range(self.n)]
            self.sums[key] = np.zeros(value.shape)
        self.rows[key][rank].append(value.copy())
        if all(self.rows[key]):
            self.sums[key] = sum(row.pop(0) for row in self.rows[key])

    def pull(self, key, rank):
        if key not in self.rows or self.rows[key][rank]:
            return None
        if not self.sums[key].any():
            return None
        return self.sums[key].copy()


# %% right: deques, counts, and a list of numbers for an array
from collections import defaultdict, deque


class Round:
    def __init__(self, n):
        self.queues = [deque() for _ in range(n)]
        self.done, self.sum = 0, None
        self.counts = [0] * n


class SyncServer:
    def __init__(self, num_workers):
        self.keys = defaultdict(lambda: Round(num_workers))

    def push(self, key, rank, value):
        one = self.keys[key]
        one.counts[rank] += 1
        one.queues[rank].append(np.array(value))
        while min(one.counts) > one.done:
            one.sum = np.sum([queue.popleft() for queue in one.queues], axis=0)
            one.done += 1

    def pull(self, key, rank):
        one = self.keys[key]
        if not one.done or one.counts[rank] > one.done:
            return None
        return one.sum.tolist()

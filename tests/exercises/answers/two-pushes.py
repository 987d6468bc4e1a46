# ruff: noqa: E402, F811, F821
# %% wrong: pushes are counted, not workers
# says: and gets 5, not 22. No push of worker 1 is in it, and 2 of worker 0.
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
# says: Does the server keep the worker's array, or what was in it?
#-        queues[rank].append(value.copy())
#+        queues[rank].append(value)

# %% wrong: everybody gets the server's own sum
# says: Does everybody get the same array?
#-        return self.sums[key].copy()
#+        return self.sums[key]

# %% wrong: a round takes all that waits
# says: and gets 25, not 22. In it are 2 pushes of worker 0.
#-            self.sums[key] = sum(queue.pop(0) for queue in queues)
#+            self.sums[key] = sum(sum(queue) for queue in queues)
#+            for queue in queues:
#+                queue.clear()

# %% wrong: a later push replaces the one before
# says: What happens to its push number 1, when the next one comes?
#-        queues[rank].append(value.copy())
#+        queues[rank][:] = [value.copy()]

# %% wrong: the newest push of the queue is taken
# says: Of worker 0, its push number 2 is in it, and this is round 1.
#-            self.sums[key] = sum(queue.pop(0) for queue in queues)
#+            self.sums[key] = sum(queue.pop() for queue in queues)

# %% wrong: the first push is in the sum twice
# says: and gets 24, not 22. In it is 2, of worker 0, twice
#-            self.sums[key] = sum(queue.pop(0) for queue in queues)
#+            total = queues[0][0].copy()
#+            for queue in queues:
#+                total += queue.pop(0)
#+            self.sums[key] = total

# %% wrong: one number of each array
# says: gets [22.0, 22.0], not [22, 11.0]
#-        queues[rank].append(value.copy())
#+        queues[rank].append(np.full_like(value, value[0]))

# %% wrong: integers
# says: Are fractions lost, as in 1.5?
#-        queues[rank].append(value.copy())
#+        queues[rank].append(np.array(value, int))

# %% wrong: the dicts are those of the class
# says: Are all dicts and lists made in `__init__`?
#-        self.waiting = {}  # of each key, a queue for each worker
#-        self.sums = {}  # of each key, the sum of its newest whole round
#+    waiting, sums = {}, {}

# %% wrong: one row of queues for all keys, and sums of each key
# says: If a server gets the calls for one key alone, all is right
class SyncServer:
    def __init__(self, num_workers):
        self.queues = [[] for _ in range(num_workers)]
        self.sums = {}

    def push(self, key, rank, value):
        self.queues[rank].append(value.copy())
        if all(self.queues):
            self.sums[key] = sum(queue.pop(0) for queue in self.queues)

    def pull(self, key, rank):
        if key not in self.sums or self.queues[rank]:
            return None
        return self.sums[key].copy()


# %% wrong: the first who pulls takes the sum away
# says: Worker 0 has pulled this sum already. May others still?
#-        return self.sums[key].copy()
#+        return self.sums.pop(key)

# %% wrong: a second push is dropped while the first one waits
# says: That is the sum of round 2, and round 3 is whole, too.
#-        queues[rank].append(value.copy())
#+        if not queues[rank]:
#+            queues[rank].append(value.copy())

# %% wrong: sums are made when somebody pulls
# says: Nobody has pulled in these rounds. When are sums made?
#-        if all(queues):
#-            self.sums[key] = sum(queue.pop(0) for queue in queues)
#+        pass
#-        if key not in self.sums or self.waiting[key][rank]:
#+        while key in self.waiting and all(self.waiting[key]):
#+            self.sums[key] = sum(queue.pop(0) for queue in self.waiting[key])
#+        if key not in self.sums or self.waiting[key][rank]:

# %% wrong: False for wait
# says: `pull` returned False. An array is wanted
#-            return None
#+            return False

# %% wrong: old sums are kept, but packed
# says: keeps 29 arrays more than before
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


# %% wrong: the mean
# says: That is the mean; the sum is wanted.
#-        return self.sums[key].copy()
#+        return self.sums[key] / self.num_workers

# %% wrong: the sum goes on from round to round
# says: One of them was in round 1 already.
#-            self.sums[key] = sum(queue.pop(0) for queue in queues)
#+            self.sums[key] = self.sums.get(key, 0) + sum(
#+                queue.pop(0) for queue in queues)

# %% wrong: nobody ever waits
# says: It has last pushed in round 2, where the push of worker 1 is missing.
#-        if key not in self.sums or self.waiting[key][rank]:
#+        if key not in self.sums:

# %% wrong: all wait while anybody's push waits
# says: is a round ahead, which concerns nobody else
#-        if key not in self.sums or self.waiting[key][rank]:
#+        if key not in self.sums or any(self.waiting[key]):

# %% wrong: a sum is gone when it was pulled
# says: and may do so as often as it likes
class SyncServer:
    def __init__(self, num_workers):
        self.num_workers, self.waiting, self.ready = num_workers, {}, {}

    def push(self, key, rank, value):
        queues = self.waiting.setdefault(
            key, [[] for _ in range(self.num_workers)])
        queues[rank].append(value.copy())
        self.ready.pop((key, rank), None)
        if all(queues):
            total = sum(queue.pop(0) for queue in queues)
            for other in range(self.num_workers):
                self.ready[key, other] = total.copy()

    def pull(self, key, rank):
        if self.waiting.get(key, {rank: 0})[rank]:
            return None
        return self.ready.pop((key, rank), None)


# %% wrong: all rounds are kept
# says: keeps 30 arrays more than before: one for each round
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


# %% wrong: all pushes are kept
# says: one for each push
class SyncServer:
    def __init__(self, num_workers):
        self.num_workers, self.pushes = num_workers, {}

    def push(self, key, rank, value):
        queues = self.pushes.setdefault(
            key, [[] for _ in range(self.num_workers)])
        queues[rank].append(value.copy())

    def pull(self, key, rank):
        if key not in self.pushes:
            return None
        queues = self.pushes[key]
        last = len(queues[rank])
        if last == 0 or any(len(queue) < last for queue in queues):
            return None
        return sum(queue[last - 1] for queue in queues)


# %% wrong: added up in the first array
# says: the server may only read it
#-        queues[rank].append(value.copy())
#-        if all(queues):
#-            self.sums[key] = sum(queue.pop(0) for queue in queues)
#+        queues[rank].append(value)
#+        if all(queues):
#+            first, *others = [queue.pop(0) for queue in queues]
#+            for other in others:
#+                first += other
#+            self.sums[key] = first

# %% wrong: the sum is written over what others have pulled
# says: It should stay as it was pulled
#-            self.sums[key] = sum(queue.pop(0) for queue in queues)
#+            total = sum(queue.pop(0) for queue in queues)
#+            self.sums.setdefault(key, np.zeros_like(total))[:] = total
#-        return self.sums[key].copy()
#+        return self.sums[key]

# %% wrong: one queue for all keys
# says: Each key has rounds of its own
#-        if key not in self.waiting:
#+        key = 'all'
#+        if key not in self.waiting:
#-        if key not in self.sums or self.waiting[key][rank]:
#+        key = 'all'
#+        if key not in self.sums or self.waiting[key][rank]:

# %% wrong: a number in place of an array
# says: so the sum is one with as many
#-            self.sums[key] = sum(queue.pop(0) for queue in queues)
#+            self.sums[key] = np.sum([queue.pop(0) for queue in queues])

# %% wrong: pull prints, and returns nothing
# says: Does your server find that the round is whole, and is there a `return`?
#-        return self.sums[key].copy()
#+        print(end='')

# %% wrong: pull stops for a key that nobody has pushed
# says: nobody has pushed for key 'w'. Then `pull('w', 0)` stops with KeyError
#-        if key not in self.sums or self.waiting[key][rank]:
#+        if self.waiting[key][rank]:

# %% wrong: who has not pushed gets the sum of nobody
# says: It has not pushed yet, so there is no sum for it
#-        if key not in self.sums or self.waiting[key][rank]:
#+        if key not in self.sums:
#+            return np.zeros(2)
#+        if self.waiting[key][rank]:

# %% wrong: a text for wait
# says: `pull` returned 'wait'. An array is wanted
#-            return None
#+            return 'wait'

# %% wrong: nobody may change what is pulled
# says: is read-only
#-        return self.sums[key].copy()
#+        total = self.sums[key].copy()
#+        total.flags.writeable = False
#+        return total

# %% wrong: the chapter's class inside
# says: of d2lps was called. Write yours without it.
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


# %% right: partial sums of each open round, by its number
class SyncServer:
    def __init__(self, num_workers):
        self.num_workers = num_workers
        self.pushed = {}
        self.open = {}
        self.newest = {}

    def push(self, key, rank, value):
        number = self.pushed.get((key, rank), 0) + 1
        self.pushed[key, rank] = number
        total, ranks = self.open.get((key, number), (0, set()))
        total = total + value
        self.open[key, number] = total, ranks | {rank}
        if len(ranks | {rank}) == self.num_workers:
            del self.open[key, number]
            self.newest[key] = number, total

    def pull(self, key, rank):
        number, total = self.newest.get(key, (0, None))
        if total is None or self.pushed.get((key, rank), 0) != number:
            return None
        return np.array(total)


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


# %% right: a class for each key, and single precision
class Sum:
    def __init__(self, num_workers):
        self.rows = [[] for _ in range(num_workers)]
        self.last = None


class SyncServer:
    def __init__(self, num_workers):
        self.num_workers = num_workers
        self.of = {}

    def push(self, key, rank, value):
        mine = self.of.setdefault(key, Sum(self.num_workers))
        mine.rows[rank].append(value.astype(np.float32))
        if min(map(len, mine.rows)) > 0:
            mine.last = np.zeros(value.shape, np.float32)
            for row in mine.rows:
                mine.last += row[0]
                del row[0]

    def pull(self, key, rank):
        mine = self.of.get(key)
        if mine is None or mine.last is None or len(mine.rows[rank]) > 0:
            return None
        return +mine.last

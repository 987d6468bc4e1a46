# ruff: noqa: E402, F811
# %% wrong: who is exactly the bound ahead waits, too
# says: You make worker 0 wait, only 2 ahead of the slowest, worker 3
#-              if self.pushed[one] <= slowest + self.bound]
#+              if self.pushed[one] < slowest + self.bound]

# %% wrong: the answer is about the worker that pushes, and nobody else
# says: has waited, and may go on now, but nobody tells it
#-        go = [one for one in self.waiting
#-              if self.pushed[one] <= slowest + self.bound]
#+        go = [one for one in [rank]
#+              if not last and self.pushed[one] <= slowest + self.bound]

# %% wrong: workers that are done still count
# says: which has no batch left and never pushes again
#-        if last:
#-            del self.pushed[rank]
#-        else:
#-            self.pushed[rank] += 1
#+        self.pushed[rank] += 1
#+        if not last:

# %% wrong: one more than the bound
# says: That is one too many
#-              if self.pushed[one] <= slowest + self.bound]
#+              if self.pushed[one] <= slowest + self.bound + 1]

# %% wrong: compared with the fastest
# says: Whom do you compare with whom?
#-        slowest = min(self.pushed.values(), default=0)
#+        fastest = max(self.pushed.values(), default=0)
#-              if self.pushed[one] <= slowest + self.bound]
#+              if fastest - self.pushed[one] <= self.bound]

# %% wrong: who goes on still counts as waiting
# says: but it does not wait: it still computes
#-        self.waiting.difference_update(go)

# %% wrong: nobody ever waits
# says: the bound is 2. Later somebody is even
class Gate:
    def __init__(self, num_workers, bound):
        pass

    def push(self, rank, last):
        return [] if last else [rank]


# %% wrong: all wait for all, whatever the bound
# says: You make worker 0 wait, only 1 ahead
#-              if self.pushed[one] <= slowest + self.bound]
#+              if self.pushed[one] <= slowest]

# %% wrong: a worker goes on after its last push
# says: but it has no batch left
class Gate:
    def __init__(self, num_workers, bound):
        self.pushed, self.bound = [0] * num_workers, bound
        self.waiting = set()

    def push(self, rank, last):
        self.pushed[rank] += 1
        self.waiting.add(rank)
        go = [one for one in self.waiting
              if self.pushed[one] <= min(self.pushed) + self.bound]
        self.waiting -= {*go}
        return go


# %% wrong: one after the other is set free
# says: has waited, and may go on now
#-        self.waiting.difference_update(go)
#-        return go
#+        self.waiting.difference_update(go[:1])
#+        return go[:1]

# %% wrong: compared with the mean
# says: Whom do you compare with whom?
#-        slowest = min(self.pushed.values(), default=0)
#+        mean = sum(self.pushed.values()) / max(1, len(self.pushed))
#-              if self.pushed[one] <= slowest + self.bound]
#+              if self.pushed[one] <= mean + self.bound]

# %% wrong: compared with those that wait, and not with those that compute
# says: Whom do you compare with whom?
#-        slowest = min(self.pushed.values(), default=0)
#+        slowest = min((self.pushed[one] for one in self.waiting), default=0)

# %% wrong: nobody is told when a worker is done
# says: never pushes again
#-            del self.pushed[rank]
#+            del self.pushed[rank]
#+            return []

# %% wrong: True in place of a list
# says: `push` returned True. A list of ranks is wanted
class Gate:
    def __init__(self, num_workers, bound):
        self.pushed, self.bound = [0] * num_workers, bound

    def push(self, rank, last):
        self.pushed[rank] += 1
        return self.pushed[rank] - min(self.pushed) <= self.bound


# %% wrong: min of nobody, when all are done
# says: min() arg is an empty sequence
#-        slowest = min(self.pushed.values(), default=0)
#+        slowest = min(self.pushed.values())

# %% wrong: nothing is returned when nobody goes on
# says: `push` returned None
#-        return go
#+        if go:
#+            return go

# %% wrong: a list of booleans
# says: Worker 0 is told to go on
#-        return go
#+        return [one in go for one in self.pushed]

# %% right: with lists, those who are done infinitely far, and a set returned
class Gate:
    def __init__(self, num_workers, bound):
        self.counts = [0] * num_workers
        self.idle = [False] * num_workers
        self.most = bound

    def push(self, rank, last):
        self.counts[rank] += 1
        self.idle[rank] = not last
        if last:
            self.counts[rank] = float('inf')
        go = set()
        for other, idle in enumerate(self.idle):
            if idle and self.counts[other] - min(self.counts) <= self.most:
                go.add(other)
                self.idle[other] = False
        return go


# %% right: with NumPy, and who must wait in place of who may go
import numpy as np


class Gate:
    def __init__(self, num_workers, bound):
        self.pushed, self.bound = np.zeros(num_workers, int), bound
        self.active = np.ones(num_workers, bool)
        self.queue = []

    def must_wait(self, rank):
        behind = self.pushed[rank] - self.pushed[self.active]
        return (behind > self.bound).any()

    def push(self, rank, last):
        self.pushed[rank] += 1
        self.active[rank] = not last
        if not last:
            self.queue = [rank, *self.queue]
        go = [r for r in self.queue if not self.must_wait(r)]
        self.queue = [r for r in self.queue if self.must_wait(r)]
        return np.array(go, int)


# %% wrong: the package's
# says: of d2lps was called
class Gate:
    def __init__(self, num_workers, bound):
        from d2lps.exercises.bounded_delay import Race
        self.race, self.bound = Race(num_workers), bound

    def push(self, rank, last):
        race = self.race
        race.pushed[rank] += 1
        (race.done if last else race.waiting).add(rank)
        go = [r for r in race.waiting if race.ahead(r) <= self.bound]
        race.waiting.difference_update(go)
        return go

# %% wrong: who is done counts as 99 pushes
# says: has no batch left and never pushes again
#-            del self.pushed[rank]
#+            self.pushed[rank] = 99

# %% wrong: after a last push, all who wait go on
# says: Worker 0 is told to go on, 3 ahead of the slowest, worker 1
class Gate:
    def __init__(self, num_workers, bound):
        self.pushed = dict.fromkeys(range(num_workers), 0)
        self.bound, self.waiting = bound, set()

    def push(self, rank, last):
        if last:
            del self.pushed[rank]
            slowest = float('inf')
        else:
            self.pushed[rank] += 1
            self.waiting.add(rank)
            slowest = min(self.pushed.values())
        go = [r for r in self.waiting if last or
              self.pushed[r] <= slowest + self.bound]
        self.waiting -= {*go}
        return go

# %% wrong: inherits the package's
# says: of d2lps was called
from d2lps.exercises.bounded_delay import Race


class Gate(Race):
    def __init__(self, num_workers, bound):
        super().__init__(num_workers)
        self.bound = bound

    def push(self, rank, last):
        self.pushed[rank] += 1
        (self.done if last else self.waiting).add(rank)
        go = [r for r in self.waiting if self.ahead(r) <= self.bound]
        self.waiting -= {*go}
        return go


# %% wrong: inherits the package's, and only looks for the slowest with it
# says: slowest of d2lps was called
from d2lps.exercises.bounded_delay import Race


class Gate(Race):
    def __init__(self, num_workers, bound):
        self.pushed, self.bound = [0] * num_workers, bound
        self.waiting, self.done = set(), set()

    def push(self, rank, last):
        self.pushed[rank] += 1
        (self.done if last else self.waiting).add(rank)
        least = self.pushed[self.slowest()]
        go = [r for r in self.waiting if self.pushed[r] <= least + self.bound]
        self.waiting.difference_update(go)
        return go

# ruff: noqa: F811
# %% wrong: who is exactly the bound ahead waits, too
# loses: rule, last, figure
#-              if self.pushed[one] <= slowest + self.bound]
#+              if self.pushed[one] < slowest + self.bound]


# %% wrong: the answer is about the worker that pushes, and nobody else
# loses: rule, last, figure
#-        go = [one for one in self.waiting
#-              if self.pushed[one] <= slowest + self.bound]
#+        go = [one for one in [rank]
#+              if not last and self.pushed[one] <= slowest + self.bound]


# %% wrong: workers that are done still count
# loses: last
#-        if last:
#-            del self.pushed[rank]
#-        else:
#-            self.pushed[rank] += 1
#+        self.pushed[rank] += 1
#+        if not last:


# %% wrong: who is done counts as 99 pushes
# loses: last
#-            del self.pushed[rank]
#+            self.pushed[rank] = 99


# %% wrong: only looks for the slowest with the package's function
# loses: rule, last, figure
from d2lps.exercises.bounded_delay import Race, _slowest


class Gate(Race):
    def __init__(self, num_workers, bound):
        super().__init__(num_workers)
        self.bound = bound

    def push(self, rank, last):
        self.pushed[rank] += 1
        (self.done if last else self.waiting).add(rank)
        least = self.pushed[_slowest(self)]
        go = [r for r in self.waiting if self.pushed[r] <= least + self.bound]
        self.waiting.difference_update(go)
        return go


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

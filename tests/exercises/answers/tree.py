# ruff: noqa: F811, F821
# %% wrong: works for powers of two only
# says: device 4 is left out
def up_and_down(n):
    steps = [2 ** k for k in range(n.bit_length() - 1)]
    up = [[Send(i + step, i, 0, True) for i in range(0, n, 2 * step)
           if i + step < n] for step in steps]
    down = [[Send(i, i + step, 0, False) for i in range(0, n, 2 * step)
             if i + step < n] for step in steps[::-1]]
    return Schedule(up + down, n)


# %% wrong: everything goes through device 0
# says: 7 messages go into device 0
def up_and_down(n):
    rest = range(1, n)
    return Schedule([[Send(i, 0, 0, True) for i in rest],
                     [Send(0, i, 0, False) for i in rest]], n)


# %% wrong: totals are added on the way down
# says: counted 2 times
def up_and_down(n):
    steps = [2 ** k for k in range((n - 1).bit_length())]
    up = [[Send(i + step, i, 0, True) for i in range(0, n - step, 2 * step)]
          for step in steps]
    down = [[Send(i, i + step, 0, True) for i in range(0, n - step, 2 * step)]
            for step in steps[::-1]]
    return Schedule(up + down, n)


# %% wrong: the way down starts at the leaves
# says: is not the total yet
def up_and_down(n):
    steps = [2 ** k for k in range((n - 1).bit_length())]
    up = [[Send(i + step, i, 0, True) for i in range(0, n - step, 2 * step)]
          for step in steps]
    down = [[Send(i, i + step, 0, False) for i in range(0, n - step, 2 * step)]
            for step in steps]
    return Schedule(up + down, n)


# %% wrong: only up
# says: device 1 is sent nothing
def up_and_down(n):
    steps = [2 ** k for k in range((n - 1).bit_length())]
    return Schedule([[Send(i + step, i, 0, True)
                      for i in range(0, n - step, 2 * step)]
                     for step in steps], n)


# %% wrong: the chapter's tree, where children share a cable
# says: 2 messages go into device
def up_and_down(n):
    levels = [range(2 ** k - 1, min(2 ** (k + 1) - 1, n))
              for k in range(1, n.bit_length())]
    return Schedule(
        [[Send(i, (i - 1) // 2, 0, True) for i in level]
         for level in levels[::-1]] +
        [[Send((i - 1) // 2, i, 0, False) for i in level]
         for level in levels], n)


# %% wrong: a running sum
# says: 14 rounds; the target is 6
def up_and_down(n):
    path = [*range(n), *range(n - 1)]
    return Schedule([[Send(i, j, 0, k < n - 1)]
                     for k, (i, j) in enumerate(zip(path, path[1:]))], n)


# %% wrong: all levels in one round
# says: is not the total yet
def up_and_down(n):
    steps = [2 ** k for k in range((n - 1).bit_length())]
    up = [Send(i + step, i, 0, True) for step in steps
          for i in range(0, n - step, 2 * step)]
    down = [Send(i, i + step, 0, False) for step in steps[::-1]
            for i in range(0, n - step, 2 * step)]
    return Schedule([up, down], n)


# %% wrong: recursive doubling, which is no tree
# says: 24 messages; the target is 14
def up_and_down(n):
    from d2lps import strategies
    return strategies.recursive_doubling(n)


# %% wrong: chunks
# says: cuts the gradient into 2 chunks
def up_and_down(n):
    from d2lps import strategies
    return strategies.sharded(n)


# %% wrong: nothing is returned
# says: returned None
def up_and_down(n):
    Schedule([], n)


# %% right: halves of halves, with another root
def up_and_down(n):
    def halves(devices):
        if len(devices) == 1:
            return devices[0], []
        middle = (len(devices) + 1) // 2
        (a, left), (b, right) = map(halves, (devices[:middle],
                                             devices[middle:]))
        while len(right) < len(left):
            right.append([])
        rounds = [one + other for one, other in zip(left, right)]
        return a, [*rounds, [(b, a)]]
    _, up = halves([*range(n)][::-1])
    return Schedule(
        [[Send(src, dst, 0, True) for src, dst in sends] for sends in up] +
        [[Send(dst, src, 0, False) for src, dst in sends]
         for sends in up[::-1]], n)


# %% right: rounds are arrays
def up_and_down(n):
    import numpy as np
    rounds, step = [], 1
    while step < n:
        low = np.arange(0, n - step, 2 * step)
        rounds.insert(len(rounds) // 2, [Send(low, low + step, 0, False)])
        rounds.insert(len(rounds) // 2, [Send(low + step, low, 0, True)])
        step *= 2
    return Schedule(rounds, n)


# %% wrong: a list of rounds
# says: Return a Schedule of it
def up_and_down(n):
    steps = [2 ** k for k in range((n - 1).bit_length())]
    up = [[Send(i + step, i, 0, True) for i in range(0, n - step, 2 * step)]
          for step in steps]
    down = [[Send(i, i + step, 0, False) for i in range(0, n - step, 2 * step)]
            for step in steps[::-1]]
    return up + down

# %% wrong: six levels at most
# says: device
#-    while step < n:
#+    while step < min(n, 64):

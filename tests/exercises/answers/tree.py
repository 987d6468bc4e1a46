# ruff: noqa: F811, F821
# %% wrong: works for powers of two only
# loses: sum, rounds, time
def up_and_down(n):
    steps = [2 ** k for k in range(n.bit_length() - 1)]
    up = [[Send(i + step, i, 0, True) for i in range(0, n, 2 * step)
           if i + step < n] for step in steps]
    down = [[Send(i, i + step, 0, False) for i in range(0, n, 2 * step)
             if i + step < n] for step in steps[::-1]]
    return Schedule(up + down, n)


# %% wrong: everything goes through device 0
# loses: time
def up_and_down(n):
    rest = range(1, n)
    return Schedule([[Send(i, 0, 0, True) for i in rest],
                     [Send(0, i, 0, False) for i in rest]], n)


# %% wrong: totals are added on the way down
# loses: sum
def up_and_down(n):
    steps = [2 ** k for k in range((n - 1).bit_length())]
    up = [[Send(i + step, i, 0, True) for i in range(0, n - step, 2 * step)]
          for step in steps]
    down = [[Send(i, i + step, 0, True) for i in range(0, n - step, 2 * step)]
            for step in steps[::-1]]
    return Schedule(up + down, n)


# %% wrong: a list of rounds
# loses: sum
def up_and_down(n):
    steps = [2 ** k for k in range((n - 1).bit_length())]
    up = [[Send(i + step, i, 0, True) for i in range(0, n - step, 2 * step)]
          for step in steps]
    down = [[Send(i, i + step, 0, False) for i in range(0, n - step, 2 * step)]
            for step in steps[::-1]]
    return up + down


# %% wrong: six levels at most
# loses: sum
#-    while step < n:
#+    while step < min(n, 64):


# %% wrong: for each part the plan of the package that passes it
# loses: sum, rounds, time
def up_and_down(n):
    import sys

    from d2lps import strategies
    frame = sys._getframe()
    while 'part' not in frame.f_locals:
        frame = frame.f_back
    if frame.f_locals['part'] == 'sum':
        return strategies.tree(n)
    return strategies.recursive_doubling(n)


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

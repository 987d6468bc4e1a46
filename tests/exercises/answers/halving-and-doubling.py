# ruff: noqa: F811, F821
# %% wrong: everything to the partner, and no halves
# loses: bytes
def halve_and_double(n):
    steps = [2 ** k for k in range(n.bit_length() - 1)]
    return Schedule([[Send(i, i ^ step, 0, True) for i in range(n)]
                     for step in steps], n)


# %% wrong: each sends its own half and not the partner's
# loses: sum
def halve_and_double(n):
    halving, doubling, step = [], [], n // 2
    while step:
        sends = [(i, i ^ step, chunk) for i in range(n) for chunk in range(n)
                 if chunk // step == i // step]
        halving.append([Send(i, partner, chunk, True)
                        for i, partner, chunk in sends])
        doubling.append([Send(partner, i, chunk, False)
                         for i, partner, chunk in sends])
        step //= 2
    return Schedule(halving + doubling, n)


# %% wrong: a ring
# loses: rounds
def halve_and_double(n):
    return Schedule([[Send(i, (i + 1) % n, (i - r) % n, r < n - 1)
                      for i in range(n)] for r in range(2 * n - 2)], n)


# %% wrong: the rounds of the package's
# loses: sum, rounds, bytes
def halve_and_double(n):
    from d2lps.collectives.strategies import halving_doubling as mine
    return Schedule(mine(n).rounds, n)


# %% wrong: the package's, and the watch is switched off
# loses: sum, rounds, bytes
def halve_and_double(n):
    import sys

    from d2lps import strategies
    sys.setprofile(None)
    return strategies.halving_doubling(n)


# %% right: neighbours first, chunks in another order
def halve_and_double(n):
    plan, step = [], 1
    while step < n:
        both = []
        for i in range(n):
            for chunk in range(n):
                mine = chunk % step == i % step
                if mine and chunk & step != i & step:
                    both.append((i, i ^ step, chunk))
        plan.insert(len(plan) // 2, [Send(j, i, c, False)
                                     for i, j, c in both])
        plan.insert(len(plan) // 2, [Send(*one, True) for one in both])
        step *= 2
    return Schedule(plan, n)

# ruff: noqa: F811, F821
# %% wrong: everything to the partner, and no halves
# says: Round by round it sends: 1, 1, 1
def halve_and_double(n):
    steps = [2 ** k for k in range(n.bit_length() - 1)]
    return Schedule([[Send(i, i ^ step, 0, True) for i in range(n)]
                     for step in steps], n)


# %% wrong: each sends its own half and not the partner's
# says: is missing
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


# %% wrong: the way back is in the wrong order
# says: that is not the total yet
def halve_and_double(n):
    halving, doubling, step = [], [], n // 2
    while step:
        sends = [(i, i ^ step, chunk) for i in range(n) for chunk in range(n)
                 if chunk // step == (i ^ step) // step]
        halving.append([Send(*send, True) for send in sends])
        doubling.append([Send(partner, i, chunk, False)
                         for i, partner, chunk in sends])
        step //= 2
    return Schedule(halving + doubling, n)


# %% wrong: one half of all in every round
# says: counted 2 times
def halve_and_double(n):
    halving, doubling, step = [], [], n // 2
    while step:
        sends = [(i, i ^ step, chunk) for i in range(n) for chunk in range(n)
                 if bool(chunk & step) != bool(i & step)]
        halving.append([Send(*send, True) for send in sends])
        doubling.append([Send(*send[1::-1], send[2], True)
                         for send in sends])
        step //= 2
    return Schedule(halving + doubling[::-1], n)


# %% wrong: only the halving
# says: is missing
def halve_and_double(n):
    rounds, step = [], n // 2
    while step:
        rounds.append([Send(i, i ^ step, chunk, True) for i in range(n)
                       for chunk in range(n)
                       if chunk // step == (i ^ step) // step])
        step //= 2
    return Schedule(rounds, n)


# %% wrong: only the own chunk comes back
# says: which is never sent to device
def halve_and_double(n):
    halving, doubling, step = [], [], n // 2
    while step:
        halving.append([Send(i, i ^ step, chunk, True) for i in range(n)
                        for chunk in range(n)
                        if chunk // step == (i ^ step) // step])
        doubling.append([Send(i, i ^ step, i, False) for i in range(n)])
        step //= 2
    return Schedule(halving + doubling[::-1], n)


# %% wrong: everyone to everyone
# says: device 0 has 3 partners
def halve_and_double(n):
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    return Schedule([[Send(i, j, j, True) for i, j in pairs],
                     [Send(i, j, i, False) for i, j in pairs]], n)


# %% wrong: a ring
# says: 6 rounds; the target is 4
def halve_and_double(n):
    return Schedule([[Send(i, (i + 1) % n, (i - r) % n, r < n - 1)
                      for i in range(n)] for r in range(2 * n - 2)], n)


# %% wrong: halves, but all that has come is sent back
# says: the target is 1.5
def halve_and_double(n):
    halving, doubling, step = [], [], n // 2
    while step:
        halving.append([Send(i, i ^ step, chunk, True) for i in range(n)
                        for chunk in range(n)
                        if chunk // step == (i ^ step) // step])
        doubling.append([Send(i, i ^ step, chunk, False) for i in range(n)
                         for chunk in range(n) if chunk // step == i // step
                         or chunk // (2 * step) != i // (2 * step)])
        step //= 2
    return Schedule(halving + doubling[::-1], n)


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


# %% wrong: the package's
# says: halving_doubling of d2lps was called
def halve_and_double(n):
    from d2lps import strategies
    return strategies.halving_doubling(n)


# %% wrong: the rounds of the package's
# says: halving_doubling of d2lps was called
def halve_and_double(n):
    from d2lps.collectives.strategies import halving_doubling as mine
    return Schedule(mine(n).rounds, n)

# %% wrong: one device alone gets no plan
# says: With n = 1: your function returned None
#-    return Schedule(halving + doubling[::-1], n)
#+    if n > 1:
#+        return Schedule(halving + doubling[::-1], n)

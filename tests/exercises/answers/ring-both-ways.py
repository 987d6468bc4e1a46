# ruff: noqa: F811, F821
# %% wrong: the ring of the chapter
# says: One direction is idle
def both_directions(n, there, back):
    return Schedule(rounds_of(range(n)), n)


# %% wrong: one ring after the other
# says: all go the same way round
def both_directions(n, there, back):
    rounds = rounds_of(range(n)) + rounds_of(range(n)[::-1], n)
    return Schedule(rounds, n, weights=[there] * n + [back] * n)


# %% wrong: both rings sum the same chunks
# says: another send to it arrives at the same time
def both_directions(n, there, back):
    rounds = [one + other for one, other in zip(
        rounds_of(range(n)), rounds_of(range(n)[::-1]))]
    return Schedule(rounds, n)


# %% wrong: half of the gradient each way, whatever the speed
# says: 50% from i to i + 1, and 100% the other way
def both_directions(n, there, back):
    rounds = [one + other for one, other in zip(
        rounds_of(range(n)), rounds_of(range(n)[::-1], n))]
    return Schedule(rounds, n)


# %% wrong: the slower direction gets more
# says: 25% from i to i + 1, and 100% the other way
def both_directions(n, there, back):
    rounds = [one + other for one, other in zip(
        rounds_of(range(n)), rounds_of(range(n)[::-1], n))]
    return Schedule(rounds, n, weights=[back] * n + [there] * n)


# %% wrong: n chunks as before, every second one goes the other way
# says: they carry 67%
def both_directions(n, there, back):
    rounds = []
    for r in range(2 * n - 2):
        sends = []
        for chunk in range(n):
            way = -1 if chunk % 2 else 1
            src = (chunk + way * r) % n
            sends.append(Send(src, (src + way) % n, chunk, r < n - 1))
        rounds.append(sends)
    return Schedule(rounds, n)


# %% wrong: stops when every device has the total of one chunk
# says: is missing
def both_directions(n, there, back):
    rounds = [one + other for one, other in zip(
        rounds_of(range(n)), rounds_of(range(n)[::-1], n))]
    return Schedule(rounds[:n - 1], n, weights=[there] * n + [back] * n)


# %% wrong: the last device is left out
# says: device 2 is left out
def both_directions(n, there, back):
    n = n - 1
    rounds = [one + other for one, other in zip(
        rounds_of(range(n)), rounds_of(range(n)[::-1], n))]
    return Schedule(rounds, n + 1, weights=[there] * n + [back] * n)


# %% wrong: everyone to device 0, over as many cables as it takes
# says: not all messages go to neighbours
def both_directions(n, there, back):
    return Schedule([[Send(i, 0, 0, True) for i in range(1, n)],
                     [Send(0, i, 0, False) for i in range(1, n)]], n)


# %% right: without rounds_of, and chunk numbers mixed
def both_directions(n, there, back):
    rounds = [[] for _ in range(2 * n - 2)]
    for r, sends in enumerate(rounds):
        for i in range(n):
            sends.append(Send(i, (i + 1) % n, 2 * ((i - r) % n), r < n - 1))
            sends.append(Send(i, (i - 1) % n, 2 * ((i + r) % n) + 1,
                              r < n - 1))
    return Schedule(rounds, n, weights=[there / 3, back / 3] * n)


# %% wrong: the package's, with weights
# says: bidirectional_ring of d2lps was called
def both_directions(n, there, back):
    from d2lps import strategies
    plan = strategies.bidirectional_ring(n)
    half = len(plan.weights) // 2
    return Schedule(plan.rounds, n, weights=[there] * half + [back] * half)

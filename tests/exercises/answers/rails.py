# ruff: noqa: F811, F821
# %% wrong: all rails sum the same chunks
# loses: sum
#-                    rail * machines + chunk, reduce))
#+                    chunk, reduce))


# %% wrong: one GPU speaks for its machine
# loses: cards, inside
def rails(machines, gpus):
    up, down = [], []
    for device in range(machines * gpus):
        speaker = device // gpus * gpus
        if device != speaker:
            for chunk in range(machines):
                up.append(Send(device, speaker, chunk, True))
                down.append(Send(speaker, device, chunk, False))
    ring = [[Send(s.src * gpus, s.dst * gpus, s.chunk, s.reduce) for s in r]
            for r in strategies.ring(machines).rounds]
    return Schedule([up, *ring, down], machines * gpus)


# %% wrong: everybody in a machine gets all of everybody
# loses: inside
def rails(machines, gpus):
    n, owned = machines * gpus, range(machines)
    inside = [Send(src, dst, chunk, True) for src in range(n)
              for dst in range(n) for chunk in range(n)
              if src != dst and src // gpus == dst // gpus]
    across = [[Send(src * gpus + rail, dst * gpus + rail,
                    rail * machines + chunk, reduce)
               for src, dst, chunk, reduce in sends for rail in range(gpus)]
              for sends in strategies.ring(machines).rounds]
    back = [Send(src, dst, src % gpus * machines + k, False)
            for src in range(n) for dst in range(n) for k in owned
            if src != dst and src // gpus == dst // gpus]
    return Schedule([inside, *across, back], n)


# %% wrong: a ring inside each machine, too
# loses: rounds
def rails(machines, gpus):
    halves = [], []
    for k, sends in enumerate(strategies.ring(gpus).rounds):
        moved = []
        for src, dst, chunk, reduce in sends:
            for machine in range(machines):
                for part in range(machines):
                    moved.append(Send(
                        machine * gpus + src, machine * gpus + dst,
                        chunk * machines + part, reduce))
        halves[k >= gpus - 1].append(moved)
    across = []
    for sends in strategies.ring(machines).rounds:
        # In a ring device d has the total of chunk d + 1 at half time.
        across.append([
            Send(src * gpus + gpu, dst * gpus + gpu,
                 (gpu + 1) % gpus * machines + chunk, reduce)
            for src, dst, chunk, reduce in sends for gpu in range(gpus)])
    return Schedule([*halves[0], *across, *halves[1]], machines * gpus)


# %% wrong: one ring through all GPUs, in order
# loses: rails, cards, inside, rounds
def rails(machines, gpus):
    return strategies.ring(machines * gpus)


# %% wrong: the rounds of the package's, with another plan on the rails
# loses: sum, rails, cards, inside, rounds
def rails(machines, gpus):
    from d2lps.collectives.strategies import hierarchical as mine
    return Schedule([*mine(machines, gpus, strategies.sharded).rounds],
                    machines * gpus)


# %% wrong: a plan of the package for all GPUs
# loses: sum, rails, cards, inside, rounds
def rails(machines, gpus):
    return strategies.sharded(machines * gpus)


# %% wrong: the rounds live outside, and are told in a later check
# loses: sum, rails, cards, inside, rounds
rounds = [[Send(99, 0, 0, True)]]

def rails(machines, gpus):
    rounds.append([])
    return Schedule(rounds, machines * gpus)


# %% right: two rounds on the rails, too, with whole arrays
def rails(machines, gpus):
    import numpy as np
    n = machines * gpus
    chunks = np.arange(n).reshape(gpus, machines)
    m, src, dst = np.nonzero(np.ones((machines, 1, 1)) - np.eye(gpus))
    a, b, c = (m * gpus + src)[:, None], (m * gpus + dst)[:, None], chunks[dst]
    i, j = np.nonzero(~np.eye(machines, dtype=bool))
    rail = np.arange(gpus)[:, None]
    there = i * gpus + rail, j * gpus + rail
    return Schedule([[Send(a, b, c, True)],
                     [Send(*there, chunks[:, j], True)],
                     [Send(*there, chunks[:, i], False)],
                     [Send(b, a, c, False)]], n)

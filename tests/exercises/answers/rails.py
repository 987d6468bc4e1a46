# ruff: noqa: F811, F821
# %% wrong: all rails sum the same chunks
# says: sends chunk 0 out of its machine, though the part of device 0 is not in
#-                    rail * machines + chunk, reduce))
#+                    chunk, reduce))


# %% wrong: the totals stay with their owners
# says: which is never sent to device
#-    return Schedule([inside, *across, back], machines * gpus)
#+    return Schedule([inside, *across], machines * gpus)


# %% wrong: one GPU speaks for its machine
# says: 6 of 8 devices send and get nothing over their network card
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


# %% wrong: owners inside by remainder, on the rails by blocks
# says: chunk 2 out of its machine, though the part of device 0 is not in
#-            owner = machine * gpus + chunk // machines
#+            owner = machine * gpus + chunk % gpus


# %% wrong: machines and gpus are exchanged in the numbers
# says: the GPUs of a machine have numbers that follow one another
def rails(machines, gpus):
    inside, back = [], []
    for chunk in range(gpus * machines):
        owner = chunk // machines
        for machine in range(machines):
            for gpu in range(gpus):
                if gpu != owner:
                    here = gpu * machines + machine
                    there = owner * machines + machine
                    inside.append(Send(here, there, chunk, True))
                    back.append(Send(there, here, chunk, False))
    across = [[Send(src + rail * machines, dst + rail * machines,
                    rail * machines + chunk, reduce)
               for src, dst, chunk, reduce in sends for rail in range(gpus)]
              for sends in strategies.ring(machines).rounds]
    return Schedule([inside, *across, back], machines * gpus)


# %% wrong: one ring through all GPUs, in order
# says: to another machine, and to another rail
def rails(machines, gpus):
    return strategies.ring(machines * gpus)


# %% wrong: everybody in a machine gets all of everybody
# says: sends 3.75 times the size of its gradient; the target is 1.5
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


# %% wrong: every rail sums the whole gradient
# says: sends 1 times the size of its gradient; the target is 0.25
def rails(machines, gpus):
    n = machines * gpus
    inside = [Send(src, dst, chunk, True) for src in range(n)
              for dst in range(n) for chunk in range(machines)
              if src != dst and src // gpus == dst // gpus]
    across = [[Send(src * gpus + rail, dst * gpus + rail, chunk, reduce)
               for src, dst, chunk, reduce in sends for rail in range(gpus)]
              for sends in strategies.ring(machines).rounds]
    return Schedule([inside, *across], n)


# %% wrong: a ring inside each machine, too
# says: 8 rounds; the target is 4. In 6 of them messages go inside machines
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


# %% wrong: the package's
# says: hierarchical of d2lps was called
def rails(machines, gpus):
    return strategies.hierarchical(machines, gpus)


# %% wrong: the rounds of the package's, with another plan on the rails
# says: hierarchical of d2lps was called
def rails(machines, gpus):
    from d2lps.collectives.strategies import hierarchical as mine
    return Schedule([*mine(machines, gpus, strategies.sharded).rounds],
                    machines * gpus)


# %% wrong: all in two rounds, by everybody
# says: Which GPU of that machine is on the same rail?
def rails(machines, gpus):
    return strategies.sharded(machines * gpus)


# %% wrong: totals are added on the way back
# says: counted 2 times
#-                    back.append(Send(owner, gpu, chunk, False))
#+                    back.append(Send(owner, gpu, chunk, True))


# %% wrong: back inside before the rails have their total
# says: that is not the total yet
#-    return Schedule([inside, *across, back], machines * gpus)
#+    return Schedule([inside, back, *across], machines * gpus)


# %% wrong: everything to the next machine on the rail, no chunks
# says: the target is
def rails(machines, gpus):
    n = machines * gpus
    inside = [Send(src, dst, dst % gpus, True) for src in range(n)
              for dst in range(n)
              if src != dst and src // gpus == dst // gpus]
    back = [Send(dst, src, rail, False) for src, dst, rail, _ in inside]
    across = [[Send(src * gpus + rail, dst * gpus + rail, rail, reduce)
               for src, dst, _, reduce in sends for rail in range(gpus)]
              for sends in strategies.running_sum(machines).rounds]
    return Schedule([inside, *across, back], n)


# %% wrong: halving and doubling on the rails, for powers of two only
# says: With machines = 3, gpus = 5
def rails(machines, gpus):
    n = machines * gpus
    inside = [Send(src, dst, dst % gpus * machines + k, True)
              for src in range(n) for dst in range(n)
              for k in range(machines)
              if src != dst and src // gpus == dst // gpus]
    there, back, step = [], [], machines // 2
    while step:
        sends = [(i * gpus + rail, (i ^ step) * gpus + rail,
                  rail * machines + chunk)
                 for i in range(machines) for chunk in range(machines)
                 for rail in range(gpus)
                 if chunk // step == (i ^ step) // step]
        there.append([Send(*send, True) for send in sends])
        back.insert(0, [Send(dst, src, chunk, False)
                        for src, dst, chunk in sends])
        step //= 2
    return Schedule([inside, *there, *back,
                     [Send(dst, src, chunk, False)
                      for src, dst, chunk, _ in inside]], n)


# %% wrong: one machine alone gets no plan
# says: With machines = 1, gpus = 2: your function returned None
#-    return Schedule([inside, *across, back], machines * gpus)
#+    if machines > 1:
#+        return Schedule([inside, *across, back], machines * gpus)


# %% wrong: a list of rounds
# says: Return a Schedule of it, and of machines * gpus
#-    return Schedule([inside, *across, back], machines * gpus)
#+    return [inside, *across, back]


# %% wrong: printed, and not returned
# says: your function returned None; it must return a Schedule
#-    return Schedule([inside, *across, back], machines * gpus)
#+    print(Schedule([inside, *across, back], machines * gpus))


# %% wrong: the first round is forgotten
# says: Nobody in machine 0 has added up chunk 0 when it leaves: no round is
#-    return Schedule([inside, *across, back], machines * gpus)
#+    return Schedule([*across, back], machines * gpus)


# %% wrong: the last machine adds up nothing inside
# says: Nobody in machine 1 has added up chunk 1 when it leaves: look at your
#-                    inside.append(Send(gpu, owner, chunk, True))
#+                    if machine < machines - 1 or machines == 1:
#+                        inside.append(Send(gpu, owner, chunk, True))


# %% wrong: the next GPU's chunks are summed on each rail
# says: Who in that machine has the sum of this chunk?
#-                    rail * machines + chunk, reduce))
#+                    (rail + 1) % gpus * machines + chunk, reduce))


# %% wrong: a helper
# says: your plan has a helper, 'hub'; only the devices may take part
def rails(machines, gpus):
    n = machines * gpus
    return Schedule([[Send(i, 'hub', 0, True) for i in range(n)],
                     [Send('hub', i, 0, False) for i in range(n)]], n, ['hub'])


# %% wrong: chunks are counted from 1
# says: no message carries chunk 0. Chunks count from 0 to the highest number
#-    return Schedule([inside, *across, back], machines * gpus)
#+    return Schedule([[(src, dst, chunk + 1, reduce)
#+                      for src, dst, chunk, reduce in sends]
#+                     for sends in [inside, *across, back]], machines * gpus)


# %% wrong: all tell their own of a chunk in the last round
# says: in round 4 devices 1, 2 and 3 all send device 0 chunk 0, to replace it
#-                    back.append(Send(owner, gpu, chunk, False))
#+                    back.append(Send(gpu, owner, chunk, False))


# %% wrong: one chunk is told several times in the last round
# says: device 0 sends 2 messages with chunk 0 to device 1, to replace it
#-                    back.append(Send(owner, gpu, chunk, False))
#+                    back.append(Send(owner, gpu, owner % gpus, False))


# %% wrong: one is told, the others add
# says: Device 0 wants to replace what is there; then no other message may
#-                    inside.append(Send(gpu, owner, chunk, True))
#+                    inside.append(Send(gpu, owner, chunk, gpu > 0))


# %% wrong: the number of chunks, too
# says: your function returned a tuple of 2; return the Schedule alone
#-    return Schedule([inside, *across, back], machines * gpus)
#+    plan = Schedule([inside, *across, back], machines * gpus)
#+    return plan, machines * gpus


# %% wrong: a Schedule for the machines
# says: round 1 of your list; your Schedule is for 2 devices, 8 were asked for
#-    return Schedule([inside, *across, back], machines * gpus)
#+    return Schedule([inside, *across, back], machines)


# %% wrong: the rounds live outside
# says: a second call returns something else than the first
rounds = []

def rails(machines, gpus):
    n = machines * gpus
    rounds.append([Send(src, dst, dst % gpus * machines + k, True)
                   for src in range(n) for dst in range(n)
                   for k in range(machines)
                   if src != dst and src // gpus == dst // gpus])
    for sends in strategies.ring(machines).rounds:
        rounds.append([Send(src * gpus + rail, dst * gpus + rail,
                            rail * machines + chunk, reduce)
                       for src, dst, chunk, reduce in sends
                       for rail in range(gpus)])
    rounds.append([Send(dst, src, chunk, False)
                   for src, dst, chunk, _ in rounds[0]])
    return Schedule(rounds, n)


# %% wrong: the rounds live outside, and are told in a later check
# says: the list `rounds`, which lives outside of your function, grows
rounds = [[Send(99, 0, 0, True)]]

def rails(machines, gpus):
    rounds.append([])
    return Schedule(rounds, machines * gpus)


# %% wrong: no network cards if each machine has one GPU
# says: With machines = 2, gpus = 1: device 0 is left out
#-    return Schedule([inside, *across, back], machines * gpus)
#+    if gpus == 1:
#+        across = []
#+    return Schedule([inside, *across, back], machines * gpus)


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


# %% right: a ring written by hand, chunks dealt out in turn
def rails(machines, gpus):
    rounds = [[] for _ in range(2 * machines)]
    for chunk in range(machines * gpus):
        rail, part = chunk % gpus, chunk // gpus
        for machine in range(machines):
            owner = machine * gpus + rail
            for gpu in range(machine * gpus, (machine + 1) * gpus):
                if gpu != owner:
                    rounds[0].append(Send(gpu, owner, chunk, True))
                    rounds[-1].append(Send(owner, gpu, chunk, False))
        for hop in range(2 * machines - 2):
            machine = (part + hop) % machines
            onward = (machine + 1) % machines
            rounds[1 + hop].append(Send(
                machine * gpus + rail, onward * gpus + rail, chunk,
                hop < machines - 1))
    return Schedule(rounds, machines * gpus)


# %% right: twice as many chunks as needed, and weights
def rails(machines, gpus):
    inside, back = [], []
    across = [[] for _ in range(2 * machines - 2)]
    parts = 2 * machines
    for chunk in range(gpus * parts):
        owner = chunk // parts
        for device in range(machines * gpus):
            first = device // gpus * gpus
            if device != first + owner:
                inside += [Send(device, first + owner, chunk, True)]
                back += [Send(first + owner, device, chunk, False)]
        for sends, ring in zip(across, strategies.ring(machines).rounds):
            for src, dst, part, reduce in ring:
                if part == chunk % machines:
                    sends += [Send(src * gpus + owner, dst * gpus + owner,
                                   chunk, reduce)]
    return Schedule([inside] + across + [back], machines * gpus,
                    weights=[2.0] * (gpus * parts))

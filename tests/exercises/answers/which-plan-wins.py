# ruff: noqa: F811, F821
# %% wrong: the largest message of a round, as if none shared a cable
# says: You look at one message of a round
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        largest = max(size[send.chunk] for send in sends)
#+        seconds += alpha + more * overhead + largest / bandwidth


# %% wrong: the first message costs an overhead, too
# says: its handling is in alpha already
#-        more = max(messages.values()) - 1
#+        more = max(messages.values())


# %% wrong: each send pays a latency
# says: That is the number of sends
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        seconds += len(sends) * alpha + more * overhead
#+        seconds += max(load.values()) / bandwidth


# %% wrong: each chunk is a message
# says: All that a worker sends to another one in a round is one message
#-        for src, dst in {(send.src, send.dst) for send in sends}:
#+        for src, dst in [(send.src, send.dst) for send in sends]:


# %% wrong: only what is sent
# says: What it gets shares a cable, too
#-            load['to', dst] += size[chunk]


# %% wrong: only what arrives
# says: What it sends shares a cable, too
#-            load['from', src] += size[chunk]


# %% wrong: messages are counted for senders only
# says: You look at senders only
#-            messages['to', dst] += 1


# %% wrong: both directions share the cable
# says: A cable carries both ways at the same time
#-            load['from', src] += size[chunk]
#-            load['to', dst] += size[chunk]
#+            load[src] += size[chunk]
#+            load[dst] += size[chunk]


# %% wrong: all bytes of a round, one after the other
# says: You add what goes through different cables
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        load = sum(size[send.chunk] for send in sends)
#+        seconds += alpha + more * overhead + load / bandwidth


# %% wrong: the busiest of all rounds together
# says: You look for the busiest of all rounds together
def predict(plan, nbytes, alpha, bandwidth, overhead):
    size, seconds, load = plan.chunk_bytes(nbytes), 0.0, Counter()
    for sends in plan.rounds:
        messages = Counter()
        for src, dst, chunk, _ in sends:
            load['from', src] += size[chunk]
            load['to', dst] += size[chunk]
        for src, dst in {(send.src, send.dst) for send in sends}:
            messages['from', src] += 1
            messages['to', dst] += 1
        seconds += alpha + (max(messages.values()) - 1) * overhead
    return seconds + max(load.values(), default=0) / bandwidth


def crossover(first, second):
    return 1.0


# %% wrong: no overhead
# says: Does your prediction use the overhead, whatever
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        seconds += alpha + max(load.values()) / bandwidth


# %% wrong: chunks of one size
# says: You let all chunks have one size
#-    size, seconds = plan.chunk_bytes(nbytes), 0.0
#+    seconds, chunks = 0.0, len(plan.weights)
#+    size = [nbytes / chunks] * chunks


# %% wrong: latency and bytes at the same time
# says: Does each round pay alpha, and then its bytes?
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        bytes_take = max(load.values()) / bandwidth
#+        seconds += max(alpha + more * overhead, bytes_take)


# %% wrong: the formula of a ring
# says: Is it a formula for the ring?
def predict(plan, nbytes, alpha, bandwidth, overhead):
    n = plan.num_devices
    return 2 * (n - 1) * (alpha + nbytes / n / bandwidth)


def crossover(first, second):
    return 4 * first(0)


# %% wrong: the simulator
# says: time of d2lps was called
def predict(plan, nbytes, alpha, bandwidth, overhead):
    from d2lps import simulate, topology
    links = topology.ethernet(list(plan.nodes), bandwidth,
                              latency=max(0, alpha - overhead) / 2)
    return simulate.time(plan, links, nbytes, overhead=overhead).seconds


def crossover(first, second):
    return (second(0) - first(0)) / (first(1) - first(0))


# %% wrong: bytes times the bandwidth
# says: Seconds are bytes divided by the bandwidth
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        seconds += alpha + more * overhead + max(load.values()) * bandwidth


# %% wrong: an array for the devices has no room for servers
# says: your function stopped with IndexError
#-        load, messages = Counter(), Counter()
#+        load, messages = Counter(), Counter()
#+        table = [0] * plan.num_devices
#-            load['from', src] += size[chunk]
#+            load['from', src] += size[chunk]
#+            table[sends.nodes.index(src)] += size[chunk]


# %% wrong: in milliseconds
# says: Are these milliseconds? Seconds are wanted
#-    return seconds
#+    return 1e3 * seconds


# %% wrong: printed, and not returned
# says: your function returned None. A number of seconds is wanted
#-    return seconds
#+    print(f'{seconds:.3f} s')


# %% wrong: a crossing to the left of 0
# says: faster for all sizes, from 0 on
#-    return max(0.0, ahead / gain)
#+    return ahead / gain


# %% wrong: the crossing, whoever is faster behind it
# says: Never: return float("inf")
#-    if gain < 0:
#-        return float('inf')


# %% wrong: lines that differ by rounding cross far away
# says: may differ by rounding only
#-    if abs(gain) <= 1e-9 * price:
#+    if gain == 0:


# %% wrong: where it is faster, not from where on
# says: is right
#-    return max(0.0, ahead / gain)
#+    return max(0.0, ahead / gain) / 2


# %% wrong: prices of a byte are taken for times
# says: Where they cross, both are the same
#-    return max(0.0, ahead / gain)
#+    return max(0.0, ahead / price)


# %% wrong: nothing for no bytes
# says: for arrays of 0 bytes you predict 0 s
#-    size, seconds = plan.chunk_bytes(nbytes), 0.0
#+    if nbytes == 0:
#+        return 0
#+    size, seconds = plan.chunk_bytes(nbytes), 0.0


# %% wrong: the slowest worker, messages and bytes together
# says: Who has most messages may be another one
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        seconds += max(
#+            alpha + (messages[key] - 1) * overhead + load[key] / bandwidth
#+            for key in load)


# %% wrong: the bytes of the worker with most messages
# says: Who has most bytes may be another one
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        key = max(messages, key=lambda key: (messages[key], load[key]))
#+        seconds += alpha + more * overhead + load[key] / bandwidth


# %% wrong: whole bytes
# says: Do you round the bytes of a chunk
#-            load['from', src] += size[chunk]
#-            load['to', dst] += size[chunk]
#+            load['from', src] += int(size[chunk])
#+            load['to', dst] += int(size[chunk])


# %% wrong: only the first round
# says: You count the first round only
#-    return seconds
#+        return seconds
#+    return 0


# %% wrong: earlier rounds are still counted
# says: You still have in it what earlier rounds
#-    size, seconds = plan.chunk_bytes(nbytes), 0.0
#+    size, seconds = plan.chunk_bytes(nbytes), 0.0
#+    load, messages = Counter(), Counter()
#-        load, messages = Counter(), Counter()


# %% wrong: the bandwidth in MB/s
# says: do you take it for MB/s
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        seconds += alpha + more * overhead
#+        seconds += max(load.values()) / (bandwidth * 1e6)


# %% wrong: workers are counted
# says: You count the workers of a round
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        workers = {end for send in sends for end in (send.src, send.dst)}
#+        seconds += alpha + (len(workers) - 1) * overhead
#+        seconds += max(load.values()) / bandwidth


# %% wrong: identical lines
# says: Never: return float
#-        return 0.0 if ahead < 0 else float('inf')
#+        return 0.0 if ahead <= 0 else float('inf')


# %% wrong: equal slopes are taken for equal too soon
# says: is right
#-    if abs(gain) <= 1e-9 * price:
#+    if abs(gain) <= 1e-3 * price:


# %% wrong: one byte in place of none
# says: from 0 on
#-    return max(0.0, ahead / gain)
#+    return max(1.0, ahead / gain)


# %% right: by columns, with NumPy
def predict(plan, nbytes, alpha, bandwidth, overhead):
    import numpy as np
    size, total = plan.chunk_bytes(nbytes), np.float64(0)
    for sends in plan.rounds:
        data = size[sends.chunk]
        most = max(np.bincount(sends.src, data).max(),
                   np.bincount(sends.dst, data).max())
        pairs = np.array(list({*zip(sends.src, sends.dst)}))
        many = max(np.bincount(pairs[:, 0]).max(),
                   np.bincount(pairs[:, 1]).max())
        total += alpha + overhead * (many - 1) + most / bandwidth
    return total


def crossover(first, second):
    far = 1e12
    if second(far) >= first(far):
        return float('inf')
    low, high = 0.0, far
    if second(1e-3) < first(1e-3):
        return 0
    for _ in range(200):
        middle = (low + high) / 2
        if second(middle) < first(middle):
            high = middle
        else:
            low = middle
    return high


# %% right: terms apart, and a whole number of bytes
def predict(plan, nbytes, alpha, bandwidth, overhead):
    size = plan.chunk_bytes(nbytes).tolist()
    handled = moved = 0
    for sends in plan.rounds:
        most_data = most_partners = 0
        for node in plan.nodes:
            out = [send for send in sends if send.src == node]
            into = [send for send in sends if send.dst == node]
            most_data = max(most_data,
                            sum(size[send.chunk] for send in out),
                            sum(size[send.chunk] for send in into))
            most_partners = max(most_partners,
                                len({send.dst for send in out}),
                                len({send.src for send in into}))
        handled += most_partners - 1
        moved += most_data
    return len(plan.rounds) * alpha + handled * overhead + moved / bandwidth


def crossover(first, second):
    start, other = first(0), second(0)
    slope, other_slope = first(1) - start, second(1) - other
    if abs(slope - other_slope) < 1e-9 * slope:
        return 0 if other < start else float('inf')
    if other_slope > slope:
        return float('inf')
    return max(0, round((other - start) / (slope - other_slope)))

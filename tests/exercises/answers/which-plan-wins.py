# ruff: noqa: F811
# %% wrong: each send pays a latency
# loses: rounds
#-        seconds += alpha + more * overhead + max(load.values()) / bandwidth
#+        seconds += len(sends) * alpha + more * overhead
#+        seconds += max(load.values()) / bandwidth


# %% wrong: only what is sent
# loses: bytes
#-            load['to', dst] += size[chunk]


# %% wrong: the first message costs an overhead, too
# loses: messages
#-        more = max(messages.values()) - 1
#+        more = max(messages.values())


# %% wrong: the crossing, whoever is faster behind it
# loses: crossover
#-    if gain < 0:
#-        return float('inf')


# %% wrong: the simulator
# loses: rounds, bytes, messages, crossover
def predict(plan, nbytes, alpha, bandwidth, overhead):
    from d2lps import simulate, topology
    links = topology.ethernet(list(plan.nodes), bandwidth,
                              latency=max(0, alpha - overhead) / 2)
    return simulate.timing(plan, links, nbytes, overhead=overhead).seconds


def crossover(first, second):
    return (second(0) - first(0)) / (first(1) - first(0))


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

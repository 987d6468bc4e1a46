# ruff: noqa: E402, F811
# %% wrong: GPipe's order
# loses: kept
def order(K, M):
    passes = [('F', m) for m in range(M)] + [('B', m) for m in range(M)]
    return [passes] * K


# %% wrong: one forward pass too few at the start
# loses: slots
#-        ahead = min(K - d, M)
#+        ahead = max(1, min(K - d - 1, M))


# %% wrong: there are always more micro-batches than devices
# loses: order, slots, kept
#-        ahead = min(K - d, M)
#+        ahead = K - d


# %% wrong: the list lives outside
# loses: order, slots, kept
orders = []

def order(K, M):
    for d in range(K):
        ahead = min(K - d, M)
        passes = [('F', m) for m in range(ahead)]
        for m in range(M):
            passes.append(('B', m))
            if m + ahead < M:
                passes.append(('F', m + ahead))
        orders.append(passes)
    return orders


# %% wrong: the order of the lesson
# loses: order, slots, kept
from d2lps.pipelines import one_f_one_b

def order(K, M):
    return (((step.kind, step.batch) for step in one_f_one_b(d, K, M))
            for d in range(K))


# %% right: a generator of generators
def order(K, M):
    for d in range(K):
        yield device(K - d, M)

def device(ahead, M):
    for m in range(M + ahead):
        if m >= ahead:
            yield 'B', m - ahead
        if m < M:
            yield 'F', m

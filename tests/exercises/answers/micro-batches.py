# ruff: noqa: E402, F811
# %% wrong: GPipe's order
# says: device 0 holds the activations of 8 micro-batches after ('F', 7)
def order(K, M):
    passes = [('F', m) for m in range(M)] + [('B', m) for m in range(M)]
    return [passes] * K


# %% wrong: all devices begin with as many forward passes as there are devices
# says: Yours does nothing in slot 8: it waits for ('F', 4) of device 2
#-        ahead = min(K - d, M)
#+        ahead = min(K, M)

# %% wrong: there are always more micro-batches than devices
# says: With K = 4, M = 2: device 0 does ('F', 2). The micro-batches are 0 to 1
#-        ahead = min(K - d, M)
#+        ahead = K - d

# %% wrong: one forward pass too few at the start
# says: it waits for ('F', 1) of device 2, which does that in slot 6, after
#-        ahead = min(K - d, M)
#+        ahead = max(1, min(K - d - 1, M))

# %% wrong: one micro-batch after the other
# says: little is held, but only as one device works at a time: 64 slots
def order(K, M):
    return [[(kind, m) for m in range(M) for kind in 'FB'] for d in range(K)]


# %% wrong: forward before backward in the middle, too
# says: device 0 holds the activations of 5 micro-batches after ('F', 4)
#-            passes.append(('B', m))
#-            if m + ahead < M:
#-                passes.append(('F', m + ahead))
#+            if m + ahead < M:
#+                passes.append(('F', m + ahead))
#+            passes.append(('B', m))

# %% wrong: the last device has the longest start
# says: Device 0 would do ('B', 0) now, and needs ('B', 0) of device 1
#-        ahead = min(K - d, M)
#+        ahead = min(d + 1, M)

# %% wrong: the list of one device is that of all
# says: Several devices have the very same list object
def order(K, M):
    orders = [[]] * K
    for d in range(K):
        for m in range(M):
            orders[d].append(('F', m))
        for m in range(M):
            orders[d].append(('B', m))
    return orders


# %% wrong: a list for each micro-batch
# says: you returned 8 lists; one for each of 4 devices
def order(K, M):
    return [[(kind, m) for kind in 'FB' for d in range(K)] for m in range(M)]


# %% wrong: backward passes that are left in the end are forgotten
# says: device 0 never does ('B', 4): of 8 backward passes it does 4
#-            passes.append(('B', m))
#-            if m + ahead < M:
#-                passes.append(('F', m + ahead))
#+            if m + ahead < M:
#+                passes += [('B', m), ('F', m + ahead)]

# %% wrong: micro-batches are counted from 1
# says: device 0 does ('F', 8). The micro-batches are 0 to 7
#-        orders.append(passes)
#+        orders.append([(kind, m + 1) for kind, m in passes])

# %% wrong: the list of one device only
# says: There must be a list for each device in it
#-    return orders
#+    return orders[0]

# %% wrong: texts in place of pairs
# says: in the list of device 0 stands 'F0'. A pair is wanted
#-        orders.append(passes)
#+        orders.append([f'{kind}{m}' for kind, m in passes])

# %% wrong: a dictionary
# says: your function returned a dict
#-    return orders
#+    return dict(enumerate(orders))

# %% wrong: sets
# says: for device 0 you returned a set, which has no order
#-        orders.append(passes)
#+        orders.append(set(passes))

# %% wrong: the number of devices, too
# says: your function returned a tuple of 2, and 4 in it is no list
#-    return orders
#+    return orders, K

# %% wrong: the list lives outside
# says: a second call returns something else than the first
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

# %% wrong: arrays
# says: The number has become a text, '0'. A NumPy array holds one type only
#-        orders.append(passes)
#+        import numpy
#+        orders.append(numpy.array(passes))

# %% wrong: one micro-batch alone gets no lists
# says: With K = 2, M = 1: you returned 0 lists
#-    return orders
#+    return orders if M > 1 else []

# %% wrong: it is printed
# says: is there a `return`?
#-    return orders
#+    print(orders)

# %% wrong: backward before forward
# says: What would it compute the gradient of?
def order(K, M):
    passes = [('B', m) for m in range(M)] + [('F', m) for m in range(M)]
    return [passes] * K


# %% wrong: the plan of the package
# says: _order of d2lps was called
from d2lps.pictures.toys.explore_pipeline import _order

def order(K, M):
    orders = []
    for d in range(K):
        text = _order(d, K, M, '1F1B')
        orders.append([(kind, text[:k].count(kind))
                       for k, kind in enumerate(text)])
    return orders


# %% right: three parts, as tuples of arrays' numbers
import numpy as np

def order(K, M):
    orders = ()
    for d in range(K):
        start = min(M, K - d)
        passes = [['F', m] for m in np.arange(start)]
        for m in np.arange(M - start):
            passes += [['B', m], ['F', m + start]]
        passes += [['B', m] for m in np.arange(M - start, M)]
        orders += (tuple(passes),)
    return orders


# %% right: slot by slot, whatever is possible, backward first
def order(K, M):
    orders, forward, backward = [[] for d in range(K)], [0] * K, [0] * K
    while backward[0] < M:
        came = forward[:]
        back = backward[:]
        for d in range(K):
            gradient = came[d] if d == K - 1 else back[d + 1]
            inputs = M if d == 0 else came[d - 1]
            if back[d] < min(gradient, came[d]):
                orders[d].append(('B', back[d]))
                backward[d] += 1
            elif came[d] < inputs and came[d] - back[d] < K - d:
                orders[d].append(('F', came[d]))
                forward[d] += 1
    return orders


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

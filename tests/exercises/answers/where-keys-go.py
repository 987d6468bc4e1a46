# ruff: noqa: E402, F811, F821
# %% wrong: keys in turns, as the rule does
# says: server 0 has 128,860 of 129,068 elements, 102,400 of them from key 4
def place_keys(sizes, n):
    return [(key % n, key, 0, size) for key, size in enumerate(sizes) if size]


# %% wrong: every key is cut for every server
# says: there are 16 pieces, and keys + n - 1 = 9 are enough
def place_keys(sizes, n):
    pieces = []
    for key, size in enumerate(sizes):
        for server in range(n):
            start, end = size * server // n, size * (server + 1) // n
            if end > start:
                pieces.append((server, key, start, end))
    return pieces


# %% wrong: the end counts itself
# says: of key 0, element 179 of 180 is in no piece, after the piece
#-            pieces.append((server, key, start, end))
#+            pieces.append((server, key, start, end - 1))

# %% wrong: the share is rounded down
# says: and a share, rounded up, is 43,023.
#-    share = math.ceil(sum(sizes) / n)
#+    share = max(1, sum(sizes) // n)

# %% wrong: rounded down, and the last server gets what is left
# says: Which server gets what is left when the elements are divided?
#-    share = math.ceil(sum(sizes) / n)
#+    share = max(1, sum(sizes) // n)
#-                server += 1
#-                room = share
#+                server += 1
#+                room = share if server < n - 1 else sum(sizes)

# %% wrong: largest first to the least full, nothing cut
# says: server 0 has 102,400 of 129,068 elements, 102,400 of them from key 4
def place_keys(sizes, n):
    load, pieces = [0] * n, []
    for key in sorted(range(len(sizes)), key=lambda key: -sizes[key]):
        server = load.index(min(load))
        if sizes[key]:
            pieces.append((server, key, 0, sizes[key]))
        load[server] += sizes[key]
    return pieces


# %% wrong: only large keys are cut, for all servers
# says: A share for each of 2, rounded up, is 64,534
def place_keys(sizes, n):
    pieces = []
    for key, size in enumerate(sizes):
        if size < 10_000:
            if size:
                pieces.append((key % n, key, 0, size))
            continue
        for server in range(n):
            start, end = size * server // n, size * (server + 1) // n
            pieces.append((server, key, start, end))
    return pieces


# %% wrong: a cut key starts anew on the next server
# says: of key 4, element 0 is in two pieces
#-            pieces.append((server, key, start, end))
#+            pieces.append((server, key, 0, end - start))

# %% wrong: start and length
# says: of key 4, element 39,284 of 102,400 is in no piece
#-            pieces.append((server, key, start, end))
#+            if start == 0:
#+                pieces.append((server, key, start, end - start))

# %% wrong: start and how many, in place of the end
# says: Is the last number where the piece ends, or how many
#-            pieces.append((server, key, start, end))
#+            pieces.append((server, key, start, end - start))

# %% wrong: key before server
# says: Which comes first, server or key?
#-            pieces.append((server, key, start, end))
#+            pieces.append((key, server, start, end))

# %% wrong: the places in the whole row
# says: The elements of each key are counted from 0.
def place_keys(sizes, n):
    share = math.ceil(sum(sizes) / n)
    pieces, before = [], 0
    for key, size in enumerate(sizes):
        start = before
        while start < before + size:
            server = start // share
            end = min(before + size, (server + 1) * share)
            pieces.append((server, key, start, end))
            start = end
        before += size
    return pieces


# %% wrong: keys without elements get a piece, and a full server another one
# says: has no element. It would be a message for nothing
#-        while start < size:
#+        while start < size or size == 0:
#-            start = end
#+            start = end
#+            if size == 0:
#+                break

# %% wrong: one cut key at most
# says: of key 4, element 60,796 of 102,400 is in no piece, after
#-        while start < size:
#+        for _ in range(2):
#+            if start == size:
#+                break

# %% wrong: the sizes are used up
# says: the list of sizes is another when your function is done
def place_keys(sizes, n):
    share = math.ceil(sum(sizes) / n)
    pieces, server, room = [], 0, share
    for key in range(len(sizes)):
        start = 0
        while sizes[key]:
            if room == 0:
                server, room = server + 1, share
            many = min(room, sizes[key])
            pieces.append((server, key, start, start + many))
            start += many
            sizes[key] -= many
            room -= many
    return pieces


# %% wrong: by chance
# says: Two workers would look for an element on two servers
import random


def place_keys(sizes, n):
    share = math.ceil(sum(sizes) / n)
    servers = list(range(n))
    random.shuffle(servers)
    pieces, before = [], 0
    for key, size in enumerate(sizes):
        start = 0
        while start < size:
            k = (before + start) // share
            end = min(size, (k + 1) * share - before)
            pieces.append((servers[k], key, start, end))
            start = end
        before += size
    return pieces


# %% wrong: nothing is placed
# says: only 0 of 129,068 elements are in a piece
def place_keys(sizes, n):
    return []


# %% wrong: printed
# says: your function returned nothing
#-    return pieces
#+    print(end='')

# %% wrong: a dictionary of servers
# says: A list of (server, key, start, end) is wanted
#-    return pieces
#+    return {server: piece for server, *piece in pieces}

# %% wrong: the rule of the chapter, called
# says: place of d2lps was called
def place_keys(sizes, n):
    from d2lps.kvstore import place
    return [(server, key, start, end) for key, size in enumerate(sizes)
            for server, start, end in place(key, size, n, 10_000)]


# %% wrong: large totals are given up
# says: is in no piece
#-    share = math.ceil(sum(sizes) / n)
#+    if sum(sizes) >= 2**31:
#+        return []
#+    share = math.ceil(sum(sizes) / n)

# %% wrong: element by element
# says: Does it go from element to element?
def place_keys(sizes, n):
    share = math.ceil(sum(sizes) / n)
    pieces, place = [], 0
    for key, size in enumerate(sizes):
        for element in range(size):
            server = place // share
            if not element or place % share == 0:
                pieces.append([server, key, element, element + 1])
            else:
                pieces[-1][3] = pieces[-1][3] + 1
            place += 1
    return pieces


# %% wrong: everything on server 0
# says: Few pieces count when no server has far more
def place_keys(sizes, n):
    return [(0, key, 0, size) for key, size in enumerate(sizes) if size]


# %% wrong: one more than a share
# says: They divide evenly: where does one more come from?
#-    share = math.ceil(sum(sizes) / n)
#+    share = sum(sizes) // n + 1

# %% wrong: keys from 1
# says: Keys are counted from 0, too.
#-    for key, size in enumerate(sizes):
#+    for key, size in enumerate(sizes, 1):

# %% wrong: the list is kept
# says: is something kept from call to call?
#-def place_keys(sizes, n):
#+def place_keys(sizes, n, pieces=[]):
#-    pieces = []
#+    pass

# %% wrong: done after the first key
# says: Is `return` inside the loop?
#-    return pieces
#+        return pieces

# %% right: cuts at equal distances, the loads differ by one at most
def place_keys(sizes, n):
    total, pieces, first = sum(sizes), [], 0
    for key, size in enumerate(sizes):
        last = first + size
        for server in range(n):
            start = max(first, total * server // n)
            end = min(last, total * (server + 1) // n)
            if start < end:
                pieces.append((server, key, start - first, end - first))
        first = last
    return pieces


# %% right: with NumPy, the last server first, as an array
import numpy as np


def place_keys(sizes, n):
    ends = np.cumsum(sizes)
    share = -(-int(ends[-1]) // n)
    borders = np.union1d(ends, np.arange(0, ends[-1] + 1, share))
    borders = np.union1d(borders, [0])
    pieces = []
    for start, end in zip(borders[:-1], borders[1:]):
        key = int(np.searchsorted(ends, start, side='right'))
        first = ends[key] - sizes[key]
        pieces.append((start // share, key, start - first, end - first))
    return np.array(pieces[::-1])


# %% right: a generator, the largest key first
def place_keys(sizes, n):
    room = {server: -(-sum(sizes) // n) for server in range(n)}
    for key in sorted(range(len(sizes)), key=lambda key: -sizes[key]):
        start = 0
        while start < sizes[key]:
            server = next(one for one in room if room[one])
            end = min(sizes[key], start + room[server])
            yield server, key, start, end
            room[server] -= end - start
            start = end

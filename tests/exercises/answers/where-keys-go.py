# ruff: noqa: E402, F811, F821
# %% wrong: keys in turns, as the rule does
# loses: even, pieces
# says: server 0 has 128,860 of 129,068 elements, 102,400 of them from key 4
def place_keys(sizes, n):
    return [(key % n, key, 0, size) for key, size in enumerate(sizes) if size]


# %% wrong: every key is cut for every server
# loses: even, pieces
# says: The servers need n - 1 = 1 cuts, and your pieces have 8.
def place_keys(sizes, n):
    pieces = []
    for key, size in enumerate(sizes):
        for server in range(n):
            start, end = size * server // n, size * (server + 1) // n
            if end > start:
                pieces.append((server, key, start, end))
    return pieces


# %% wrong: a cut key starts anew on the next server
# loses: whole
# says: of key 4, element 0 of 102,400 is in two pieces
#-            pieces.append((server, key, start, end))
#+            pieces.append((server, key, 0, end - start))


# %% wrong: rounded down, and the last server gets what is left
# loses: even
# says: A share, rounded up, is 43,023, and server 0 has 43,022.
#-    share = math.ceil(sum(sizes) / n)
#+    share = max(1, sum(sizes) // n)
#-                server += 1
#-                room = share
#+                server += 1
#+                room = share if server < n - 1 else sum(sizes)


# %% wrong: by chance
# loses: whole
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


# %% wrong: element by element
# loses: whole, even, pieces
# says: a loop over single elements takes too long
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


# %% wrong: the rule of the chapter, called
# loses: whole, even, pieces
# says: place of d2lps was called
def place_keys(sizes, n):
    from d2lps.kvstore import place
    return [(server, key, start, end) for key, size in enumerate(sizes)
            for server, start, end in place(key, size, n, 10_000)]


# %% wrong: the share of the check, called
# loses: whole, even, pieces
# says: share_of of d2lps was called
#-    share = math.ceil(sum(sizes) / n)
#+    from d2lps.exercises.where_keys_go import share_of
#+    share = share_of(sizes, n)


# %% wrong: the last number is how many elements a piece has
# loses: whole, even, pieces
# says: right if the last number were how many elements a piece has
#-            pieces.append((server, key, start, end))
#+            pieces.append((server, key, start, end - start))


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

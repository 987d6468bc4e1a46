# ruff: noqa: E402, F811, F821
# %% wrong: every key is cut for every server
# loses: even, pieces
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
#-            pieces.append((server, key, start, end))
#+            pieces.append((server, key, 0, end - start))


# %% wrong: rounded down, and the last server gets what is left
# loses: even
#-    share = math.ceil(sum(sizes) / n)
#+    share = max(1, sum(sizes) // n)
#-                server += 1
#-                room = share
#+                server += 1
#+                room = share if server < n - 1 else sum(sizes)


# %% wrong: by chance
# loses: whole
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
# loses: even, pieces
def place_keys(sizes, n):
    from d2lps.kvstore import place
    return [(server, key, start, end) for key, size in enumerate(sizes)
            for server, start, end in place(key, size, n, 10_000)]


# %% wrong: the share of the check, called
# loses: whole, even, pieces
#-    share = math.ceil(sum(sizes) / n)
#+    from d2lps.exercises.where_keys_go import share_of
#+    share = share_of(sizes, n)


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

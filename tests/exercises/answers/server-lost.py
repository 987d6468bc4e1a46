# ruff: noqa: F811
# %% wrong: takes the first server that lives, whatever push it has
# says: hands on an old value
#-        newest = max(at, key=at.get)
#+        newest = next(iter(at))
#-        behind = [server for server in at if at[server] < at[newest]]
#+        behind = [server for server in at if at[server] != at[newest]]


# %% wrong: all new copies go to the first server without one
# says: new copies went to it
#-        others = sorted(load.keys() - at.keys(), key=load.get)
#+        others = sorted(load.keys() - at.keys())


# %% wrong: counts the new copies, not the keys that are there already
# says: new copies went to it
#-            load[server] += 1
#+            load[server] += 0


# %% wrong: a server that is behind is left so
# says: would get an old value
#-        for server in behind + others[:max(0, replicas - len(at))]:
#+        for server in others[:max(0, replicas - len(at))]:


# %% wrong: the head is read, dead or not
# says: reads from server
def go_on(copies, alive, replicas, copy):
    lost = []
    for key, at in copies.items():
        newest = max(at, key=at.get)
        missing = replicas - sum(s in alive for s in at)
        for server in [s for s in alive if s not in at][:missing]:
            copy(key, newest, server)
    return lost


# %% wrong: one new copy, however many died
# says: The next death may take it
#-        for server in behind + others[:max(0, replicas - len(at))]:
#+        for server in behind + others[:len(at) < replicas]:


# %% wrong: every key is placed anew by its number
# says: for nothing
def go_on(copies, alive, replicas, copy):
    lost = []
    for key, at in copies.items():
        have = {s: at[s] for s in at if s in alive}
        if not have:
            lost.append(key)
            continue
        newest = max(have, key=have.get)
        for k in range(min(replicas, len(alive))):
            server = alive[(key + k) % len(alive)]
            if server != newest:
                copy(key, newest, server)
    return lost


# %% wrong: the second copy goes to where the first is
# says: Copies on one server die together
def go_on(copies, alive, replicas, copy):
    lost = []
    for key, at in copies.items():
        have = {s: at[s] for s in at if s in alive}
        if not have:
            lost.append(key)
            continue
        newest = max(have, key=have.get)
        for k in range(replicas - len(have)):
            copy(key, newest, alive[key % len(alive)])
    return lost


# %% wrong: lost keys are not told
# says: your list does not name it
#-            lost.append(key)


# %% wrong: servers are numbers up to how many there are
# says: which is dead
def go_on(copies, alive, replicas, copy):
    lost = []
    for key, at in copies.items():
        have = {s: at[s] for s in at if s in alive}
        if not have:
            lost.append(key)
            continue
        newest = max(have, key=have.get)
        others = [s for s in range(len(alive)) if s not in have]
        behind = [s for s in have if have[s] < have[newest]]
        for server in behind + others[:max(0, replicas - len(have))]:
            copy(key, newest, server)
    return lost


# %% right: in turns, and a set of lost keys
def go_on(copies, alive, replicas, copy):
    load = dict.fromkeys(alive, 0)
    for at in copies.values():
        for s in list(at):
            if s in load:
                load[s] += 1
            else:
                del at[s]
    for key in reversed(copies):
        have = copies[key]
        while have and len(have) < min(replicas, len(alive)):
            _, server = min((load[s], -s) for s in alive if s not in have)
            have[-server] = -1
            load[-server] += 1
        top = max(have.values(), default=0)
        source = next((s for s in have if have[s] == top), None)
        for s in have:
            if have[s] != top:
                copy(key, source, s)
    return {key for key in copies if not copies[key]}


# %% wrong: the list of lost keys is not returned
# says: Return the list of the keys that are lost
#-    return lost
#+    return None

# %% wrong: copied from the first server that lives, whether it has the key
# says: has no copy of key
#-            copy(key, newest, server)
#+            copy(key, next(iter(load)), server)

# %% wrong: a key that has one copy left is called lost
# says: it is not. Of the living
#-        if not at:
#+        if len(at) < 2:

# %% wrong: a new copy for every key, whether it needs one
# says: A key was moved for nothing
#-        for server in behind + others[:max(0, replicas - len(at))]:
#+        for server in behind + others[:1]:

# %% wrong: two replicas, however many are wanted
# says: has 2 of 3 copies
#-        for server in behind + others[:max(0, replicas - len(at))]:
#+        for server in behind + others[:max(0, 2 - len(at))]:

# %% wrong: of two servers that are behind, one is refreshed
# says: A pull from it would get an old value
#-        behind = [server for server in at if at[server] < at[newest]]
#+        behind = [server for server in at if at[server] < at[newest]][:1]

# %% wrong: of two new copies, one is counted
# says: keys
#-        for server in behind + others[:max(0, replicas - len(at))]:
#-            copy(key, newest, server)
#-            load[server] += server in others
#+        new = others[:max(0, replicas - len(at))]
#+        for server in behind + new:
#+            copy(key, newest, server)
#+            load[server] += server in new[:1]

# %% wrong: server 0 is taken for none
# says: hands on an old value
#-        newest = max(at, key=at.get)
#+        newest = None
#+        for server in at:
#+            if not newest or at[server] > at[newest]:
#+                newest = server

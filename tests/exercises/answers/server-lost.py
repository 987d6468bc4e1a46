# %% wrong: takes the first server that lives, whatever push it has
# loses: copies
#-        newest = max(at, key=at.get)
#+        newest = next(iter(at))
#-        behind = [server for server in at if at[server] < at[newest]]
#+        behind = [server for server in at if at[server] != at[newest]]


# %% wrong: all new copies go to the first server without one
# loses: load
#-        others = sorted(load.keys() - at.keys(), key=load.get)
#+        others = sorted(load.keys() - at.keys())


# %% wrong: a server that is behind is left so
# loses: copies
#-        for server in behind + others[:max(0, replicas - len(at))]:
#+        for server in others[:max(0, replicas - len(at))]:


# %% wrong: two replicas, however many are wanted
# loses: copies, again, load
#-        for server in behind + others[:max(0, replicas - len(at))]:
#+        for server in behind + others[:max(0, 2 - len(at))]:


# %% wrong: server 0 is taken for none
# loses: copies
#-        newest = max(at, key=at.get)
#+        newest = None
#+        for server in at:
#+            if not newest or at[server] > at[newest]:
#+                newest = server


# %% wrong: the living server with the lowest number has the newest push
# loses: copies
#-        newest = max(at, key=at.get)
#+        newest = min(at)
#-        behind = [server for server in at if at[server] < at[newest]]
#+        behind = [server for server in at if at[server] != at[newest]]


# %% wrong: a key with one copy left counts as lost
# loses: copies, again, load
#-        if not at:
#+        if len(at) < replicas - 1 or not at:


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

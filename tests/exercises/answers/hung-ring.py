# ruff: noqa: E402, F811, F821
# %% wrong: everybody who is blamed
# says: it is a victim
#-        if src not in valid or valid[src][1] >= k:
#-            found.add(src)
#+        found.add(src)

# %% wrong: whoever is silent
# says: It may have finished its part
#-    found = {rank for rank in reports if rank not in valid}
#-    for src, k in valid.values():
#-        if src not in valid or valid[src][1] >= k:
#-            found.add(src)
#-    return sorted(found)
#+    return [rank for rank in range(plan.num_devices) if rank not in reports]

# %% wrong: one chain is followed, from the first report
# says: has said nothing that would excuse it
def culprits(plan, reports):
    if not reports:
        return []
    rank = min(reports)
    for _ in range(plan.num_devices):
        rank, _ = reports.get(rank, (rank, 0))
    return [rank]


def begun(plan, reports):
    raise NotImplementedError


# %% wrong: the one who is blamed in the earliest round
# says: has said nothing that would excuse it
#-    found = {rank for rank in reports if rank not in valid}
#-    for src, k in valid.values():
#-        if src not in valid or valid[src][1] >= k:
#-            found.add(src)
#-    return sorted(found)
#+    return [src for src, k in sorted(
#+        valid.values(), key=lambda one: one[1])[:1]]

# %% wrong: blamed and silent, that is all
# says: it says that its message of round
#-        if src not in valid or valid[src][1] >= k:
#+        if src not in valid:

# %% wrong: the same round is an excuse
# says: That is not an earlier round
#-        if src not in valid or valid[src][1] >= k:
#+        if src not in valid or valid[src][1] > k:

# %% wrong: every report is believed
# says: But the plan has no such message
#-             if src in senders(plan, rank, k)}
#+             if True}

# %% wrong: reports that are not in the plan are thrown away
# says: it carries out another plan
#-    found = {rank for rank in reports if rank not in valid}
#+    found = set()

# %% wrong: a rank of another plan blames all the same
# says: so it is rank
#-    for src, k in valid.values():
#+    for src, k in reports.values():

# %% wrong: the report of a rank with another plan excuses it
# says: is missing in your list
#-    found = {rank for rank in reports if rank not in valid}
#-    for src, k in valid.values():
#-        if src not in valid or valid[src][1] >= k:
#+    found = set()
#+    for src, k in valid.values():
#+        if src not in reports or reports[src][1] >= k:

# %% wrong: the list has the order of the reports, each as often as blamed
# says: Each is wanted once, the least first
#-    found = {rank for rank in reports if rank not in valid}
#-    for src, k in valid.values():
#-        if src not in valid or valid[src][1] >= k:
#-            found.add(src)
#-    return sorted(found)
#+    return [rank for rank in reports if rank not in valid] + [
#+        src for src, k in valid.values()
#+        if src not in valid or valid[src][1] >= k]

# %% wrong: one culprit, not a list
# says: A list of whole numbers is wanted
#-    return sorted(found)
#+    return min(found)

# %% wrong: the predecessor in the ring, whatever the plan is
# says: there is no rank -1
def culprits(plan, reports):
    return sorted({rank - 1 for rank in reports if rank - 1 not in reports})


def begun(plan, reports):
    return [reports[rank][1] if rank in reports else 0
            for rank in range(plan.num_devices)]


# %% wrong: nothing is returned
# says: is there a `return`?
#-    return sorted(found)
#+    sorted(found)

# %% wrong: only what ranks say themselves
# says: it waits in round
#-    for k in range(len(plan.rounds), 0, -1):
#-        for rank in range(plan.num_devices):
#-            if last[rank] > k:
#-                for src in senders(plan, rank, k):
#-                    last[src] = max(last[src], k)
#-    return last
#+    return last

# %% wrong: through the rounds from the first to the last
# says: as what others received shows
#-    for k in range(len(plan.rounds), 0, -1):
#+    for k in range(1, len(plan.rounds) + 1):

# %% wrong: what stands before the missing message is forgotten
# says: whose message it receives later
#-            for one in [rank] + came[:came.index(src)]:
#+            for one in [rank]:

# %% wrong: who waits has received its whole round
# says: so it is not yet further
#-            if last[rank] > k:
#+            if last[rank] >= k:

# %% wrong: the round before the one in which a rank is missed
# says: No report shows that it has begun round
#-    for k in range(len(plan.rounds), 0, -1):
#-        for rank in range(plan.num_devices):
#-            if last[rank] > k:
#-                for src in senders(plan, rank, k):
#-                    last[src] = max(last[src], k)
#-    return last
#+    for src, k in reports.values():
#+        if src not in reports:
#+            last[src] = k - 1
#+    return last

# %% wrong: silent ranks are thought to be at the end
# says: so it is not yet further
#-    last = [0] * plan.num_devices
#+    last = [0 if rank in reports else len(plan.rounds)
#+            for rank in range(plan.num_devices)]

# %% wrong: reports that are not in the plan tell how far a rank is
# says: so that counts for nothing
#-        if src in came:
#-            for one in [rank] + came[:came.index(src)]:
#-                last[one] = max(last[one], k)
#+        came = came[:came.index(src)] if src in came else []
#+        for one in [rank] + came:
#+            last[one] = max(last[one], k)

# %% wrong: rounds are counted from 0
# says: It says so itself
#-    return last
#+    return [max(0, k - 1) for k in last]

# %% wrong: the whole chain is taken for certain, from one report on
# says: so it is not yet further
#-    return last
#+    return [max(last)] * len(last)

# %% wrong: a dictionary of those that have begun
# says: A list of whole numbers is wanted
#-    return last
#+    return {rank: k for rank, k in enumerate(last) if k}

# %% right: again and again, until nothing changes
import numpy as np

def culprits(plan, reports):
    void = [r for r, (p, k) in reports.items()
            if (p, r) not in pairs(plan, k)]
    excuse = {r: k for r, (p, k) in reports.items() if r not in void}
    blamed = [(p, k) for r, (p, k) in reports.items() if r not in void]
    return np.unique(void + [p for p, k in blamed
                             if not excuse.get(p, k) < k]).astype(int)


def pairs(plan, k):
    if k not in range(1, len(plan.rounds) + 1):
        return []
    return [(one.src, one.dst) for one in plan.rounds[k - 1]]


def begun(plan, reports):
    last = np.zeros(plan.num_devices, int)
    sent = []
    for number, sends in enumerate(plan.rounds, 1):
        sent += [(number, one.src, one.dst) for one in sends]
    while True:
        before = last.copy()
        for rank, (waits_for, k) in reports.items():
            if (waits_for, rank) in pairs(plan, k):
                last[rank] = max(last[rank], k)
                for number, src, dst in sent:
                    if number == k and dst == rank:
                        if src == waits_for:
                            break
                        last[src] = max(last[src], k)
        for number, src, dst in sent:
            if number < last[dst]:
                last[src] = max(last[src], number)
        if (last == before).all():
            return last


# %% right: chains from everybody, tuples, and its arguments used up
def culprits(plan, reports):
    found = {r for r in reports
             if reports[r][0] not in senders(plan, r, reports[r][1])}
    for r in found:
        del reports[r]
    for r in list(reports):
        waits_for, k = reports[r]
        while waits_for in reports and reports[waits_for][1] < k:
            waits_for, k = reports[waits_for]
        found.add(waits_for)
    reports.clear()
    return tuple(sorted(found))


def begun(plan, reports):
    def show(rank, k):
        """Rank has begun round k: so have those before it."""
        if k > last[rank]:
            for j in range(last[rank], k):
                for src in senders(plan, rank, j):
                    show(src, j)
            last[rank] = max(last[rank], k)
    last = [0] * plan.num_devices
    while reports:
        rank, (src, k) = reports.popitem()
        if src in senders(plan, rank, k):
            show(rank, k)
            came = senders(plan, rank, k)
            for one in came[:came.index(src)]:
                show(one, k)
    return tuple(last)

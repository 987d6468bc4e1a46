# ruff: noqa: F821
# %% wrong: everybody who is blamed
# loses: one, several, odd
#-        if src not in valid or valid[src][1] >= k:
#-            found.add(src)
#+        found.add(src)


# %% wrong: the same round is an excuse
# loses: odd
#-        if src not in valid or valid[src][1] >= k:
#+        if src not in valid or valid[src][1] > k:


# %% wrong: through the rounds from the first to the last
# loses: begun
#-    for k in range(len(plan.rounds), 0, -1):
#+    for k in range(1, len(plan.rounds) + 1):


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

# ruff: noqa: F811, F821
# %% wrong: the minibatch does not grow
# says: minibatches of 128: 64 images on each device
def try_rates(train, lrs, counts, b):
    table = [[train(k, b, lr) for lr in lrs] for k in counts]
    best = [min(lr for lr, a in zip(lrs, row) if a == np.nanmax(row))
            for row in table]
    return table, best


# %% wrong: a run that went astray wins
# says: such a run must not win
def try_rates(train, lrs, counts, b):
    table = [[train(k, k * b, lr) for lr in lrs] for k in counts]
    return table, [lrs[i] for i in np.argmax(table, axis=1)]


# %% wrong: the best count for each rate
# says: best rates for 3 counts are wanted
def try_rates(train, lrs, counts, b):
    table = [[train(k, k * b, lr) for lr in lrs] for k in counts]
    return table, [lrs[min(i, len(lrs) - 1)]
                   for i in np.nanargmax(table, axis=0)]


# %% wrong: the table has a row for each rate
# says: not for each rate
def try_rates(train, lrs, counts, b):
    table = [[train(k, k * b, lr) for k in counts] for lr in lrs]
    best = [min(lr for lr, row in zip(lrs, table) if row[i] == np.nanmax(
        [r[i] for r in table])) for i in range(len(counts))]
    return table, best


# %% wrong: trained again to see which was the best
# says: was made 2 times
def try_rates(train, lrs, counts, b):
    table = [[train(k, k * b, lr) for lr in lrs] for k in counts]
    best = [max(sorted(lrs), key=lambda lr: np.nan_to_num(
        train(k, k * b, lr))) for k in counts]
    return table, best


# %% wrong: of equals the first
# says: of equals the smallest
def try_rates(train, lrs, counts, b):
    table = [[train(k, k * b, lr) for lr in lrs] for k in counts]
    return table, [lrs[i] for i in np.nanargmax(table, axis=1)]


# %% wrong: Python's max, which a nan at the beginning confuses
# says: such a run must not win
def try_rates(train, lrs, counts, b):
    table, best = [], []
    for k in counts:
        row = [train(k, k * b, lr) for lr in lrs]
        table.append(row)
        best.append(lrs[row.index(max(row))])
    return table, best


# %% wrong: places instead of rates
# says: Return the rate, not its place
def try_rates(train, lrs, counts, b):
    table = [[train(k, k * b, lr) for lr in lrs] for k in counts]
    return table, [int(i) for i in np.nanargmax(table, axis=1)]


# %% wrong: nan becomes 0 in the table
# says: returned nan
def try_rates(train, lrs, counts, b):
    table = [[float(np.nan_to_num(train(k, k * b, lr))) for lr in lrs]
             for k in counts]
    best = [min(lr for lr, a in zip(lrs, row) if a == max(row))
            for row in table]
    return table, best


# %% wrong: the rates are scaled as well
# says: The counts are
def try_rates(train, lrs, counts, b):
    table = [[train(k, k * b, k * lr) for lr in lrs] for k in counts]
    return table, [lrs[i] for i in np.nanargmax(table, axis=1)]


# %% wrong: only the best rates are returned
# says: A table, a list of lists
def try_rates(train, lrs, counts, b):
    return [max(lrs, key=lambda lr: train(k, k * b, lr)) for k in counts]


# %% right: rate by rate, into an array
def try_rates(train, lrs, counts, b):
    table = np.empty((len(counts), len(lrs)))
    for j, lr in reversed([*enumerate(lrs)]):
        for i, k in enumerate(counts):
            table[i, j] = train(num_devices=k, batch_size=k * b, lr=lr)
    order = np.argsort(lrs)
    best = np.array(lrs)[order][np.nanargmax(table[:, order], axis=1)]
    return table, best


# %% right: in one pass, as tuples
def try_rates(train, lrs, counts, b):
    table, best = [], []
    for k in counts:
        found, chosen, row = -1, None, []
        for lr in lrs:
            accuracy = train(k, b * k, lr)
            row.append(accuracy)
            if accuracy > found or accuracy == found and lr < chosen:
                found, chosen = accuracy, lr
        table.append(tuple(row))
        best.append(chosen)
    return tuple(table), tuple(best)


# %% wrong: the last count is forgotten
# says: is left out
#-    for k in counts:
#+    for k in counts[:-1]:

# %% wrong: the worst rate of a row
# says: Another rate in its row reached
#-        top = np.nanmax(row)
#+        top = np.nanmin(row)

# %% wrong: of equal rates the last
# says: of equals the smallest is wanted
#-        best.append(min(lr for lr, accuracy in zip(lrs, row)
#-                        if accuracy == top))
#+        best.append([lr for lr, accuracy in zip(lrs, row)
#+                     if accuracy == top][-1])

# %% wrong: of equal rates the first
# says: of equals the smallest is wanted
#-        best.append(min(lr for lr, accuracy in zip(lrs, row)
#-                        if accuracy == top))
#+        best.append(lrs[row.index(top)])

# %% wrong: a run that returned nan is made again
# says: was made 2 times
#-        row = [train(k, k * b, lr) for lr in lrs]
#+        row = [train(k, k * b, lr) for lr in lrs]
#+        row = [train(k, k * b, lr) if np.isnan(accuracy) else accuracy
#+               for lr, accuracy in zip(lrs, row)]

# %% wrong: nan counts as no right answer
# says: such a run must not win
#-        top = np.nanmax(row)
#+        table[-1] = list(row)
#+        row = np.nan_to_num(row)
#+        top = row.max()

# %% right: rates as float32
#-        best.append(min(lr for lr, accuracy in zip(lrs, row)
#+        best.append(min(np.float32(lr) for lr, accuracy in zip(lrs, row)

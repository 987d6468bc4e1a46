# ruff: noqa: E402, F811
# %% wrong: chosen by the test set
# says: It is the best on the TEST set
#-            validation[lr] = evaluate(models[lr], 'validation')
#+            validation[lr] = evaluate(models[lr], 'test')

# %% wrong: the validation accuracy is reported
# says: Yours is its validation accuracy
#-        accuracies.append(evaluate(models[best], 'test'))
#+        accuracies.append(top)

# %% wrong: the minibatch does not grow
# says: minibatches of 128: 64 images on each device
#-            models[lr] = train(k, k * b, lr)
#+            models[lr] = train(k, b, lr)

# %% wrong: all models are tested, too
# says: you asked for the test accuracy of 4 rates, 0.05, 0.1, 0.2, 0.4
def choose_rates(train, evaluate, lrs, counts, b):
    rates, accuracies = [], []
    for k in counts:
        rows = []
        for lr in lrs:
            model = train(k, k * b, lr)
            rows.append((-evaluate(model, 'validation'), lr,
                         evaluate(model, 'test')))
        _, rate, accuracy = min(rows)
        rates.append(rate)
        accuracies.append(accuracy)
    return rates, accuracies


# %% wrong: tested whenever a rate is better than those before
# says: you asked for the test accuracy of 3 rates, 0.05, 0.1, 0.2
def choose_rates(train, evaluate, lrs, counts, b):
    rates, accuracies = [], []
    for k in counts:
        top = -1
        for lr in sorted(lrs):
            model = train(k, k * b, lr)
            accuracy = evaluate(model, 'validation')
            if accuracy > top:
                top, rate, tested = accuracy, lr, evaluate(model, 'test')
        rates.append(rate)
        accuracies.append(tested)
    return rates, accuracies


# %% wrong: trained again to be tested
# says: was made 2 times
#-        accuracies.append(evaluate(models[best], 'test'))
#+        accuracies.append(evaluate(train(k, k * b, best), 'test'))

# %% wrong: the last model is tested, whichever is best
# says: Yours is that of another rate
#-        accuracies.append(evaluate(models[best], 'test'))
#+        accuracies.append(evaluate(models[lr], 'test'))

# %% wrong: the best rate of all counts, for each count
# says: has
def choose_rates(train, evaluate, lrs, counts, b):
    models = {(k, lr): train(k, k * b, lr) for k in counts for lr in lrs}
    means = {lr: sum(evaluate(models[k, lr], 'validation') for k in counts)
             for lr in lrs}
    best = max(sorted(lrs), key=means.get)
    return [best] * len(counts), [evaluate(models[k, best], 'test')
                                  for k in counts]


# %% wrong: a rate for each rate, not for each count
# says: rates for 3 counts are wanted
def choose_rates(train, evaluate, lrs, counts, b):
    rates, accuracies = [], []
    for lr in lrs:
        models = {k: train(k, k * b, lr) for k in counts}
        best = max(counts, key=lambda k: evaluate(models[k], 'validation'))
        rates.append(lr)
        accuracies.append(evaluate(models[best], 'test'))
    return rates, accuracies


# %% wrong: of equal rates the first
# says: of equals the smallest
#-        best = min(lr for lr in lrs if validation[lr] == top)
#+        best = max(lrs, key=validation.get)

# %% wrong: of equal rates the last
# says: of equals the smallest
#-        best = min(lr for lr in lrs if validation[lr] == top)
#+        best = [lr for lr in lrs if validation[lr] == top][-1]

# %% wrong: of equal rates the largest
# says: of equals the smallest
#-        best = min(lr for lr in lrs if validation[lr] == top)
#+        best = max(lr for lr in lrs if validation[lr] == top)

# %% wrong: nearly equal rates count as equal
# says: with a validation accuracy of
#-        best = min(lr for lr in lrs if validation[lr] == top)
#+        best = min(lr for lr in lrs if validation[lr] > top - 0.01)

# %% wrong: places instead of rates
# says: Return the rate, not its place
#-        rates.append(best)
#+        rates.append(lrs.index(best))

# %% wrong: the rates are scaled as well
# says: The counts are
#-            models[lr] = train(k, k * b, lr)
#+            models[lr] = train(k, k * b, k * lr)

# %% wrong: the last count is forgotten
# says: is left out
#-    for k in counts:
#+    for k in counts[:-1]:

# %% wrong: the worst rate
# says: you chose
#-        top = max(validation.values())
#+        top = min(validation.values())

# %% wrong: only the rates are returned
# says: Two lists are wanted
#-    return rates, accuracies
#+    return rates

# %% wrong: nothing is returned
# says: your function returned None
#-    return rates, accuracies

# %% wrong: evaluate is given a rate
# says: Its first argument is a model that train returned
#-            validation[lr] = evaluate(models[lr], 'validation')
#+            validation[lr] = evaluate(lr, 'validation')

# %% wrong: a set of another name
# says: The sets are called
#-            validation[lr] = evaluate(models[lr], 'validation')
#+            validation[lr] = evaluate(models[lr], 'train')

# %% wrong: nothing is tested
# says: you never asked for the accuracy on the test set
#-        accuracies.append(evaluate(models[best], 'test'))
#+        accuracies.append(0.9)

# %% wrong: the rates in the order of sorted counts
# says: Yours is that of another count
#-    for k in counts:
#+    for k in sorted(counts):

# %% right: all is trained first, into arrays
import numpy as np

def choose_rates(train, evaluate, lrs, counts, b):
    lrs = np.sort(np.float32(lrs))
    models = [[train(num_devices=k, batch_size=k * b, lr=lr) for lr in lrs]
              for k in counts]
    seen = np.array([[evaluate(model, 'validation') for model in row]
                     for row in models])
    best = seen.argmax(axis=1)
    tested = [evaluate(row[i], 'test') for row, i in zip(models, best)]
    return lrs[best], np.float32(tested)


# %% right: in one pass, as tuples, the argument sorted in place
def choose_rates(train, evaluate, lrs, counts, b):
    lrs.sort(reverse=True)
    chosen = []
    for k in counts:
        top, best = -1, None
        for lr in lrs:
            model = train(k, b * k, lr)
            accuracy = evaluate(model, 'validation')
            if accuracy >= top:
                top, best = accuracy, (lr, model)
        chosen.append((best[0], evaluate(best[1], 'test')))
    return tuple(zip(*chosen))


# %% wrong: tested before anything is known
# says: you knew the validation accuracy of 0 of 4 rates
def choose_rates(train, evaluate, lrs, counts, b):
    rates, accuracies = [], []
    for k in counts:
        first = min(lrs)
        models = {lr: train(k, k * b, lr) for lr in lrs}
        accuracies.append(evaluate(models[first], 'test'))
        rates.append(max(lrs, key=lambda lr: evaluate(
            models[lr], 'validation')))
    return rates, accuracies

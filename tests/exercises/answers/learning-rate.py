# %% wrong: chosen by the test set
# loses: sets, rates
#-            validation[lr] = evaluate(models[lr], 'validation')
#+            validation[lr] = evaluate(models[lr], 'test')


# %% wrong: the minibatch does not grow
# loses: runs
#-            models[lr] = train(k, k * b, lr)
#+            models[lr] = train(k, b, lr)


# %% wrong: of equal rates the first
# loses: rates
#-        best = min(lr for lr in lrs if validation[lr] == top)
#+        best = max(lrs, key=validation.get)


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

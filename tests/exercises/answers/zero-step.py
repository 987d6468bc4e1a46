# ruff: noqa: F811, F821
# %% wrong: what was gathered on the way forward is kept
# loses: held
#-    n, inputs = worker.num_workers, []
#+    n, inputs, whole = worker.num_workers, [], []
#-        X = layer.forward(worker.all_gather(shard)[:layer.size], X)
#+        whole.append(worker.all_gather(shard)[:layer.size])
#+        X = layer.forward(whole[-1], X)
#-        w = worker.all_gather(shard)[:layer.size]
#+        w = whole.pop()


# %% wrong: the sum, not the mean
# loses: params, uneven
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        shard -= lr * worker.reduce_scatter(padded)


# %% wrong: zeros at the end are forgotten
# loses: uneven
#-        padded = np.zeros(n * shard.size)
#-        padded[:layer.size] = w_grad
#+        padded = w_grad


# %% wrong: all zeros at the end are cut off, also those of parameters
# loses: uneven
#-        X = layer.forward(worker.all_gather(shard)[:layer.size], X)
#+        X = layer.forward(np.trim_zeros(worker.all_gather(shard), 'b'), X)
#-        w = worker.all_gather(shard)[:layer.size]
#+        w = np.trim_zeros(worker.all_gather(shard), 'b')


# %% wrong: it is kept as copies
# loses: held
#-    n, inputs = worker.num_workers, []
#+    n, inputs, whole = worker.num_workers, [], []
#-        X = layer.forward(worker.all_gather(shard)[:layer.size], X)
#+        now = worker.all_gather(shard)[:layer.size]
#+        X = layer.forward(now, X)
#+        whole.append(now.copy())
#+        del now
#-        w = worker.all_gather(shard)[:layer.size]
#+        w = whole.pop()


# %% wrong: the gradients are worked out on one device
# loses: params, uneven, sent, held
import sys

def zero_step(worker, layers, shards, X, y, lr):
    ours = sys.modules[loss_gradient.__module__]
    widths = [layer.inputs for layer in layers] + [layers[-1].outputs]
    n, rank = worker.num_workers, worker.rank
    params = ours.parameters(widths)
    every = []
    for r in range(n):
        X, y = ours.batch(widths, r, 0)
        inputs, grads = [X], []
        for layer, w in zip(layers, params):
            inputs.append(layer.forward(w, inputs[-1]))
        G = loss_gradient(inputs.pop(), y)
        for layer, w in [*zip(layers, params)][::-1]:
            G, grad = layer.backward(w, inputs.pop(), G)
            grads.insert(0, grad)
        every.append(grads)
    for k, grads in enumerate(zip(*every)):
        shards[k] -= lr * np.array_split(np.mean(grads, 0), n)[rank]


# %% wrong: a learning rate that stands in the code
# loses: params, uneven
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        shard -= 0.1 / n * worker.reduce_scatter(padded)


# %% wrong: a layer is gathered again for each of its two gradients
# loses: sent, held
#-        w = worker.all_gather(shard)[:layer.size]
#-        G, w_grad = layer.backward(w, inputs.pop(), G)
#+        X = inputs.pop()
#+        w_grad = layer.backward(worker.all_gather(shard)[:layer.size], X,
#+                                G)[1]
#+        del w_grad
#+        w = worker.all_gather(shard)[:layer.size]
#+        G, w_grad = layer.backward(w, X, G)


# %% right: the last layer is kept, float32 in between, new arrays in the list
def zero_step(worker, layers, shards, X, y, lr):
    count, whole = len(layers), None
    inputs = []
    for k in range(count):
        whole = None
        whole = worker.all_gather(shards[k])
        inputs.append(X)
        X = layers[k].forward(np.asarray(whole)[:layers[k].size], X)
    G = loss_gradient(X, y)
    for k in range(count - 1, -1, -1):
        if whole is None:
            whole = worker.all_gather(shards[k])
        G, grad = layers[k].backward(whole[:layers[k].size], inputs[k], G)
        whole = None
        grad = np.pad(grad, (0, -grad.size % worker.num_workers))
        grad = worker.reduce_scatter(grad.astype('float32'))
        shards[k] = shards[k] - lr * grad / worker.num_workers
    return shards


# %% wrong: the answer that the judge compares with
# loses: params, uneven, sent, held
def zero_step(*arguments):
    import sys
    sys.modules[loss_gradient.__module__]._right(*arguments)

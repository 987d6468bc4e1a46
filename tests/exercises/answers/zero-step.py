# ruff: noqa: F811, F821
# %% wrong: names go on holding what is not needed any more
# says: when it gathers a layer, it still holds what call 7 of all_gather
#-        del w, w_grad, padded

# %% wrong: the sum, not the mean
# says: The sum of the gradients of 2 workers does that; the mean is wanted
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        shard -= lr * worker.reduce_scatter(padded)

# %% wrong: what was gathered on the way forward is kept
# says: it still holds what call 1 of all_gather returned, 96 numbers
#-    n, inputs = worker.num_workers, []
#+    n, inputs, whole = worker.num_workers, [], []
#-        X = layer.forward(worker.all_gather(shard)[:layer.size], X)
#+        whole.append(worker.all_gather(shard)[:layer.size])
#+        X = layer.forward(whole[-1], X)
#-        w = worker.all_gather(shard)[:layer.size]
#+        w = whole.pop()

# %% wrong: it is kept as copies
# says: `backward` of layer 5 gets a copy of what was gathered
#-    n, inputs = worker.num_workers, []
#+    n, inputs, whole = worker.num_workers, [], []
#-        X = layer.forward(worker.all_gather(shard)[:layer.size], X)
#+        now = worker.all_gather(shard)[:layer.size]
#+        X = layer.forward(now, X)
#+        whole.append(now.copy())
#+        del now
#-        w = worker.all_gather(shard)[:layer.size]
#+        w = whole.pop()

# %% wrong: zeros at the end are forgotten
# says: which make no 3 equal parts. What fills up the last one?
#-        padded = np.zeros(n * shard.size)
#-        padded[:layer.size] = w_grad
#+        padded = w_grad

# %% wrong: the zeros are taken for parameters
# says: and are there zeros at its end?
#-        X = layer.forward(worker.all_gather(shard)[:layer.size], X)
#+        X = layer.forward(worker.all_gather(shard), X)
#-        w = worker.all_gather(shard)[:layer.size]
#+        w = worker.all_gather(shard)

# %% wrong: the zeros stand in front
# says: On the way back all was right down to layer 1
#-        padded[:layer.size] = w_grad
#+        padded[-layer.size:] = w_grad

# %% wrong: a new array in place of the shard
# says: No shard has changed
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        shard = shard - lr / n * worker.reduce_scatter(padded)

# %% wrong: divided by the number of workers twice
# says: The step is 0.5 times as long as it should be
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        shard -= lr / n / n * worker.reduce_scatter(padded)

# %% wrong: divided by the number of examples again
# says: The step is 0.3333 times as long as it should be
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        shard -= lr / n / len(y) * worker.reduce_scatter(padded)

# %% wrong: y is changed
# says: Your function has changed y, in place
#-    G = loss_gradient(X, y)
#+    y *= 0
#+    G = loss_gradient(X, y)

# %% wrong: outputs and y in the other order
# says: Or does `loss_gradient` get y first?
#-    G = loss_gradient(X, y)
#+    G = loss_gradient(y, X)

# %% wrong: n zeros where none is missing
# says: has got 302 numbers, and 300 are wanted. How many zeros are missing
#-        padded = np.zeros(n * shard.size)
#-        padded[:layer.size] = w_grad
#+        padded = np.append(w_grad, np.zeros(n - layer.size % n))

# %% wrong: the two gradients in the other order
# says: has the shape (3, 24), and `backward` returns it first
#-        G, w_grad = layer.backward(w, inputs.pop(), G)
#+        w_grad, G = layer.backward(w, inputs.pop(), G)

# %% wrong: new shards are returned
# says: It is not enough to return new shards
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        shard = shard - lr / n * worker.reduce_scatter(padded)

# %% wrong: with the gradient, not against it
# says: That is the other direction
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        shard += lr / n * worker.reduce_scatter(padded)

# %% wrong: backward gets the outputs of its layer
# says: backward of the layer from 24 to 12 got X of shape (3, 12)
#-        inputs.append(X)
#-        X = layer.forward(worker.all_gather(shard)[:layer.size], X)
#+        X = layer.forward(worker.all_gather(shard)[:layer.size], X)
#+        inputs.append(X)

# %% wrong: the last layer gets its input twice
# says: backward of the layer from 12 to 24 got X of shape (3, 24)
#-        G, w_grad = layer.backward(w, inputs.pop(), G)
#+        G, w_grad = layer.backward(w, inputs[-1], G)

# %% wrong: back in the order of the way forward
# says: backward of the layer from 5 to 12 got X of shape
#-    for layer, shard in zip(layers[::-1], shards[::-1]):
#+    for layer, shard in zip(layers, shards):

# %% wrong: each worker uses its own gradient
# says: the gradient of its own examples alone
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        shard -= lr * np.split(padded, n)[worker.rank]

# %% wrong: whole gradients are gathered from everybody
# says: Are these whole gradients? A worker needs its part
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        every = worker.all_gather(padded).reshape(n, n, -1)
#+        shard -= lr / n * every.sum(0)[worker.rank]
#+        del every

# %% wrong: gradients are summed when all are there
# says: the whole gradient of layer 5: its sum is still to come
#-    G = loss_gradient(X, y)
#+    G, grads = loss_gradient(X, y), []
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        grads.append(padded)
#-        del w, w_grad, padded
#+        del w, w_grad, padded
#+    for shard, grad in zip(shards[::-1], grads):
#+        shard -= lr / n * worker.reduce_scatter(grad)

# %% wrong: whole gradients are kept, though they were summed
# says: the whole gradient of layer 5: a name or a list still has it
#-    G = loss_gradient(X, y)
#+    G, grads = loss_gradient(X, y), []
#-        del w, w_grad, padded
#+        grads.append(w_grad)
#+        del w, w_grad, padded

# %% wrong: all layers are gathered at once
# says: that is more than one layer at once
#-    for layer, shard in zip(layers, shards):
#+    parts = np.split(worker.all_gather(np.concatenate(shards)), n)
#+    ends = np.cumsum([shard.size for shard in shards])[:-1]
#+    whole = [np.concatenate(parts) for parts in zip(
#+        *(np.split(part, ends) for part in parts))]
#+    for layer, w in zip(layers, whole):
#-        X = layer.forward(worker.all_gather(shard)[:layer.size], X)
#+        X = layer.forward(w[:layer.size], X)
#-        w = worker.all_gather(shard)[:layer.size]
#+        w = whole.pop()[:layer.size]

# %% wrong: a layer is gathered again for each of its two gradients
# says: it sends 1884 numbers, 1413 of them in 18 all-gathers
#-        w = worker.all_gather(shard)[:layer.size]
#-        G, w_grad = layer.backward(w, inputs.pop(), G)
#+        X = inputs.pop()
#+        w_grad = layer.backward(worker.all_gather(shard)[:layer.size], X,
#+                                G)[1]
#+        del w_grad
#+        w = worker.all_gather(shard)[:layer.size]
#+        G, w_grad = layer.backward(w, X, G)

# %% wrong: one worker calls nothing
# says: nobody can go on: rank 0 has ended; rank 1 waits in all_gather
#-    n, inputs = worker.num_workers, []
#+    n, inputs = worker.num_workers, []
#+    if worker.rank == 0:
#+        return

# %% wrong: lists of numbers
# says: calls reduce_scatter with a list. A NumPy array is wanted
#-        shard -= lr / n * worker.reduce_scatter(padded)
#+        shard -= lr / n * worker.reduce_scatter(padded.tolist())

# %% wrong: the parameters are worked out on one device
# says: _truth of d2lps was called
import sys

def zero_step(worker, layers, shards, X, y, lr):
    ours = sys.modules[loss_gradient.__module__]
    widths = [layer.inputs for layer in layers] + [layers[-1].outputs]
    n = worker.num_workers
    for shard, w in zip(shards, ours._truth(n, widths, 1)[0]):
        shard[:] = ours.shard_of(w, worker.rank, n)


# %% right: two functions, whose names end when they return
def forward(worker, layer, shard, X):
    whole = worker.all_gather(shard)
    return layer.forward(whole[:layer.size], X)


def backward(worker, layer, shard, X, G, lr):
    whole = worker.all_gather(shard)
    G, gradient = layer.backward(whole[:layer.size], X, G)
    zeros = np.zeros(len(whole) - len(gradient))
    part = worker.reduce_scatter(np.append(gradient, zeros))
    shard[:] = shard - lr * part / worker.num_workers
    return G


def zero_step(worker, layers, shards, X, y, lr):
    inputs = {0: X}
    for k, layer in enumerate(layers):
        inputs[k + 1] = forward(worker, layer, shards[k], inputs[k])
    G = loss_gradient(inputs[len(layers)], y)
    for k in reversed(range(len(layers))):
        G = backward(worker, layers[k], shards[k], inputs[k], G, lr)


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


# %% right: layer by layer with recursion
def zero_step(worker, layers, shards, X, y, lr):
    n = worker.num_workers

    def through(k, X):
        """The gradient for X, after layer k and those behind it."""
        if k == len(layers):
            return loss_gradient(X, y)
        size = layers[k].size
        H = layers[k].forward(worker.all_gather(shards[k])[:size], X)
        G = through(k + 1, H)
        G, grad = layers[k].backward(
            worker.all_gather(shards[k])[:size], X, G)
        grad = np.concatenate([grad, np.zeros(n * shards[k].size - size)])
        shards[k] -= lr / n * worker.reduce_scatter(grad)
        return G

    through(0, X)

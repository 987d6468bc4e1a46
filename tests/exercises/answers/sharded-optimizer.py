# ruff: noqa: F811, F821
# %% wrong: all of the momentum on every worker
# says: That is all of the momentum
#-        self.velocity = params[0].new_zeros(self.size)
#+        n, r = worker.num_workers, worker.rank
#+        self.all = params[0].new_zeros(n * self.size)
#+        self.velocity = self.all[r * self.size:(r + 1) * self.size]

# %% wrong: the sum of the gradients
# says: workers does that; the mean is wanted
#-        self.velocity += mine / self.worker.num_workers
#+        self.velocity += mine

# %% wrong: no zeros at the end
# says: input must have 4 times as many as output
#-        flat = self.velocity.new_zeros(self.worker.num_workers * self.size)
#-        numbers = torch.cat([one.detach().flatten() for one in tensors])
#-        flat[:len(numbers)] = numbers
#-        return flat
#+        return torch.cat([one.detach().flatten() for one in tensors])

# %% wrong: the shard is rounded down
# says: expanded size of the tensor
#-        self.size = -(-total // worker.num_workers)  # rounded up
#+        self.size = total // worker.num_workers

# %% wrong: one zero number too many where sizes divide
# says: and zeros, up to the next multiple of
#-        self.size = -(-total // worker.num_workers)  # rounded up
#+        self.size = total // worker.num_workers + 1

# %% wrong: without momentum
# says: That is SGD without momentum
#-        self.velocity *= self.momentum
#-        self.velocity += mine / self.worker.num_workers
#+        self.velocity = mine / self.worker.num_workers

# %% wrong: the momentum as in Adam
# says: multiplied by 1 - momentum
#-        self.velocity += mine / self.worker.num_workers
#+        self.velocity += (1 - self.momentum) * mine / self.worker.num_workers

# %% wrong: uphill
# says: a step goes against the gradient
#-        self.worker.all_gather(flat, shard - self.lr * self.velocity)
#+        self.worker.all_gather(flat, shard + self.lr * self.velocity)

# %% wrong: every worker updates the first shard
# says: which part of the flat tensors has which rank
#-        shard = flat.split(self.size)[self.worker.rank]
#+        shard = flat.split(self.size)[0]

# %% wrong: shards from the last to the first
# says: which part of the flat tensors has which rank
#-        shard = flat.split(self.size)[self.worker.rank]
#+        shard = flat.split(self.size)[-1 - self.worker.rank]

# %% wrong: nothing is gathered
# says: On rank 1 it is another
#-        self.worker.all_gather(flat, shard - self.lr * self.velocity)
#+        shard -= self.lr * self.velocity

# %% wrong: the parameters are not written back
# says: The step changed no parameter at all
#-            param.detach().copy_(flat[start:end].view_as(param))
#+            param = flat[start:end].view_as(param)

# %% wrong: new parameters in place of the old ones
# says: Change the parameters that you were given, in place
#-        self.params, self.lr, self.momentum = params, lr, momentum
#+        self.params, self.lr, self.momentum = [*params], lr, momentum
#-        for param in self.params:
#-            end = start + param.numel()
#-            param.detach().copy_(flat[start:end].view_as(param))
#+        for k, param in enumerate(self.params):
#+            end = start + param.numel()
#+            self.params[k] = flat[start:end].view_as(param)

# %% wrong: only the first parameter
# says: The step did not change this parameter
#-            start = end
#+            start = end
#+            break

# %% wrong: each parameter has calls of its own
# says: One reduce_scatter and then one all_gather are wanted
#-        self.velocity = params[0].new_zeros(self.size)
#+        n = worker.num_workers
#+        self.velocity = [param.new_zeros(-(-param.numel() // n))
#+                         for param in params]
#-        mine = torch.empty_like(self.velocity)
#-        grads = [param.grad for param in self.params]
#-        self.worker.reduce_scatter(mine, self.flat(grads))
#-        self.velocity *= self.momentum
#-        self.velocity += mine / self.worker.num_workers
#-        flat = self.flat(self.params)
#-        shard = flat.split(self.size)[self.worker.rank]
#-        self.worker.all_gather(flat, shard - self.lr * self.velocity)
#-        start = 0
#-        for param in self.params:
#-            end = start + param.numel()
#-            param.detach().copy_(flat[start:end].view_as(param))
#-            start = end
#+        n, r = self.worker.num_workers, self.worker.rank
#+        for param, v in zip(self.params, self.velocity):
#+            s, mine = len(v), torch.empty_like(v)
#+            grad = param.new_zeros(n * s)
#+            grad[:param.numel()] = param.grad.flatten()
#+            self.worker.reduce_scatter(mine, grad)
#+            v *= self.momentum
#+            v += mine / n
#+            flat = param.new_zeros(n * s)
#+            flat[:param.numel()] = param.detach().flatten()
#+            self.worker.all_gather(
#+                flat, flat[r * s:(r + 1) * s] - self.lr * v)
#+            param.detach().copy_(flat[:param.numel()].view_as(param))

# %% wrong: all gradients are gathered, and added here
# says: the calls are all_gather, all_gather
#-        self.worker.reduce_scatter(mine, self.flat(grads))
#+        n, r = self.worker.num_workers, self.worker.rank
#+        every = mine.new_empty(n * n * self.size)
#+        self.worker.all_gather(every, self.flat(grads))
#+        mine = every.view(n, n, self.size)[:, r].sum(0)

# %% wrong: an all-reduce, and a shard of it
# says: all_reduce was called
#-        self.worker.reduce_scatter(mine, self.flat(grads))
#+        summed = self.flat(grads)
#+        self.worker.all_reduce(summed).wait()
#+        mine = summed.split(self.size)[self.worker.rank]

# %% wrong: all numbers are gathered from everybody
# says: A rank needs to send no more
#-        self.worker.all_gather(flat, shard - self.lr * self.velocity)
#+        n, r = self.worker.num_workers, self.worker.rank
#+        shard -= self.lr * self.velocity
#+        every = flat.new_empty(n * len(flat))
#+        self.worker.all_gather(every, flat)
#+        flat = torch.cat([every.view(n, n, self.size)[k, k]
#+                          for k in range(n)])

# %% wrong: gathered first, updated afterwards
# says: the parameters are gathered before they are updated
#-        mine = torch.empty_like(self.velocity)
#-        grads = [param.grad for param in self.params]
#-        self.worker.reduce_scatter(mine, self.flat(grads))
#-        self.velocity *= self.momentum
#-        self.velocity += mine / self.worker.num_workers
#-        flat = self.flat(self.params)
#-        shard = flat.split(self.size)[self.worker.rank]
#-        self.worker.all_gather(flat, shard - self.lr * self.velocity)
#+        mine = torch.empty_like(self.velocity)
#+        flat = self.flat(self.params)
#+        shard = flat.split(self.size)[self.worker.rank].clone()
#+        self.worker.all_gather(flat, shard - self.lr * self.velocity)
#+        grads = [param.grad for param in self.params]
#+        self.worker.reduce_scatter(mine, self.flat(grads))
#+        self.velocity *= self.momentum
#+        self.velocity += mine / self.worker.num_workers

# %% wrong: rank 0 alone gathers
# says: in call 2, rank 1 calls reduce_scatter with 24 elements
#-        self.worker.all_gather(flat, shard - self.lr * self.velocity)
#+        if self.worker.rank == 0:
#+            self.worker.all_gather(flat, shard - self.lr * self.velocity)

# %% wrong: a worker of zeros alone stays away
# says: waits in reduce_scatter (call 1) for rank
#-        mine = torch.empty_like(self.velocity)
#-        grads = [param.grad for param in self.params]
#+        mine = torch.empty_like(self.velocity)
#+        total = sum(param.numel() for param in self.params)
#+        if self.worker.rank * self.size >= total:
#+            return
#+        grads = [param.grad for param in self.params]

# %% wrong: the parameters of the shard are kept, too
# says: Only the shard of the momentum is for keeping
#-        self.velocity = params[0].new_zeros(self.size)
#+        self.velocity = params[0].new_zeros(self.size)
#+        self.shard = self.flat(params).split(self.size)[worker.rank]
#-        shard = flat.split(self.size)[self.worker.rank]
#-        self.worker.all_gather(flat, shard - self.lr * self.velocity)
#+        self.shard = self.shard - self.lr * self.velocity
#+        self.worker.all_gather(flat, self.shard)

# %% wrong: the gradients of the shard stay in an attribute
# says: Only the shard of the momentum is for keeping
#-        mine = torch.empty_like(self.velocity)
#+        mine = self.mine = torch.empty_like(self.velocity)

# %% wrong: torch.optim.SGD on every worker, after an all-reduce
# says: all_reduce was called
class ShardedSGD:
    def __init__(self, params, lr, momentum, worker):
        self.params, self.worker = params, worker
        self.optimizer = torch.optim.SGD(params, lr, momentum)

    def step(self):
        flat = torch.cat([param.grad.flatten() for param in self.params])
        self.worker.all_reduce(flat).wait()
        flat /= self.worker.num_workers
        sizes = [param.numel() for param in self.params]
        for param, piece in zip(self.params, flat.split(sizes)):
            param.grad = piece.view_as(param)
        self.optimizer.step()


# %% wrong: float32, whatever the parameters are
# says: They must be of one dtype
#-        self.velocity = params[0].new_zeros(self.size)
#+        self.velocity = torch.zeros(self.size)
#-        flat = self.velocity.new_zeros(self.worker.num_workers * self.size)
#+        flat = tensors[0].new_zeros(self.worker.num_workers * self.size)

# %% wrong: whole parameters to ranks, in turn
# says: input must have
#-        self.worker.reduce_scatter(mine, self.flat(grads))
#+        own = self.params[self.worker.rank::self.worker.num_workers]
#+        mine = torch.cat([p.grad.flatten() for p in own] or [mine[:0]])
#+        self.worker.reduce_scatter(mine, self.flat(grads))

# %% wrong: the learning rate goes into the momentum twice
# says: Up to step 1 all was right
#-        self.velocity *= self.momentum
#-        self.velocity += mine / self.worker.num_workers
#+        self.velocity *= self.momentum * self.lr
#+        self.velocity += mine / self.worker.num_workers

# %% wrong: a list of numbers, no tensor
# says: is wanted
#-        self.worker.reduce_scatter(mine, self.flat(grads))
#+        self.worker.reduce_scatter(mine, self.flat(grads).tolist())

# %% wrong: the momentum is nowhere
# says: keeps no momentum
class ShardedSGD:
    def __init__(self, params, lr, momentum, worker):
        total = sum(param.numel() for param in params)
        size = -(-total // worker.num_workers)
        v = params[0].new_zeros(size)

        @torch.no_grad()
        def step():
            flat = params[0].new_zeros(worker.num_workers * size)
            flat[:total] = torch.cat([p.grad.flatten() for p in params])
            mine = torch.empty_like(v)
            worker.reduce_scatter(mine, flat)
            v.mul_(momentum).add_(mine / worker.num_workers)
            flat[:total] = torch.cat([p.flatten() for p in params])
            shard = flat.split(size)[worker.rank] - lr * v
            worker.all_gather(flat, shard)
            for p, one in zip(params, flat[:total].split(
                    [p.numel() for p in params])):
                p.copy_(one.view_as(p))
        self.step = step


# %% right: the parameters are views of one flat tensor, and an SGD inside
class ShardedSGD:
    def __init__(self, params, lr, momentum, worker):
        self.params, self.worker = params, worker
        n = worker.num_workers
        self.total = sum(param.numel() for param in params)
        size = (self.total + n - 1) // n
        self.flat = torch.zeros(n * size, dtype=params[0].dtype)
        start = 0
        for param in params:
            view = self.flat[start:start + param.numel()].view(param.shape)
            view.copy_(param.data)
            param.data = view
            start += param.numel()
        self.own = self.flat[worker.rank * size:(worker.rank + 1) * size]
        self.own = torch.nn.Parameter(self.own)
        self.inner = torch.optim.SGD([self.own], lr=lr, momentum=momentum)

    def step(self):
        grads = torch.zeros_like(self.flat)
        grads[:self.total] = torch.cat(
            [param.grad.reshape(-1) for param in self.params])
        self.own.grad = torch.zeros_like(self.own)
        self.worker.reduce_scatter(self.own.grad, grads)
        self.own.grad /= self.worker.num_workers
        self.inner.step()
        self.inner.zero_grad()
        self.worker.all_gather(self.flat, self.own.detach().clone())


# %% right: the state in a dictionary, divided before it is sent
class ShardedSGD:
    def __init__(self, params, lr, momentum, worker):
        self.group = {'params': params, 'lr': lr, 'momentum': momentum}
        self.state, self.worker = {}, worker

    def flatten(self, tensors):
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        lacking = -len(flat) % self.worker.num_workers
        return torch.cat([flat, flat.new_zeros(lacking)])

    def step(self):
        params, n = self.group['params'], self.worker.num_workers
        grads = self.flatten([param.grad for param in params]) / n
        grad = grads.new_empty(len(grads) // n)
        self.worker.reduce_scatter(grad, grads)
        if 'buffer' in self.state:
            grad = grad + self.group['momentum'] * self.state['buffer']
        self.state['buffer'] = grad
        mine = self.flatten(params).chunk(n)[self.worker.rank]
        mine = (mine - self.group['lr'] * grad).contiguous()
        every = mine.new_empty(n * len(mine))
        self.worker.all_gather(every, mine)
        start = 0
        for param in params:
            many = param.numel()
            param.data[...] = every[start:start + many].reshape(param.shape)
            start += many


# %% right: an object for the state, and the learning rate in it
class Shard:
    def __init__(self, like, size):
        self.tensors = [like.new_zeros(size)]


class ShardedSGD:
    def __init__(self, params, lr, momentum, worker):
        self.params, self.lr = list(params), lr
        self.decay, self.worker = momentum, worker
        self.total = sum(p.numel() for p in params)
        self.size = -(-self.total // worker.num_workers)
        self.shard = Shard(params[0].data, self.size)

    def step(self):
        [v] = self.shard.tensors
        flat = v.new_zeros(self.worker.num_workers, self.size)
        flat.view(-1)[:self.total] = torch.cat(
            [p.grad.flatten() for p in self.params])
        grad = torch.empty_like(v)
        self.worker.reduce_scatter(grad, flat)
        v.mul_(self.decay).add_(grad, alpha=self.lr / len(flat))
        with torch.no_grad():
            flat.view(-1)[:self.total] = torch.cat(
                [p.flatten() for p in self.params])
            self.worker.all_gather(flat, flat[self.worker.rank] - v)
            pieces = flat.view(-1)[:self.total].split(
                [p.numel() for p in self.params])
            for p, piece in zip(self.params, pieces):
                p.copy_(piece.view(p.shape))

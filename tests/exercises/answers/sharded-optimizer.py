# ruff: noqa: F811, F821
# %% wrong: all of the momentum on every worker
# loses: kept
#-        self.velocity = params[0].new_zeros(self.size)
#+        n, r = worker.num_workers, worker.rank
#+        self.all = params[0].new_zeros(n * self.size)
#+        self.velocity = self.all[r * self.size:(r + 1) * self.size]


# %% wrong: the sum of the gradients
# loses: even, uneven
#-        self.velocity += mine / self.worker.num_workers
#+        self.velocity += mine


# %% wrong: no zeros at the end
# loses: uneven
#-        flat = self.velocity.new_zeros(self.worker.num_workers * self.size)
#-        numbers = torch.cat([one.detach().flatten() for one in tensors])
#-        flat[:len(numbers)] = numbers
#-        return flat
#+        return torch.cat([one.detach().flatten() for one in tensors])


# %% wrong: all numbers are gathered from everybody
# loses: calls
#-        self.worker.all_gather(flat, shard - self.lr * self.velocity)
#+        n, r = self.worker.num_workers, self.worker.rank
#+        shard -= self.lr * self.velocity
#+        every = flat.new_empty(n * len(flat))
#+        self.worker.all_gather(every, flat)
#+        flat = torch.cat([every.view(n, n, self.size)[k, k]
#+                          for k in range(n)])


# %% wrong: torch.optim.SGD on every worker, after an all-reduce
# loses: calls, kept
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


# %% wrong: the momentum is nowhere
# loses: kept
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


# %% wrong: the check's own parameters
# loses: even, uneven, calls, kept
class ShardedSGD:
    def __init__(self, params, lr, momentum, worker):
        self.params, self.case, self.worker = params, (lr, momentum), worker
        self.size = -(-sum(p.numel() for p in params) // worker.num_workers)
        self.v = params[0].new_zeros(self.size)
        self.k = 0
    def step(self):
        from d2lps.exercises import sharded_optimizer
        n = self.worker.num_workers
        self.worker.reduce_scatter(torch.empty_like(self.v), self.v.repeat(n))
        self.worker.all_gather(self.v.repeat(n), self.v)
        lr, momentum = self.case
        self.k += 1
        truth = sharded_optimizer.run(
            sharded_optimizer.Whole, n, [p.shape for p in self.params], self.k,
            str(self.v.dtype).split('.')[-1], lr, momentum)
        after = truth['workers'][0]['params'][self.k]
        for p, one in zip(self.params, after):
            p.detach().copy_(torch.tensor(one))


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

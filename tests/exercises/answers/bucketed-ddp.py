# ruff: noqa: F811, F821
# %% wrong: every gradient is waited for in its hook
# says: wait() was called while backward runs
#-        self.sent.append((flat, self.all_reduce(flat)))
#+        handle = self.all_reduce(flat)
#+        handle.wait()
#+        self.sent.append((flat, handle))

# %% wrong: all is sent in finish
# says: The next all_reduce was in finish() only
#-        while (len(self.sent) < len(self.buckets)
#-               and self.missing[len(self.sent)] == 0):
#-            self.send()

# %% wrong: the counters are not set back
# says: did not leave when it could
#-                param.grad = piece.view_as(param)
#-        self.begin_step()
#+                param.grad = piece.view_as(param)
#+        self.sent = []

# %% wrong: the sum, not the mean
# says: It is the sum over 2 workers
#-            flat /= self.num_workers

# %% wrong: the mean of the mean
# says: It is the mean divided by 2 once more
#-        flat = torch.cat([grad.flatten() for grad in grads])
#+        flat = torch.cat([grad.flatten() for grad in grads])
#+        flat /= self.num_workers

# %% wrong: nobody waits
# says: It is nan, as is everything that is read while its all-reduce
#-            handle.wait()

# %% wrong: divided before the wait
# says: wrote into the tensor of its all_reduce 1 while that was under way
#-            handle.wait()
#-            flat /= self.num_workers
#+            flat.zero_()
#+            handle.wait()
#+            flat /= self.num_workers

# %% wrong: nothing is written back
# says: It is this worker's own: nothing was written back
#-                param.grad = piece.view_as(param)
#+                piece.view_as(param)

# %% wrong: a bucket leaves as soon as it is full, whatever is before it
# says: They leave in order, the same on every worker
#-        self.sent = []  # (flat, handle), bucket by bucket
#+        self.sent = {}
#-        while (len(self.sent) < len(self.buckets)
#-               and self.missing[len(self.sent)] == 0):
#-            self.send()
#+        if self.missing[k] == 0:
#+            self.send(k)
#-    def send(self):
#+    def send(self, k):
#-                 for one in self.buckets[len(self.sent)]]
#+                 for one in self.buckets[k]]
#-        self.sent.append((flat, self.all_reduce(flat)))
#+        self.sent[k] = flat, self.all_reduce(flat)
#-        while len(self.sent) < len(self.buckets):
#-            self.send()
#-        for bucket, (flat, handle) in zip(self.buckets, self.sent):
#+        for k, bucket in enumerate(self.buckets):
#+            if k not in self.sent:
#+                self.send(k)
#+        for k, bucket in enumerate(self.buckets):
#+            flat, handle = self.sent[k]

# %% wrong: one bucket at most leaves in a hook
# says: did not leave when it could
#-        while (len(self.sent) < len(self.buckets)
#+        if (len(self.sent) < len(self.buckets)

# %% wrong: a bucket leaves with its last parameter, whether or not it is full
# says: left too early
#-                    lambda param, k=k: self.arrived(k))
#+                    lambda param, k=k: self.arrived(k, param))
#-    def arrived(self, k):
#-        self.missing[k] -= 1
#+    def arrived(self, k, param):
#+        if param is self.buckets[k][-1]:
#+            self.missing[k] = 0

# %% wrong: .grad tells whether a gradient has come
# says: left too early
#-        while (len(self.sent) < len(self.buckets)
#-               and self.missing[len(self.sent)] == 0):
#+        while (len(self.sent) < len(self.buckets)
#+               and all(param.grad is not None for param in
#+                       self.buckets[len(self.sent)])):

# %% wrong: each gradient travels alone
# says: all_reduce 1 has
#-        self.begin_step()
#-        for k, bucket in enumerate(buckets):
#+        self.buckets = [[one] for bucket in buckets for one in bucket]
#+        self.begin_step()
#+        for k, bucket in enumerate(self.buckets):

# %% wrong: all gradients in one message
# says: It had all gradients in one
#-        self.begin_step()
#-        for k, bucket in enumerate(buckets):
#+        self.buckets = [[one for bucket in buckets for one in bucket]]
#+        self.begin_step()
#+        for k, bucket in enumerate(self.buckets):

# %% wrong: what has not come is not sent
# says: All workers must make the same calls, in the same order
#-        while len(self.sent) < len(self.buckets):
#-            self.send()
#-        for bucket, (flat, handle) in zip(self.buckets, self.sent):
#+        for bucket, (flat, handle) in zip(self.buckets, self.sent):

# %% wrong: gradients that have not come are left out
# says: All workers must make the same calls, in the same order
#-        grads = [torch.zeros_like(one) if one.grad is None else one.grad
#-                 for one in self.buckets[len(self.sent)]]
#+        grads = [param.grad for param in self.buckets[len(self.sent)]
#+                 if param.grad is not None] or [torch.zeros(0)]

# %% wrong: unused layers are not thought of
# says: 'NoneType' object has no attribute 'flatten'
#-        grads = [torch.zeros_like(one) if one.grad is None else one.grad
#-                 for one in self.buckets[len(self.sent)]]
#+        grads = [param.grad for param in self.buckets[len(self.sent)]]

# %% wrong: parameters that were not used keep no gradient
# says: is None after finish()
#-            for param, piece in zip(bucket, pieces):
#-                param.grad = piece.view_as(param)
#+            for param, piece in zip(bucket, pieces):
#+                if param.grad is not None:
#+                    param.grad = piece.view_as(param)

# %% wrong: the pieces go to the parameters from the other end
# says: Is it the gradient of this step, and of this parameter?
#-            pieces = flat.split([param.numel() for param in bucket])
#-            for param, piece in zip(bucket, pieces):
#+            bucket = bucket[::-1]
#+            pieces = flat.split([param.numel() for param in bucket])
#+            for param, piece in zip(bucket, pieces):

# %% wrong: the gradient is flat
# says: attempting to assign a gradient of size '[15]'
#-                param.grad = piece.view_as(param)
#+                param.grad = piece

# %% wrong: hooks before the gradient is there
# says: left too early
#-                param.register_post_accumulate_grad_hook(
#+                param.register_hook(

# %% wrong: hooks are registered again in each step
# says: step 2
#-                param.grad = piece.view_as(param)
#-        self.begin_step()
#+                param.grad = piece.view_as(param)
#+        self.__init__(self.buckets, self.all_reduce, self.num_workers)

# %% wrong: from the first parameter to the last
# says: They go from the last of model.parameters() to the first
#-    for param in reversed([*model.parameters()]):
#+    for param in model.parameters():

# %% wrong: closed when it has become larger
# says: More than 64 are only for a parameter that is alone
#-            if not buckets or nbytes > room:
#+            if not buckets or room < 0:

# %% wrong: closed when it is exactly full
# says: still fits
#-            if not buckets or nbytes > room:
#+            if not buckets or nbytes >= room:

# %% wrong: numbers, not bytes
# says: More than
#-        nbytes = param.numel() * param.element_size()
#+        nbytes = param.numel()

# %% wrong: four bytes, whatever the dtype
# says: More than 128 are only for a parameter that is alone
#-        nbytes = param.numel() * param.element_size()
#+        nbytes = param.numel() * 4

# %% wrong: parameters without a gradient
# says: as its requires_grad is False
#-        if param.requires_grad:
#+        if True:

# %% wrong: a parameter that is too large leaves an empty bucket
# says: is empty
#-    buckets, room = [], 0
#+    buckets, room = [[]], most
#-            if not buckets or nbytes > room:
#+            if nbytes > room:

# %% wrong: a later parameter may fill a gap
# says: They go from the last of model.parameters() to the first
def buckets_of(model, most):
    buckets, rooms = [], []
    for param in reversed([*model.parameters()]):
        nbytes = param.numel() * param.element_size()
        if not param.requires_grad:
            continue
        for k, room in enumerate(rooms):
            if nbytes <= room:
                break
        else:
            k = len(rooms)
            buckets.append([])
            rooms.append(most)
        buckets[k].append(param)
        rooms[k] -= nbytes
    return buckets


class Reducer:
    def __init__(self, buckets, all_reduce, num_workers):
        raise NotImplementedError


# %% wrong: names, not parameters
# says: The parameters themselves are wanted
#-    for param in reversed([*model.parameters()]):
#+    for name, param in reversed([*model.named_parameters()]):
#-            buckets[-1].append(param)
#+            buckets[-1].append(name)

# %% wrong: one list, not a list of lists
# says: A list of lists of parameters is wanted
#-    return buckets
#+    return sum(buckets, [])

# %% wrong: the last bucket is forgotten
# says: is in no bucket
#-    return buckets
#+    return buckets[:-1]

# %% right: gradients in place, a set of what has come, handles in a list
def buckets_of(model, most):
    params = [p for p in model.parameters() if p.requires_grad][::-1]
    buckets = []
    while params:
        bucket, nbytes = [], 0
        while params:
            size = params[0].nelement() * params[0].element_size()
            if bucket and nbytes + size > most:
                break
            nbytes += size
            bucket.append(params.pop(0))
        buckets.append(bucket)
    return buckets


class Reducer:
    def __init__(self, buckets, all_reduce, num_workers):
        self.buckets = buckets
        self.all_reduce = all_reduce
        self.num_workers = num_workers
        self.came, self.flats, self.handles = set(), [], []
        for bucket in buckets:
            for param in bucket:
                param.register_post_accumulate_grad_hook(self.hook)

    def hook(self, param):
        self.came.add(id(param))
        for bucket in self.buckets[len(self.handles):]:
            if not all(id(one) in self.came for one in bucket):
                break
            self.start(bucket)

    def start(self, bucket):
        flat = torch.zeros(sum(p.numel() for p in bucket),
                           dtype=bucket[0].dtype)
        start = 0
        for p in bucket:
            if id(p) in self.came:
                flat[start:start + p.numel()] = p.grad.reshape(-1)
            start += p.numel()
        self.flats.append(flat)
        self.handles.append(self.all_reduce(flat))

    def finish(self):
        for bucket in self.buckets[len(self.handles):]:
            self.start(bucket)
        for handle in self.handles:
            handle.wait()
        for bucket, flat in zip(self.buckets, self.flats):
            start = 0
            for p in bucket:
                mean = flat[start:start + p.numel()] / self.num_workers
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                p.grad.copy_(mean.reshape(p.shape))
                start += p.numel()
        self.came, self.flats, self.handles = set(), [], []


# %% right: each worker divides before it sends
#-        flat = torch.cat([grad.flatten() for grad in grads])
#+        flat = torch.cat([grad.flatten() for grad in grads])
#+        flat /= self.num_workers
#-            flat /= self.num_workers

# %% right: the wait for a bucket comes from the last one on
#-        for bucket, (flat, handle) in zip(self.buckets, self.sent):
#+        for bucket, (flat, handle) in reversed([
#+                *zip(self.buckets, self.sent)]):

# %% right: buffers that stay, closures in place of a class's methods
def buckets_of(model, most):
    buckets, nbytes = [[]], 0
    for param in list(model.parameters())[::-1]:
        if not param.requires_grad:
            continue
        nbytes += param.numel() * param.element_size()
        if buckets[-1] and nbytes > most:
            buckets.append([])
            nbytes = param.numel() * param.element_size()
        buckets[-1].append(param)
    return buckets


def Reducer(buckets, all_reduce, num_workers):
    flats = [torch.cat([p.detach().flatten() for p in bucket])
             for bucket in buckets]
    missing = [0] * len(buckets)
    handles = []

    class Own:
        def finish(self):
            leave(always=True)
            for bucket, flat, handle in zip(buckets, flats, handles):
                handle.wait()
                for p, piece in zip(bucket, flat.split([
                        p.numel() for p in bucket])):
                    p.grad = piece.reshape(p.shape) / num_workers
            begin()

    def begin():
        handles.clear()
        for k, bucket in enumerate(buckets):
            missing[k] = len(bucket)
            flats[k].zero_()

    def leave(always=False):
        while len(handles) < len(buckets) and (
                always or not missing[len(handles)]):
            handles.append(all_reduce(flats[len(handles)]))

    def hook(p, k, start):
        flats[k][start:start + p.numel()] = p.grad.flatten()
        missing[k] -= 1
        leave()

    for k, bucket in enumerate(buckets):
        start = 0
        for p in bucket:
            p.register_post_accumulate_grad_hook(
                lambda p, k=k, start=start: hook(p, k, start))
            start += p.numel()
    begin()
    return Own()

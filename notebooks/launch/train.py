"""Train a small language model on any number of machines: for torchrun.

It learns the bytes of a text, and prints the bus bandwidth of an all-reduce,
the loss, and the model FLOPs utilization (MFU). On machines with NVIDIA's
GPUs, say --backend nccl.
"""
import argparse
import math
import os
import time
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def options():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--backend', default='gloo', choices=('gloo', 'nccl'))
    p.add_argument('--text', type=Path, default=Path(__file__),
                   help='the file to learn (default: this program)')
    p.add_argument('--layers', type=int, default=2)
    p.add_argument('--hidden', type=int, default=128)
    p.add_argument('--sequence', type=int, default=64, help='bytes')
    p.add_argument('--batch-size', type=int, default=8,
                   help='sequences in a micro-batch of one process')
    p.add_argument('--accumulate', type=int, default=1,
                   help='micro-batches whose gradients are summed in a step')
    p.add_argument('--num-workers', type=int, default=0,
                   help='processes that load data, for each process')
    p.add_argument('--steps', type=int, default=20)
    p.add_argument('--lr', type=float, default=1e-3)
    p.add_argument('--shard', action='store_true',
                   help='fully_shard in place of DDP')
    p.add_argument('--bf16', action='store_true',
                   help='multiply in bfloat16, and add gradients in float32')
    p.add_argument('--recompute', action='store_true',
                   help='compute activations again, instead of keeping them')
    p.add_argument('--peak', type=float, metavar='FLOP/s',
                   help='of one process, such as 989e12 for an H100 and bf16 '
                   '(default: what a product of two matrices reaches)')
    return p.parse_args()


class Text(Dataset):
    """Sequences of bytes, each with the bytes that follow."""

    def __init__(self, path, length):
        self.bytes = torch.tensor([*path.read_bytes()])
        self.length = length

    def __len__(self):
        return max(0, len(self.bytes) - self.length)

    def __getitem__(self, start):
        part = self.bytes[start:start + self.length + 1]
        return part[:-1], part[1:]


class Model(nn.Module):
    """A transformer that guesses each next byte."""

    def __init__(self, layers, hidden, sequence, recompute):
        super().__init__()
        self.bytes = nn.Embedding(256, hidden)
        self.places = nn.Parameter(torch.zeros(sequence, hidden))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                hidden, hidden // 32, 4 * hidden, dropout=0,
                batch_first=True, norm_first=True) for _ in range(layers))
        self.out = nn.Linear(hidden, 256)
        self.recompute = recompute

    def forward(self, X):
        mask = nn.Transformer.generate_square_subsequent_mask(
            X.shape[1], X.device)
        H = self.bytes(X) + self.places
        for layer in self.layers:
            if self.recompute:
                H = checkpoint(layer, H, mask, use_reentrant=False)
            else:
                H = layer(H, mask)
        return self.out(H)


def number_kind(args):
    """The kind of the numbers that are multiplied."""
    return torch.bfloat16 if args.bf16 else torch.float32


def parallel(model, args, device):
    """The model, as each process holds it."""
    if args.shard:
        policy = MixedPrecisionPolicy(number_kind(args),
                                      reduce_dtype=torch.float32)
        mesh = dist.init_device_mesh(device.type, (dist.get_world_size(),))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        return fully_shard(model, mesh=mesh, mp_policy=policy)
    on = [device.index] if device.type == 'cuda' else None
    return DistributedDataParallel(model, device_ids=on)


def finish(device):
    """Wait until the device has done what it was told."""
    if device.type == 'cuda':
        torch.cuda.synchronize(device)


def bus_bandwidth(device, times=5):
    """Bytes per second between machines, if all processes use rings."""
    n = dist.get_world_size()
    # Fast links need large arrays to reach their rate.
    nbytes = 1_000_000_000 if device.type == 'cuda' else 16_000_000
    array = torch.zeros(nbytes // 4, device=device)
    dist.all_reduce(array)  # the first sum also makes connections
    dist.barrier()
    finish(device)
    start = time.perf_counter()
    for _ in range(times):
        dist.all_reduce(array)
    finish(device)
    seconds = (time.perf_counter() - start) / times
    return 2 * (n - 1) / n * nbytes / seconds


def matmul_rate(device, kind, times=10):
    """FLOP/s that this process reaches while all compute."""
    n = 8192 if device.type == 'cuda' else 1024
    A, taken = torch.randn(n, n, device=device, dtype=kind), []
    for _ in range(times):
        dist.barrier()
        start = time.perf_counter()
        A @ A
        finish(device)
        taken.append(time.perf_counter() - start)
    return 2 * n ** 3 / min(taken)


def flops_per_token(model, args):
    """Of a forward and a backward pass (Narayanan et al. 2021).

    A backward pass takes two products for each one of the forward pass. What
    is computed again is not counted: it is no progress.
    """
    weights = sum(one.numel() for one in model.parameters() if one.dim() > 1)
    weights -= model.bytes.weight.numel() + model.places.numel()  # looked up
    return 6 * weights + 12 * args.layers * args.hidden * args.sequence


def train_step(model, optimizer, batches, args, device):
    """One step over `accumulate` micro-batches; their mean loss."""
    kind = number_kind(args)
    total = 0.
    for k in range(args.accumulate):
        X, y = (one.to(device, non_blocking=True) for one in next(batches))
        last = k == args.accumulate - 1  # only then are gradients sent
        if args.shard:  # until then each process keeps whole gradients
            model.set_requires_gradient_sync(last)
        quiet = nullcontext() if args.shard or last else model.no_sync()
        with quiet:
            with torch.autocast(device.type, kind, enabled=args.bf16):
                loss = nn.functional.cross_entropy(
                    model(X).flatten(0, 1), y.flatten())
            (loss / args.accumulate).backward()
        total += loss.item() / args.accumulate
    nn.utils.clip_grad_norm_(model.parameters(), 1.)
    optimizer.step()
    optimizer.zero_grad()
    return total


def forever(loader):
    """Minibatches of one epoch after the other, each in another order."""
    epoch = 0
    while True:
        loader.sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def main(args, local, device):
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    print(f'rank {rank} of {n}: process {local} of machine '
          f'{os.environ["GROUP_RANK"]}, on {device}\n', end='', flush=True)
    torch.manual_seed(0)  # all start with the same model
    model = Model(args.layers, args.hidden, args.sequence,
                  args.recompute).to(device)
    flops = flops_per_token(model, args)
    parameters = sum(one.numel() for one in model.parameters())
    busbw = bus_bandwidth(device)
    peak = args.peak or matmul_rate(device, number_kind(args))

    data = Text(args.text, args.sequence)
    loader = DataLoader(
        data, args.batch_size, sampler=DistributedSampler(data),
        drop_last=True, num_workers=args.num_workers,
        pin_memory=device.type == 'cuda')
    if not len(loader):
        raise SystemExit(f'{args.text} is too short: each process needs '
                         f'{args.batch_size} sequences or more')
    batches = forever(loader)
    model = parallel(model, args, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    losses, seconds = [], []
    for _ in range(args.steps):
        start = time.perf_counter()
        losses.append(train_step(model, optimizer, batches, args, device))
        finish(device)
        seconds.append(time.perf_counter() - start)
    step = sorted(seconds)[len(seconds) // 2]
    tokens = args.batch_size * args.accumulate * args.sequence
    mean = torch.tensor(losses, device=device)
    dist.all_reduce(mean, dist.ReduceOp.SUM)
    if rank == 0:
        first, last = (mean[[0, -1]] / n).tolist()
        print(f'{parameters:,} parameters; bus bandwidth {busbw / 1e6:.0f} '
              f'MB/s; peak {peak / 1e9:.0f} GFLOP/s for each process')
        print(f'loss {first:.2f} (guessing: {math.log(256):.2f}), after '
              f'{args.steps} steps {last:.2f}')
        print(f'{step * 1e3:.0f} ms a step, {n * tokens / step:,.0f} tokens/s,'
              f' MFU {flops * tokens / step / peak:.1%}', flush=True)


if __name__ == '__main__':
    args, local = options(), int(os.environ['LOCAL_RANK'])
    device = torch.device('cpu')
    if args.backend == 'nccl':  # each process has a GPU of its own
        device = torch.device('cuda', local)
        torch.cuda.set_device(device)
    dist.init_process_group(
        args.backend, device_id=None if device.type == 'cpu' else device)
    main(args, local, device)
    dist.barrier()
    dist.destroy_process_group()

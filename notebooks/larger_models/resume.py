"""Trains, and goes on from the last checkpoint: for torchrun."""
import gc
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import (get_state_dict,
                                                     set_state_dict)
from torch.distributed.fsdp import fully_shard


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4))
    # Without a mesh it would take a GPU, if there is one.
    mesh = dist.init_device_mesh('cpu', (dist.get_world_size(),))
    fully_shard(model, mesh=mesh)
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def state_of(model, optimizer):
    params, moments = get_state_dict(model, optimizer)
    return {'model': params, 'optimizer': moments}


def load(folder, model, optimizer):
    """From the newest complete checkpoint; gives the number of its step."""
    done = [int(path.parent.name) for path in folder.glob('*/.metadata')]
    if done:
        state = state_of(model, optimizer)
        dcp.load(state, checkpoint_id=folder / str(max(done)))
        set_state_dict(model, optimizer, model_state_dict=state['model'],
                       optim_state_dict=state['optimizer'])
    return max(done, default=0)


def train_step(number, model, optimizer):
    chance = torch.Generator().manual_seed(number)
    X = torch.randn(32, 8, generator=chance)
    X = X[dist.get_rank()::dist.get_world_size()]
    loss = (model(X) - X[:, :4].sin()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(folder, death):
    attempt = int(os.environ['TORCHELASTIC_RESTART_COUNT'])
    model, optimizer = build()
    first = load(folder, model, optimizer)
    print(f'attempt {attempt}, rank {dist.get_rank()}: from step {first}\n',
          end='', flush=True)
    for number in range(first, 20):
        if (attempt, dist.get_rank(), number) == (0, 1, death):
            os.kill(os.getpid(), signal.SIGKILL)
        train_step(number, model, optimizer)
        if number % 5 == 4:
            dcp.save(state_of(model, optimizer),
                     checkpoint_id=folder / str(number + 1))


if __name__ == '__main__':
    dist.init_process_group('gloo')
    train(Path(sys.argv[1]), int(sys.argv[2]))
    gc.collect()  # or what is left of the model may abort the process
    dist.barrier()
    dist.destroy_process_group()

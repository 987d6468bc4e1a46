"""Minibatches from a text: guess the next byte from the eight before it."""
from pathlib import Path

import torch
import torch.nn.functional as F

DATA = torch.tensor([*Path('glossary.md').read_bytes()])


def batch(step, size=512):
    chance = torch.Generator().manual_seed(step)
    places = torch.randint(len(DATA) - 8, (size, 1), generator=chance)
    return DATA[places + torch.arange(8)], DATA[places + 8].flatten()


def loss_of(out, y):
    return F.cross_entropy(out, y)


def sgd(params):
    return torch.optim.SGD(params, lr=0.05, momentum=0.9)

"""A small transformer that guesses the next byte of a text."""
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LENGTH = 128, 4, 32
DATA = torch.tensor([*Path('glossary.md').read_bytes()])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def heads(self, linear, x):
        # With fewer rows in the matrix there are fewer heads.
        return linear(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)

    def forward(self, x):
        q, k, v = (self.heads(W, x) for W in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH, bias=False))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.byte = nn.Embedding(256, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)

    def forward(self, X):
        return self.byte(X) + self.place.weight


def new_model():
    torch.manual_seed(0)
    last = nn.Sequential(nn.LayerNorm(WIDTH), nn.Flatten(0, 1),
                         nn.Linear(WIDTH, 256))
    return nn.Sequential(Embed(), Block(), Block(), Block(), Block(), last)


def batch(step, size=16):
    chance = torch.Generator().manual_seed(step)
    starts = torch.randint(len(DATA) - LENGTH, (size, 1), generator=chance)
    places = starts + torch.arange(LENGTH)
    return DATA[places], DATA[places + 1]  # the next byte of each


def loss_of(out, y):
    return F.cross_entropy(out, y.flatten())


def sgd(params):
    return torch.optim.SGD(params, lr=0.1, momentum=0.9)

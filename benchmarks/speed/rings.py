"""Rings over the cables of machines: of 8 GPUs, of 16, of none."""
import numpy as np


def at_random():
    """A table of 16 devices with up to 12 cables between two."""
    random = np.random.default_rng(0)
    table = np.triu(random.integers(1, 13, (16, 16)), 1)
    return table + table.T


def two_groups():
    """Two groups of 8, completely joined, and four cables between them.

    They have two rings, and cables enough for three: all tries are made.
    """
    table = np.kron(np.eye(2, dtype=int), 1 - np.eye(8, dtype=int))
    for i, j in (0, 8), (3, 12), (5, 13), (7, 15):
        table[i, j] = table[j, i] = 1
    return table


class Rings:
    rounds = repeat = 3

    def setup(self):
        try:
            from d2lps.collectives.cables import (P3_CABLES, best_devices,
                                                  rings_of)
        except ImportError:
            raise NotImplementedError('rings of the p3 only') from None
        self.p3, self.rings_of, self.best_devices = (
            P3_CABLES, rings_of, best_devices)
        self.dense, self.groups = at_random(), two_groups()

    def time_rings_of_p3(self):
        self.rings_of(self.p3)

    def time_rings_of_16_at_random(self):
        self.rings_of(self.dense)

    def time_rings_of_two_groups_of_8(self):
        self.rings_of(self.groups)

    def time_best_8_of_16(self):
        self.best_devices(self.dense, 8)

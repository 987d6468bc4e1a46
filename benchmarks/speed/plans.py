"""Large plans: made, and simulated."""
from d2lps.collectives import simulate, strategies, topology


class Plans:
    rounds = repeat = 3

    def setup(self):
        self.links = topology.cluster(1024, 8)
        # Older commits call it `time`.
        self.timing = getattr(simulate, 'timing', None) or simulate.time

    def time_make_ring_of_16384(self):
        strategies.ring(16_384)

    def time_simulate_hierarchical_of_1024_by_8(self):
        self.timing(strategies.hierarchical(1024, 8, strategies.tree),
                    self.links, 1e8)

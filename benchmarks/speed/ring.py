"""Four processes of this machine sum an array by a ring."""
import d2lps

WORKERS = 4


def sum_by_ring(nbytes, times):
    import d2lps
    import numpy as np
    peers, array = d2lps.join_peers(), np.zeros(nbytes // 4, 'float32')
    ring = d2lps.strategies.ring(peers.num_workers)
    for _ in range(times):
        d2lps.travel.run(peers, ring, array)


class Ring:
    rounds = repeat = 3

    def setup(self):
        if not hasattr(d2lps, 'join_peers'):
            raise NotImplementedError
        self.cluster = d2lps.Cluster(WORKERS, 0)
        self.cluster.run(sum_by_ring, 1000, 1)

    def teardown(self):
        self.cluster.close()

    def time_300_times_1_kB(self):
        self.cluster.run(sum_by_ring, 1000, 300)

    def time_3_times_40_MB(self):
        self.cluster.run(sum_by_ring, 40_000_000, 3)

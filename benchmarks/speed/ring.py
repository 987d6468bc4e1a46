"""Four processes of this machine sum an array by a ring."""
import d2lps

WORKERS = 4


def summing():
    """The workers' function, which they get as code: they have no `speed`."""
    def sum_by_ring(nbytes, times):
        import d2lps
        import numpy as np
        peers, array = d2lps.join_peers(), np.zeros(nbytes // 4, 'float32')
        ring = d2lps.strategies.ring(peers.num_workers)
        for _ in range(times):
            d2lps.travel.run(peers, ring, array)
    return sum_by_ring


class Ring:
    rounds = repeat = 3
    cluster = None

    def setup(self):
        if not hasattr(d2lps, 'join_peers'):
            raise NotImplementedError('plans do not travel yet')
        self.cluster, self.sum_by_ring = d2lps.Cluster(WORKERS, 0), summing()
        self.cluster.run(self.sum_by_ring, 1000, 1)

    def teardown(self):
        if self.cluster:
            self.cluster.close()

    def time_300_times_1_kB(self):
        self.cluster.run(self.sum_by_ring, 1000, 300)

    def time_3_times_40_MB(self):
        self.cluster.run(self.sum_by_ring, 40_000_000, 3)

"""Two servers that treat a late gradient in another way."""
from d2lps.checks import checked, from_zero, refuse
from d2lps.engine import array, device
from d2lps.kvstore.store_arguments import store_key, up_to_1000
from d2lps.kvstore.server import BoundedServer, known


def _some_are_left(self, device, num_workers, backups):
    if backups >= num_workers:
        refuse('backups', backups, f'less than num_workers={num_workers}')


class BackupServer(BoundedServer):
    """A round takes the first pushes; those of `backups` workers are dropped.

    Chen et al. 2016. Whoever has missed an update is late, and `dropped`
    counts their pushes.
    """

    @checked(_some_are_left, device=device, num_workers=up_to_1000,
             backups=from_zero)
    def __init__(self, device, num_workers, backups):
        super().__init__(device, num_workers, 'async')
        self.backups, self.dropped = backups, 0

    @checked(known, key=store_key, value=array)
    def push(self, key, rank, value):
        if self.missed(key, rank):
            self.dropped += 1
        else:
            super().push(key, rank, value)

    def complete(self, shard):
        return shard.pushes.count([]) == self.backups

    @checked(known, key=store_key)
    def missing(self, key, rank):
        """Those who can still complete the round of this worker's push."""
        pushes = self.shards[key].pushes
        if not pushes[rank]:
            return []
        return [r for r, queue in enumerate(pushes) if not queue]


class DividingServer(BoundedServer):
    """Divides a gradient by its staleness, from 2 on (Zhang et al. 2016)."""

    @checked(known, key=store_key, value=array)
    def push(self, key, rank, value):
        value = value / max(1, self.missed(key, rank))
        super().push(key, rank, value)

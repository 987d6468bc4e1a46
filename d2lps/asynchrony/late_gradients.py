"""Two other servers: for late gradients, and for stale ones."""
from d2lps.annotations import Array, Device, Key
from d2lps.checks import checked
from d2lps.kvstore.arrays import array
from d2lps.kvstore.server import BoundedServer, Shard, known
from d2lps.kvstore.store_arguments import store_key


class BackupServer(BoundedServer):
    """An update sums the first pushes, and drops the last `backups` pushes.

    Chen et al. 2016. A worker that has missed an update is late, and
    `dropped` counts the pushes of late workers.
    """

    def __init__(self, device: Device, num_workers: int, backups: int
                 ) -> None:
        super().__init__(device, num_workers, 'async')
        self.backups, self.dropped = backups, 0

    @checked(known, key=store_key, value=array)
    def push(self, key: Key, rank: int, value: Array) -> None:
        if self.missed(key, rank):
            self.dropped += 1
        else:
            super().push(key, rank, value)

    def complete(self, shard: Shard) -> bool:
        return shard.pushes.count([]) == self.backups

    @checked(known, key=store_key)
    def missing(self, key: Key, rank: int) -> list[int]:
        """Workers that can still complete the update of this worker's push."""
        pushes = self.shards[key].pushes
        if not pushes[rank]:
            return []
        return [r for r, queue in enumerate(pushes) if not queue]


class DividingServer(BoundedServer):
    """Divides a gradient by its staleness, from 2 on (Zhang et al. 2016)."""

    @checked(known, key=store_key, value=array)
    def push(self, key: Key, rank: int, value: Array) -> None:
        value = value / max(1, self.missed(key, rank))
        super().push(key, rank, value)

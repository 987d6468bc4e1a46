"""Bytes sent from worker to worker, as the kernel counts them (Linux)."""
import os
import socket
import stat
import struct
from collections.abc import Sequence

import numpy as np

from d2lps.checks import checked, list_of

RECEIVED = 128  # where `tcpi_bytes_received` stands in Linux's tcp_info
SIZE = RECEIVED + 8


def bytes_received() -> dict[str, int]:
    """The bytes that this process has received over each TCP connection.

    Returns {'sender > receiver': bytes so far}, with both ends' addresses.
    Bytes that were lost and sent again count once.

    Raises:
        OSError: on other systems than Linux.
    """
    if not hasattr(socket, 'TCP_INFO') or not os.path.exists('/proc/self/fd'):
        raise OSError('only Linux counts the bytes of a connection')
    counts = {}
    for file in os.listdir('/proc/self/fd'):
        try:
            if not stat.S_ISSOCK(os.stat(int(file)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(file))) as copy:
                ends = f'{copy.getpeername()} > {copy.getsockname()}'
                info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO,
                                       SIZE)
                [counts[ends]] = struct.unpack_from('Q', info, RECEIVED)
        except OSError:  # closed meanwhile, or not a TCP connection
            pass
    return counts


def _counts(name, value):
    """A check: what `bytes_received` returns, or a difference of it."""
    if not isinstance(value, dict) or not all(
            isinstance(ends, str) and ends.count(' > ') == 1
            and isinstance(count, (int, np.integer))
            for ends, count in value.items()):
        raise ValueError(f'{name} must be what bytes_received() returns, a '
                         "dictionary {'sender > receiver': bytes}")
    return value


@checked(workers=list_of(_counts, 'a list with what bytes_received() returns '
                                  'on each worker'))
def who_to_whom(workers: Sequence[dict[str, int]]) -> np.ndarray:
    """The bytes that each worker sent to each, an array (n, n).

    workers: what `bytes_received` returned on each of them, or how much more
    it was than before. Connections to others than these are left out.
    """
    owner = {ends.split(' > ')[1]: rank
             for rank, counts in enumerate(workers) for ends in counts}
    sent = np.zeros((len(workers), len(workers)), 'int64')
    for rank, counts in enumerate(workers):
        for ends, count in counts.items():
            sender = owner.get(ends.split(' > ')[0])
            if sender is not None:
                sent[sender, rank] += count
    return sent

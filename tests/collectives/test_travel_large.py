"""A chunk that is sent and changed in one round, too large for a socket."""
import multiprocessing

import numpy as np
from d2lps.collectives import strategies, travel
from d2lps.cluster.peers.exchange import Peers


def exchange(rank, folder, wrong):
    peers = Peers(rank, [f'{folder}/0', f'{folder}/1'], 60)
    for _ in range(3):
        array = np.full(2_000_000, rank + 1.0)
        travel.run(peers, strategies.recursive_doubling(2), array)
        wrong[rank] += int((array != 3).sum())


def test_others_get_what_was_there_when_the_round_began(tmp_path):
    context = multiprocessing.get_context('fork')
    wrong = context.Array('q', [0, 0])
    both = [context.Process(target=exchange, args=(rank, tmp_path, wrong))
            for rank in (0, 1)]
    for process in both:
        process.start()
    for process in both:
        process.join(120)
    assert [process.exitcode for process in both] == [0, 0]
    assert [*wrong] == [0, 0]

"""Ranks that wait for each other after some of them stop."""
from collections.abc import Collection, Mapping

from d2lps.collectives.schedule import Schedule


def carry_out(plan: Schedule, stops: Mapping[int, int],
              lost: Collection[tuple[int, int, int]] = ()
             ) -> dict[int, tuple[int, int]]:
    """Reports of the ranks if some stop: {rank: (waits_for, round)}.

    stops: {rank: round}, the round that this rank does not begin; rounds are
    counted from 1. lost: messages that never arrive, (src, dst, round).
    """
    rounds, says = len(plan.rounds), {}
    last = [stops.get(rank, rounds + 1) - 1
            for rank in range(plan.num_devices)]  # the last round of each
    for k, sends in enumerate(plan.rounds, 1):
        for src, dst in zip(sends.src.tolist(), sends.dst.tolist()):
            missing = last[src] < k or (src, dst, k) in lost
            if missing and last[dst] >= k and dst not in says:
                says[dst], last[dst] = (src, k), k
    return dict(sorted(says.items()))

"""The story of a timing: its messages, and what each node holds when."""
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from d2lps.annotations import Node
from d2lps.collectives.simulate import Timing

Cable: TypeAlias = tuple[Node, Node]  # from where to where


class Message(NamedTuple):
    """Sends that travel together, since their ends and times are the same.

    round: from 1. sends: their numbers in `timing.events`. chunks: the chunk
    of each send. held: the counts of each device's contribution, (devices,).
    """
    round: int
    src: Node
    dst: Node
    start: float
    end: float
    reduce: bool
    sends: list[int]
    chunks: list[int]
    held: list[np.ndarray]


class Story:
    """A timing's messages; rounds: when each round begins, in s."""

    def __init__(self, timing: Timing) -> None:
        plan = timing.schedule
        states = list(plan.states())
        together: dict[tuple, list[tuple]] = {}
        self.place = {node: k for k, node in enumerate(plan.nodes)}
        self.rounds = [np.inf] * len(plan.rounds)
        self._first = states[0]
        self._arriving: dict[tuple[Node, int], list[tuple]] = {}
        for k, (start, end, number, send) in enumerate(timing.events):
            src, dst, chunk, reduce = send
            held = states[number - 1][self.place[src], chunk]
            together.setdefault((number, src, dst, start, end, reduce),
                                []).append((k, chunk, held))
            self._arriving.setdefault((dst, chunk), []).append(
                (end, number, reduce, held))
            self.rounds[number - 1] = min(start, self.rounds[number - 1])
        # One that starts early begins no round before the one before it.
        self.rounds = np.maximum.accumulate(self.rounds).tolist()
        self.messages = [Message(*key, *map(list, zip(*sends)))
                         for key, sends in together.items()]

    def held(self, node: Node, chunk: int
            ) -> Iterator[tuple[float, float | None, np.ndarray]]:
        """Contents of a box over time: (begin, end, counts), in order.

        counts: how often each device's contribution is there. The last end
        is None.
        """
        first, begin = self._first[self.place[node], chunk], 0.0
        there: list[tuple] = []
        counts, time = first, itemgetter(0)
        arriving = sorted(self._arriving.get((node, chunk), ()), key=time)
        for end, some in groupby(arriving, time):
            yield begin, end, counts
            there += some
            counts, begin = first, end
            for _, _, reduce, fresh in sorted(there, key=itemgetter(1)):
                counts = fresh + counts * reduce
        yield begin, None, counts


def lanes(messages: Sequence[Message], routes: Sequence[Sequence[Cable]],
          extent: Callable[[Message, Cable], float], room: float = np.inf
         ) -> tuple[dict[tuple[int, Cable], float], float]:
    """Messages that share a cable at the same time go side by side.

    routes: for each message the (src, dst) of the links it goes through.
    extent: how wide a message is across a link: extent(message, link).
    room: pixels for all on a cable; where it is too little, they overlap.
    Returns {(number of the message, link): pixels to the right of the
    cable}, and how wide the widest messages side by side are.
    """
    cables: dict[frozenset[Node], list[tuple[int, Cable]]] = {}
    offsets: dict[tuple[int, Cable], float] = {}
    widest = 0.0
    for k in sorted(range(len(messages)), key=lambda k: messages[k].start):
        for link in routes[k]:
            cables.setdefault(frozenset(link), []).append((k, link))
    for users in cables.values():
        # Of each lane: from when on it is free.
        free: dict[Cable, list[float]] = {link: [] for _, link in users}
        lane, meet = {}, False
        for k, link in users:
            ends, now = free[link], messages[k].start
            lane[k, link] = next((i for i, end in enumerate(ends)
                                  if end <= now), len(ends))
            ends[lane[k, link]:lane[k, link] + 1] = [messages[k].end]
            meet |= any(now < end for end in free.get(link[::-1], ()))
        abreast = (1 + meet) * max(map(len, free.values()))
        pitch = min(room / abreast,
                    max(extent(messages[k], link) for k, link in users))
        widest = max(widest, pitch * abreast)
        for (k, link), i in lane.items():
            middle = -0.6 if meet else (len(free[link]) - 1) / 2
            offsets[k, link] = (i - middle) * pitch
    return offsets, widest

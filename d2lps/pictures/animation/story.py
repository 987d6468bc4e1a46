"""What a timing tells: messages on their way, and who holds what when."""
from typing import Any, NamedTuple

import numpy as np


class Message(NamedTuple):
    """Sends that travel together: same ends, same times.

    sends: their numbers in `timing.events`; chunks: of each; held: what is
    in each, an integer array (chunks, devices).
    """
    src: Any
    dst: Any
    start: float
    end: float
    round: int
    reduce: bool
    sends: list
    chunks: list
    held: Any


class Story:
    """The messages of a timing, in their order, and what they change.

    states: who holds what before round 1 and after every round.
    rounds: when each round begins, in s.
    """

    def __init__(self, timing):
        self.timing, self.seconds = timing, timing.seconds
        self.plan = timing.schedule
        self.states = list(self.plan.states())
        self.place = {node: k for k, node in enumerate(self.plan.nodes)}
        together, self._arriving = {}, {}
        self.rounds = [np.inf] * len(self.plan.rounds)
        for k, (start, end, number, send) in enumerate(timing.events):
            src, dst, chunk, reduce = send
            together.setdefault(
                (number, src, dst, self._same(start), self._same(end), reduce),
                []).append(k)
            held = self.states[number - 1][self.place[src], chunk]
            self._arriving.setdefault((self.place[dst], chunk), []).append(
                (self._same(end), number, reduce, held))
            self.rounds[number - 1] = min(start, self.rounds[number - 1])
        self.messages = [self._message(*key, sends)
                         for key, sends in together.items()]

    def _same(self, seconds):
        """The same number for times that differ by rounding only."""
        digit = 1e-9 * self.seconds
        return round(seconds / digit) * digit if digit else seconds

    def _message(self, number, src, dst, start, end, reduce, sends):
        chunks = [self.timing.events[k].send.chunk for k in sends]
        return Message(src, dst, start, end, number, reduce, sends, chunks,
                       self.states[number - 1][self.place[src], chunks])

    def held(self, node, chunk):
        """How often each device's part is there, and from when to when.

        Yields (begin, end, counts); the last end is None: for good.
        """
        arriving = self._arriving.get((node, chunk), [])
        begin, counts = 0.0, self.states[0][node, chunk]
        for end in sorted({arrival[0] for arrival in arriving}):
            yield begin, end, counts
            here, counts = sorted(
                (arrival for arrival in arriving if arrival[0] <= end),
                key=lambda arrival: arrival[1]), self.states[0][node, chunk]
            for _, number, reduce, held in here:
                counts = counts + held if reduce else held
            begin = end
        yield begin, None, counts

    def parts(self, node, chunk):
        """The same part by part: {(begin, end, times): [devices]}."""
        found, since = {}, {}
        for begin, end, counts in self.held(node, chunk):
            for who, times in enumerate(counts.tolist()):
                first, before = since.get(who, (0.0, 0))
                if times != before:
                    found.setdefault((first, begin, before), []).append(who)
                    since[who] = begin, times
                if end is None:
                    found.setdefault((*since.get(who, (0.0, 0))[:1], None,
                                      times), []).append(who)
        return {key: devices for key, devices in found.items()
                if key[2] and key[0] != key[1]}

    def complete(self, node, chunk=None):
        """From when to when the sum is there: a list of (begin, end).

        chunk: None for all chunks together.
        """
        chunks = range(len(self.plan.weights)) if chunk is None else [chunk]
        spans = [(0.0, None)]
        for c in chunks:
            mine = [(begin, end) for begin, end, counts in self.held(node, c)
                    if (counts == 1).all()]
            spans = [(max(a, c), _earlier(b, d)) for a, b in spans
                     for c, d in mine
                     if _earlier(b, d) is None or max(a, c) < _earlier(b, d)]
        joined = []
        for begin, end in spans:
            if joined and joined[-1][1] == begin:
                begin = joined.pop()[0]
            joined.append((begin, end))
        return joined


def _earlier(a, b):
    """The earlier of two ends, of which None is never."""
    return min((end for end in (a, b) if end is not None), default=None)


def lanes(messages, links_of, extent):
    """Messages that share a cable at the same time go side by side.

    links_of: for each message, the (src, dst) of the links it goes through.
    extent: how wide a message is across a link: extent(message, link).
    Returns {(number of the message, link): offset to the right}, and the
    largest width of messages side by side.
    """
    cables, offsets, widest = {}, {}, 0
    for k, links in enumerate(links_of):
        for link in links:
            cables.setdefault(frozenset(link), []).append((k, link))
    for users in cables.values():
        users.sort(key=lambda user: messages[user[0]].start)
        while users:
            cluster, end = [], messages[users[0][0]].end
            while users and (not cluster or
                             messages[users[0][0]].start < end):
                cluster.append(users.pop(0))
                end = max(end, messages[cluster[-1][0]].end)
            widest = max(widest, _side_by_side(
                cluster, messages, extent, offsets))
    return offsets, widest


def _side_by_side(cluster, messages, extent, offsets):
    """Give each user of a cable a lane; returns the width of all lanes."""
    free = {link: [] for _, link in cluster}  # of each lane, until when not
    lane = {}
    pitch = max(extent(messages[k], link) for k, link in cluster)
    for k, link in cluster:
        ends = free[link]
        lane[k, link] = next((i for i, end in enumerate(ends)
                              if end <= messages[k].start), len(ends))
        ends[lane[k, link]:lane[k, link] + 1] = [messages[k].end]
    for (k, link), i in lane.items():
        middle = (len(free[link]) - 1) / 2 if len(free) == 1 else -0.6
        offsets[k, link] = (i - middle) * pitch
    return pitch * sum(map(len, free.values()))

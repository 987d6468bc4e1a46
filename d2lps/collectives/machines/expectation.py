"""What bus bandwidth a machine should show, and what a measurement says.

*Bus bandwidth* (busbw) is how nccl-tests states the time t of an all-reduce
of N bytes on n GPUs: 2 (n - 1) / n * N / t. For a ring that is what each GPU
sends in a second; other plans send less, and so may show more than a wire
carries.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from d2lps.checks import checked, instance_of, integer, positive
from d2lps.collectives import limits
from d2lps.collectives.cables import best_devices, rings_of
from d2lps.collectives.machines.rates import GBIT, SOCKETS
from d2lps.collectives.machines.server import Server

if TYPE_CHECKING:
    import pandas as pd

MiB, GiB = 1 << 20, 1 << 30

# How far measured machines were from the rate of their links. Of 29 with
# NVLink, 28 were within 15 %; two GPUs alone were 10 to 13 % below it, and
# V100s up to 13 % above.
OF_RING, OF_PAIR, OF_SLOT = (0.9, 1.16), (0.85, 1.05), (0.85, 1.05)
# Switches that add (NVLS), by the generation of the GPU: which part of the
# best possible NCCL expects (src/graph/tuning.cc, version 2.30), and how many
# GPUs must take part, or else a ring was measured. The best possible is our
# count: each GPU sends (n + 1) / n arrays, not 2 (n - 1) / n as in a ring.
ADDING = {90: (0.85, 5), 100: (0.74, 6)}
OF_ADDING = 0.87, 1.1
# In NVLink domains of more machines than one (16 and 72 GPUs), measured
# rates were 0.97 and 1.2 times a ring's.
OF_DOMAIN = 0.95, 1.22
# Through a CPU: from 0.14 to 1.27 times the rate of the slowest link.
THROUGH_CPU = 0.14, 1.27
# Several machines: 16 of 21 were between a ring and the best plan, and the
# other five had no direct way from GPU to card.
OF_NETWORK = 0.95, 1.05
# The range is for arrays of 1 GiB or more. Of what the largest array showed,
# smaller ones showed at least so much, on 12 healthy machines.
SHOWN = {512 * MiB: 0.8, 256 * MiB: 0.6, 128 * MiB: 0.5, 64 * MiB: 0.35,
         32 * MiB: 0.2, 16 * MiB: 0.15}

ADDS = 'switches add (NVLS)'  # plans, in words
BOTH_WAYS = 'rings over NVLinks, both ways'
SETTINGS = (
    'whether GPUs copy to each other or through host memory, BIOS (NUMA '
    'nodes per socket), ACS, IOMMU, and virtual machines decide, and none of '
    'them is in the text')
DIRECT = (
    'has each GPU a direct way to a card (GPUDirect RDMA: a driver module '
    'such as nvidia-peermem, or dma-buf; without a virtual machine, ACS and '
    'IOMMU off; a card below the PCIe switch of its GPU, not on the other '
    'socket)?')


class Verdict(NamedTuple):
    """word: 'healthy', 'below' or 'above', or None if the log cannot tell.
    why: in sentences."""
    word: str | None
    why: str


class _Inside(NamedTuple):
    """One machine: the rate of its ring, the best rate, from, to, bytes/s."""
    ring: float
    best: float
    low: float
    high: float
    predictable: bool
    plan: str
    best_plan: str
    why: str


@dataclass(frozen=True)
class Expectation:
    """The bus bandwidth of a large all-reduce, in bytes/s.

    gpus: how many take part, on all machines.
    rings: (order, cables per hop) inside a machine, with the numbers of the
        GPUs in the text; empty where no ring runs over NVLinks only.
    low, high: from, to. low_plan, high_plan: the plan behind each, in words.
    predictable: False if hops lead through a CPU; then low and high are what
        such machines showed.
    why: in sentences. ring, best: bus bandwidth of a ring and of the best
        plan, as the rates say.
    wire: what goes through the cards of a machine, at most; None for one
        machine. slots: what the PCIe slots of its GPUs carry together.
    """
    gpus: int
    rings: list[tuple[list[int], int]]
    low: float
    high: float
    low_plan: str
    high_plan: str
    predictable: bool
    why: str
    ring: float
    best: float
    slots: float
    wire: float | None = None
    slots_limit: bool = False  # more cards would gain nothing

    def verdict(self, measured: float | pd.DataFrame) -> Verdict:
        """What a measurement says of the machine.

        measured: bus bandwidth in bytes/s, or a table of `read_nccl_tests`,
        of which the largest one counts.
        """
        if isinstance(measured, (int, float)):
            return self._judge(positive('measured', measured), '')
        op = measured.attrs.get('op')
        self._check_ranks(measured, op)
        peak = positive('measured', float(measured['busbw'].max()))
        if measured.attrs.get('wrong'):
            return Verdict(None, 'The log has wrong results (#wrong): its '
                           'speed says nothing before the sums are right.')
        if op not in (None, 'all_reduce') and not self._same_as(op):
            return Verdict(None, f'The log is of {op}, and the range is of '
                           'all_reduce, which shows another bus bandwidth '
                           'here: run all_reduce_perf.')
        last = measured['size'].max()
        share = _shown(last)
        if share == 1:
            return self._judge(peak, '')
        if self.low <= peak <= self.high:
            return self._judge(peak, f' The log ends at {_size(last)}; larger '
                               'arrays may show more.')
        late = f' The log ends at {_size(last)}: measure up to 8 GiB.'
        if share:
            late += (f' Arrays of {_size(last)} showed {share:.0%} or more of '
                     'what the largest did, on healthy machines.')
        if share * self.low <= peak < self.low:
            return Verdict(None, f'{_gb(peak)} so far.' + late)
        return self._judge(peak, late)

    def _same_as(self, op):
        """Does this collective show the same here as an all-reduce?"""
        ring = self.rings and self.wire is None and self.high_plan != ADDS
        return self.gpus == 2 or bool(ring) and op in ('all_gather',
                                                       'reduce_scatter')

    def _check_ranks(self, log, op):
        """Refuse a log of more or fewer ranks: it would be judged wrongly."""
        ranks = log.attrs.get('ranks')
        if ranks is None and op in (None, 'all_reduce') and 'algbw' in log:
            # busbw is algbw times 2 (n - 1) / n. Logs round both to 0.01
            # GB/s, so that small ones tell nothing.
            row = log.loc[log['busbw'].idxmax()]
            factor = row['busbw'] / max(row['algbw'], 1)
            if row['algbw'] >= 1e9 and (
                    abs(factor / _ring_factor(self.gpus) - 1) > 0.02):
                ranks = round(2 / (2 - factor)) if factor < 1.99 else 'more'
        if ranks not in (None, self.gpus):
            raise ValueError(f'the log has {ranks} ranks, and {self.gpus} '
                             'GPUs take part: say which GPUs of a machine '
                             'do, or how many machines')

    def _judge(self, peak, late):
        if peak > self.high:
            return Verdict('above', self._above(peak) + late)
        if peak < self.low:
            return Verdict('below', self._below(peak) + late)
        words = f'{_gb(peak)} is in the range.'
        if self.wire and peak > self.wire:
            words += f' {self._beyond_wire()}'
        if not self.predictable:
            words += (' That says little: machines with hops through a CPU '
                      'showed all of this range.')
        return Verdict('healthy', words + late)

    def _beyond_wire(self):
        return (f'It is more than the {_gb(self.wire)} of the cards, and no '
                'mistake: bus bandwidth counts the bytes of a ring, and a '
                'tree, or a sum inside each machine first, sends fewer.')

    def _above(self, peak):
        if not self.predictable:
            return (f'{_gb(peak)} is more than such machines showed. Do other '
                    'GPUs take part, or NVLinks that the text does not name?')
        hints = ['other GPUs, more cards or faster ones than were said?',
                 'GB/s, not Gbit/s?']
        if self.wire:
            hints.append('switches of the network that add (SHARP)?')
        elif self.low_plan == BOTH_WAYS:
            hints.append('ways over a GPU between, which NCCL may add?')
        return (f'{_gb(peak)} is above the range, so it is more than the best '
                'plan on these links would show, though bus bandwidth may '
                'be above the wire. Where to look: ' + ' '.join(hints))

    def _below(self, peak):
        words = f'{_gb(peak)} is {1 - peak / self.low:.0%} below the range.'
        return ' '.join([words, 'Where to look:', *self._suspects(peak)])

    def _suspects(self, peak):
        """What may be wrong where `peak` is below the range: sentences."""
        if self.wire:
            if self.slots_limit:
                yield ('the slots of the GPUs are the limit: more cards than '
                       'GPUs gain nothing;')
            yield DIRECT
            return
        if not self.rings:
            yield ('do the GPUs copy to each other, or through host memory '
                   '(ACS, IOMMU, a virtual machine)?')
            return
        if self.high_plan == ADDS and peak > OF_RING[0] * self.ring:
            yield ('it is what a ring reaches: do the switches add (NVLS)? It '
                   'needs NCCL 2.17, a driver with multicast (CUDA 12.1), a '
                   'fabric manager that works (in a virtual machine the '
                   "host's must allow it), and NCCL_NVLS_ENABLE not 0.")
            return
        if peak < self.slots:
            yield 'it is what PCIe carries;'
        yield ('is an NVLink down (nvidia-smi nvlink --status)? Does NCCL go '
               'through host memory (NCCL_P2P_DISABLE) or the network '
               '(containers that do not share /dev/shm)? Did other GPUs take '
               'part than were said?')


def _rule(topology, nbytes, machines, cards, card_rate):
    if machines > 1 and (cards is None or card_rate is None):
        raise ValueError(
            f'cards, card_rate: {machines} machines are joined by network '
            'cards; say how many cards each has, and how fast one is: '
            'cards=8, card_rate=50e9 are 8 cards of 400 Gbit/s. (Machines '
            'that one NVLink domain joins, such as a GB200 rack, count as '
            'one: give a table of all its GPUs.)')
    if machines * len(topology.gpus) < 2:
        raise ValueError('use: one GPU of one machine has nobody to sum '
                         'with; take 2 GPUs or more, or machines=2')


@checked(_rule, nbytes=partial(positive, example=1e9), machines=limits.LINEAR,
         topology=instance_of(Server, 'a Server, such as topology.'
                                      'from_nvidia_smi(text, gpu="V100")'),
         cards=partial(integer, most=1000),
         card_rate=partial(positive, example=50e9))
def expected(topology: Server, nbytes: float = GiB, machines: int = 1,
             cards: int | None = None,
             card_rate: float | None = None) -> Expectation:
    """What bus bandwidth an all-reduce over these GPUs should show.

    topology: one machine. machines: how many like it take part.
    nbytes: bytes on each GPU. Below 1 GiB the range begins lower, and below
    16 MiB it is not predictable: how long a call takes then decides
    (`protocols.time`).
    cards, card_rate: network cards of each machine, and bytes/s of one each
    way by its data sheet (50e9 for 400 Gbit/s).

    Raises ValueError for one GPU alone, and for machines without cards.
    """
    rings = _rings(topology)
    inside = _one_machine(topology, rings)
    shown = [([topology.gpus[i] for i in order], count)
             for order, count in rings]
    if cards and card_rate and machines > 1:
        found = _machines(topology, inside, shown, machines, cards, card_rate)
    else:
        found = Expectation(
            len(topology.gpus), shown, inside.low, inside.high, inside.plan,
            inside.best_plan, inside.predictable, inside.why, inside.ring,
            inside.best, topology.slot)
    share = _shown(nbytes)
    if share == 1:
        return found
    return replace(
        found, low=share * found.low,
        predictable=found.predictable and share > 0,
        why=f'{found.why} Arrays of {_size(nbytes)} showed {share:.0%} or '
            'more of what the largest did, on healthy machines.')


def _machines(server, inside, rings, machines, cards, card_rate):
    """The `Expectation` for several machines like this one."""
    k = len(server.gpus)
    n = machines * k
    card = card_rate * (1 if server.rates == 'nominal'
                        else GBIT.usable / GBIT.nominal)
    slots = k * server.slot
    wire = min(cards * min(card, server.slot), slots)
    ring = min(inside.ring, wire)
    # The best plan sums inside each machine, then between machines, and
    # does both at the same time, piece by piece. Either may be the slower.
    best = wire * _ring_factor(n) / _ring_factor(machines)
    if k > 1:
        best = min(best, inside.best * _ring_factor(n) / _ring_factor(k))
    low, high = OF_NETWORK[0] * ring, OF_NETWORK[1] * best
    if not inside.predictable:
        low = min(low, inside.low)
    why = [f'The {cards} cards of a machine carry {_gb(cards * card)}.'
           if cards > 1 else
           f'The card of a machine carries {_gb(card)}.']
    if wire < cards * card:
        why.append('But the PCIe slots '
                   + ('of the GPU' if k == 1 else f'of {k} GPUs')
                   + f' and of the cards let only {_gb(wire)} through.')
    if k > 1:
        why.append('Inside: ' + inside.why)
    why.append(f'One ring through all {n} GPUs would show {_gb(ring)}, the '
               f'best plan {_gb(best)}; measured machines were between, give '
               'or take 5 %. For large arrays NCCL mostly takes trees for two '
               'machines and rings for more. Switches of the network that add '
               '(SHARP) are not counted.')
    return Expectation(n, rings, low, high, f'a ring through all {n} GPUs',
                       'sum inside each machine, then between machines, in '
                       'pieces', inside.predictable, ' '.join(why), ring,
                       best, slots, wire, slots < cards * card)


def _ring_factor(n):
    """What each of n GPUs sends in a ring, in arrays."""
    return 2 * (n - 1) / n


def _rings(server):
    """(order, cables per hop) with devices 0 to k - 1; [] if there is none."""
    k = len(server.gpus)
    if k < 2:
        return []
    if server.switched:  # any order will do
        return [([*range(k)], server.switched)]
    try:
        return rings_of(server.cables)
    except ValueError:
        return []


def _one_machine(server, rings):
    """What the GPUs of one machine should show, as `_Inside`."""
    k = len(server.gpus)
    if k == 1:
        return _Inside(float('inf'), float('inf'), float('inf'),
                       float('inf'), True, '', '', '')
    if rings:
        return _over_nvlink(server, rings)
    ways = {server.path(i, j) for i in range(k) for j in range(i)}
    said = server.wiring.nvlinks_said or not server.gpu.nvlinks
    if ways == {'PIX'} and server.gpu.peer and said:
        low, high = (part * server.slot for part in OF_SLOT)
        return _Inside(server.slot, server.slot, low, high, True, 'a ring',
                       'a ring', 'All GPUs hang on one PCIe switch, and each '
                       f'slot carries {_gb(server.slot)} each way.')
    slowest = server.slot
    if 'SYS' in ways:  # of the processors that it may have, the slowest way
        slowest = min(slowest, *(getattr(one, server.rates)
                                 for one in SOCKETS.values()))
    low, high = THROUGH_CPU[0] * slowest, THROUGH_CPU[1] * server.slot
    over = _over_a_gpu(server)
    if over:
        high = max(high, OF_RING[1] * over)
    return _Inside(server.slot, high, low, high, False, 'a ring', 'a ring',
                   f'{_no_ring(server, ways)} The range is what such '
                   f'machines showed; {SETTINGS}.')


def _over_nvlink(server, rings):
    k = len(server.gpus)
    cables = sum(count for _, count in rings)
    if k > 2 and not server.switched:
        cables *= 2  # a ring in both directions
    ring = cables * server.nvlink
    one = f'{server.nvlink / 1e9:.3g}'
    if server.switched:
        why = (f'{cables} NVLinks lead from a GPU to switches; at {one} GB/s '
               f'each way they carry {_gb(ring)}.')
    elif k == 2:
        why = f'{cables} NVLinks at {one} GB/s each way carry {_gb(ring)}.'
    else:
        why = (f'{len(rings)} ring{"s" * (len(rings) > 1)} over '
               f'NVLinks, run both ways, let a GPU send over {cables} '
               f'NVLinks at a time; at {one} GB/s they carry {_gb(ring)}.')
    best, best_plan = ring, 'the same'
    low, high = (part * ring for part in (OF_PAIR if k == 2 else OF_RING))
    part, fewest = ADDING[100 if server.gpu.sm >= 100 else 90]
    if server.switched and server.gpu.adds_in_switch and k >= fewest:
        best = ring * 2 * (k - 1) / (k + 1) * part
        best_plan = ADDS
        why += (f' If the switches add (NVLS), {_gb(best)}: a GPU then sends '
                f'{k + 1}/{k} of its array, in a ring {2 * k - 2}/{k}, and '
                f'NCCL counts on {part:.0%} of the rate that this gives.')
        low, high = (part * best for part in OF_ADDING)
        if k > 8:
            low, high = (part * ring for part in OF_DOMAIN)
            why += (' With more than eight GPUs in an NVLink domain, '
                    'measured rates were nearer to a ring\'s.')
    return _Inside(ring, best, low, high, True,
                   BOTH_WAYS if not server.switched and k > 2
                   else 'a ring over NVLinks', best_plan, why)


def _over_a_gpu(server):
    """The most that ways over NVLinks through a GPU between can carry.

    Bytes/s: a GPU sends over all its NVLinks at most. 0 if some GPUs cannot
    be reached over NVLinks.
    """
    reached = np.linalg.matrix_power(
        np.eye(len(server.gpus), dtype=bool) | (server.cables > 0),
        len(server.gpus))
    if not reached.all():
        return 0.0
    return int(server.cables.sum(axis=1).min()) * server.nvlink


def _no_ring(server, ways):
    """Why no ring runs over NVLinks, or over one PCIe switch."""
    if not server.cables.any():
        words = ('No NVLinks join these GPUs.' if server.wiring.nvlinks_said
                 else 'The file says nothing of NVLinks.')
        if not server.wiring.nvlinks_said and ways == {'PIX'}:
            return words
        if ways == {'PIX'}:
            return (f'{words} They hang on one PCIe switch, but '
                    f'{server.gpu.name} cards may not copy to each other, so '
                    'data go through host memory.')
        if ways <= {'PIX', 'PXB'}:
            return f'{words} Their way leads through several PCIe switches.'
        return f'{words} Their way leads through a CPU ({_names(ways)}).'
    words = 'No ring over direct NVLinks goes through all of these GPUs.'
    over = _over_a_gpu(server)
    if over:
        words += (' NCCL 2.8 and later may send over NVLinks through a GPU '
                  f'between, with at most {_gb(over)}; otherwise some hops '
                  f'lead through a CPU ({_names(ways)}).')
    else:
        words += f' Some hops lead through a CPU ({_names(ways)}).'
    text = server.wiring
    better = best_devices(text.cables, len(server.gpus))
    if not better and len(server.gpus) > 2:
        better = best_devices(text.cables, 2)
    if better:
        names = ' '.join(str(text.gpus[i]) for i in better[0])
        words += f' GPUs {names} would have one.'
    return words


def _names(ways):
    return ', '.join(sorted(way for way in ways if not way.startswith('NV')))


def _shown(nbytes):
    """How much of a machine's best an array of so many bytes shows, at least.
    """
    if nbytes >= GiB:
        return 1.0
    return max((share for size, share in SHOWN.items() if size <= nbytes),
               default=0.0)


def _gb(rate):
    return f'{rate / 1e9:.3g} GB/s'


def _size(nbytes):
    for unit, size in (('GiB', GiB), ('MiB', MiB), ('KiB', 1 << 10)):
        if nbytes >= size:
            return f'{nbytes / size:.3g} {unit}'
    return f'{nbytes:.0f} bytes'

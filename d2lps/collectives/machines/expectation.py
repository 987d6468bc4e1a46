"""The bus bandwidth that a machine should show, and verdicts on it.

*Bus bandwidth* (busbw) is how nccl-tests states the time t of an all-reduce
of N bytes on n GPUs: 2 (n - 1) / n * N / t. For a ring that is what each GPU
sends in a second; other plans send less, and so may show more than a wire
carries.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from d2lps.checks import checked, instance_of, integer, positive, refuse
from d2lps.collectives import limits
from d2lps.collectives.cables import (MOST_DEVICES, Rings, best_devices,
                                      most_rings)
from d2lps.collectives.machines.gpu_machine import GpuMachine
from d2lps.collectives.machines.nccl_tests import Log
from d2lps.collectives.machines.rates import CARD, SOCKETS
from d2lps.units import BINARY, RATES, several, with_unit

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

# Plans, in words.
ONE_WAY, BOTH_WAYS = 'a ring over NVLinks', 'rings over NVLinks, both ways'
ADDS, PCIE = 'switches add (NVLS)', 'a ring over PCIe'
SETTINGS = (
    'BIOS (NUMA nodes per socket), ACS, IOMMU and virtual machines decide '
    'whether GPUs copy to each other or through host memory, and the text '
    'does not show these settings')
DIRECT = (
    'Does each GPU reach a card directly (GPUDirect RDMA)? It needs a driver '
    'module such as nvidia-peermem, or dma-buf; outside of virtual machines, '
    'ACS and IOMMU must be off; and the card must be below the PCIe switch of '
    'its GPU, not on the other socket.')


class Verdict(NamedTuple):
    """A verdict of a measurement on a machine.

    word: 'healthy', 'below' or 'above', or None if the log cannot tell.
    why: in sentences.
    """
    word: str | None
    why: str


class _Inside(NamedTuple):
    """Rates that the GPUs of one machine should show.

    ring, best: bus bandwidth of a ring and of the best plan, as the rates
    say. low, high: from, to; bytes/s. The rest: as in `Expectation`.
    """
    ring: float
    best: float
    low: float
    high: float
    low_plan: str
    high_plan: str
    why: str
    predictable: bool = True


@dataclass(frozen=True, repr=False)
class Expectation:
    """The bus bandwidth of a large all-reduce, in bytes/s.

    gpus: how many take part, on all machines.
    rings: (order, cables per hop) inside a machine, with the numbers of the
        GPUs in the text; empty where no ring runs over NVLinks only.
    low, high: from, to. low_plan, high_plan: the plan behind each, in words.
    predictable: False if hops lead through a CPU; then low and high are what
        such machines showed.
    why: in sentences. ring, best: bus bandwidth of a ring and of the best
        plan, as the rates say. rates: 'usable' or 'nominal'.
    slot: what a PCIe slot carries. wire: what goes through the cards of a
        machine, at most; None for one machine. slots_limit: would more cards
        gain nothing, because the slots of the GPUs are full?
    """
    gpus: int
    rings: Rings
    low: float
    high: float
    low_plan: str
    high_plan: str
    predictable: bool
    why: str
    ring: float
    best: float
    rates: str
    slot: float
    wire: float | None = None
    slots_limit: bool = False

    def __repr__(self) -> str:
        return f'Expectation({several(self.gpus, "GPU")}: {self.in_words()})'

    def in_words(self) -> str:
        """From low to high, and for which arrays."""
        low = rate_in_words(self.low).removesuffix(' GB/s')
        return (f'{low} to {rate_in_words(self.high)}, for arrays of 1 GiB or '
                'more' + '; not predictable' * (not self.predictable))

    def verdict(self, measured: float | pd.DataFrame | Log) -> Verdict:
        """The verdict of a measurement on the machine.

        measured: bus bandwidth in bytes/s, or a table of `read_nccl_tests`,
        of which the largest one counts.

        Raises ValueError for other things, for a log of more or fewer ranks,
        and for nominal rates: the range is for usable ones.
        """
        if self.rates == 'nominal':
            raise ValueError("rates was 'nominal', the rates of data sheets; "
                             "a verdict needs rates='usable'")
        if isinstance(measured, Real):
            return self._judge(positive('measured', measured), '')
        log = _log_of(measured)
        op = log.attrs.get('op')
        self._check_ranks(log, op)
        peak = positive('measured', float(log['busbw'].max()))
        if log.attrs.get('wrong'):
            return Verdict(None, 'The log has wrong results (#wrong). Its '
                           'speed has no meaning until the sums are right.')
        if op not in (None, 'all_reduce') and not self._same_as(op):
            return Verdict(None, f'The log is of {op}, and the range is for '
                           'all_reduce, whose bus bandwidth is different '
                           'here: run all_reduce_perf.')
        last = log['size'].max()
        share = _shown(last)
        if share == 1:
            return self._judge(peak, '')
        end = f' The log ends at {with_unit(last, BINARY)}'
        if self.low <= peak <= self.high:
            return self._judge(peak, f'{end}; larger arrays may show more.')
        end += ': measure up to 8 GiB.'
        if share:
            end += (f' On healthy machines, arrays of '
                    f'{with_unit(last, BINARY)} showed {share:.0%} or more of '
                    'the bus bandwidth of the largest arrays.')
        if share * self.low <= peak < self.low:
            return Verdict(None, f'{rate_in_words(peak)} so far.{end}')
        return self._judge(peak, end)

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
            algbw, busbw = log['algbw'].max(), log['busbw'].max()
            factor = busbw / max(algbw, 1)
            if algbw >= 1e9 and abs(factor / _arrays_sent(self.gpus) - 1
                                    ) > 0.02:
                ranks = round(2 / (2 - factor)) if factor < 1.99 else 'more'
        if ranks not in (None, self.gpus):
            raise ValueError(f'the log has {ranks} ranks, and {self.gpus} '
                             'GPUs take part: say which GPUs of a machine '
                             'take part, or how many machines')

    def _judge(self, peak, end):
        if peak > self.high:
            return Verdict('above', self._above(peak) + end)
        if peak < self.low:
            return Verdict('below', self._below(peak) + end)
        sentence = f'{rate_in_words(peak)} is in the range.'
        if self.wire and self.best > peak > self.wire:
            sentence += (f' It is more than the {rate_in_words(self.wire)} of '
                         'the cards. This is no mistake: bus bandwidth counts '
                         'the bytes of a ring. A tree, or a sum inside each '
                         'machine first, sends fewer bytes.')
        if not self.predictable:
            sentence += (' This tells little, because the range of machines '
                         'with hops through a CPU is wide.')
        return Verdict('healthy', sentence + end)

    def _above(self, peak):
        if not self.predictable:
            return (f'{rate_in_words(peak)} is more than measured on such '
                    'machines. Do other GPUs take part, or NVLinks that the '
                    'text does not show?')
        sentence = (f'{rate_in_words(peak)} is above the range: more than '
                    'measured on such machines. Inside the range, a bus '
                    'bandwidth above the rate of the wire is no mistake. Were '
                    'these other GPUs, or Gbit/s in place of GB/s?')
        if self.wire:
            sentence += (' Are there more or faster cards, or switches of the '
                         'network that add (SHARP)?')
        elif self.low_plan == BOTH_WAYS:
            sentence += ' Does NCCL also send through a GPU in between?'
        return sentence

    def _below(self, peak):
        sentence = f'{rate_in_words(peak)} is {1 - peak / self.low:.0%} below'
        return ' '.join([f'{sentence} the range.', *self._suspects(peak)])

    def _suspects(self, peak):
        """Possible causes of a `peak` below the range, as sentences."""
        if self.wire:
            if self.slots_limit:
                yield ('The PCIe slots of the GPUs are the limit, so more '
                       'cards would not help.')
            yield DIRECT
        elif not self.rings:
            yield ('Do the GPUs copy directly to each other, or through host '
                   'memory (ACS, IOMMU, a virtual machine)?')
        elif self.high_plan == ADDS and peak > OF_RING[0] * self.ring:
            yield ('A ring reaches this rate. Do the switches add (NVLS)? '
                   'This needs NCCL 2.17, a driver with multicast (CUDA '
                   '12.1), a working fabric manager (in a virtual machine, '
                   'the fabric manager of the host must allow it), and '
                   'NCCL_NVLS_ENABLE must not be 0.')
        else:
            if peak < self.slot:
                yield 'PCIe would carry as much.'
            yield ('Is an NVLink down (nvidia-smi nvlink --status)? Does '
                   'NCCL go through host memory (NCCL_P2P_DISABLE) or the '
                   'network (containers that do not share /dev/shm)? Did '
                   'other GPUs take part?')


def _rule(topology, machines, cards, card_rate):
    if machines > 1 and (cards is None or card_rate is None):
        raise ValueError(
            f'cards, card_rate: {machines} machines are joined by network '
            'cards; say how many cards each machine has, and the rate of a '
            'card: cards=8, card_rate=50e9 are 8 cards of 400 Gbit/s. '
            '(Machines in one NVLink domain, such as a GB200 rack, count as '
            'one machine: give a table of all its GPUs.)')
    if machines == 1 and (cards, card_rate) != (None, None):
        raise ValueError('cards and card_rate are about several machines; '
                         'say machines=2')
    if machines * len(topology.gpus) < 2:
        raise ValueError('one GPU of one machine has no partner for a sum; '
                         'take 2 GPUs or more, or 2 machines')
    if len(topology.gpus) > MOST_DEVICES and topology.cables.any():
        raise ValueError(f'use must be {MOST_DEVICES} GPUs or fewer where no '
                         f'switch joins them; it was {len(topology.gpus)}')


@checked(_rule, machines=limits.up_to_100_000,
         topology=instance_of(
             GpuMachine, 'a GpuMachine, such as machines.from_nvidia_smi('
             'text, gpu="V100")'),
         cards=partial(integer, most=1000),
         card_rate=partial(positive, example=50e9))
def expected_bandwidth(topology: GpuMachine, machines: int = 1,
                       cards: int | None = None,
                       card_rate: float | None = None) -> Expectation:
    """The bus bandwidth that an all-reduce over these GPUs should show.

    topology: one machine. machines: how many like it take part.
    cards, card_rate: network cards of each machine, and bytes/s of one each
    way by its data sheet (50e9 for 400 Gbit/s).

    Raises ValueError for one GPU alone, for several machines without cards,
    and for more than 16 GPUs that cables join without a switch.
    """
    rings = _rings(topology)
    inside = _inside(topology, rings)
    shown = [([topology.gpus[i] for i in order], count)
             for order, count in rings]
    if cards and card_rate:
        return _machines(topology, inside, shown, machines, cards, card_rate)
    return Expectation(len(topology.gpus), shown, **inside._asdict(),
                       rates=topology.rates, slot=topology.slot)


def _inside(machine, rings):
    """The `_Inside` of one machine's GPUs; None for one GPU."""
    if len(machine.gpus) == 1:
        return None
    return _over_nvlink(machine, rings) if rings else _over_pcie(machine)


def _machines(machine, inside, rings, machines, cards, card_rate):
    """The `Expectation` for several machines; inside: None for one GPU."""
    k = len(machine.gpus)
    n = machines * k
    card = card_rate * (1 if machine.rates == 'nominal'
                        else CARD.usable / CARD.nominal)
    carried = cards * min(card, machine.slot)
    wire = min(carried, k * machine.slot)
    ring, best = wire, wire * _arrays_sent(n) / _arrays_sent(machines)
    why = [f'The {several(cards, "card")} of a machine can carry '
           f'{rate_in_words(cards * card)}.']
    if wire < cards * card:
        gpus = 'the GPU' if k == 1 else f'{k} GPUs'
        why.append(f'But the PCIe slots of {gpus} and of the cards carry only '
                   f'{rate_in_words(wire)}.')
    if inside:
        ring = min(inside.ring, wire)
        # The best plan sums inside each machine, then between machines, and
        # does both at the same time, piece by piece. Either may be slower.
        best = min(best, inside.best * _arrays_sent(n) / _arrays_sent(k))
        why.append(f'Inside: {inside.why}')
    low, high = OF_NETWORK[0] * ring, OF_NETWORK[1] * best
    predictable = inside is None or inside.predictable
    if not predictable:
        low = min(low, inside.low)
    why.append(f'One ring through all {n} GPUs would show '
               f'{rate_in_words(ring)}, the best plan {rate_in_words(best)}; '
               'measured machines were between these rates, within 5 %. For '
               'large arrays NCCL mostly takes trees for two machines and '
               'rings for more. Switches of the network that add (SHARP) '
               'are not counted.')
    return Expectation(
        n, rings, low, high, f'a ring through all {n} GPUs',
        'sum inside each machine, then between machines, in pieces',
        predictable, ' '.join(why), ring, best, machine.rates, machine.slot,
        wire, slots_limit=wire < carried)


def _arrays_sent(n):
    """The number of arrays that each of n GPUs sends in a ring."""
    return 2 * (n - 1) / n


def _rings(machine):
    """(order, cables per hop) with devices 0 to k - 1; [] if there is none."""
    k = len(machine.gpus)
    if k == 1 or not (machine.switched or machine.cables.any()):
        return []
    if machine.switched:  # any order will do
        return [([*range(k)], machine.switched)]
    return most_rings(machine.cables)


def _over_nvlink(machine, rings):
    k = len(machine.gpus)
    links = sum(count for _, count in rings)
    both = k > 2 and not machine.switched
    if both:
        links *= 2
    ring = links * machine.nvlink
    rate = rate_in_words(machine.nvlink)
    if machine.switched:
        why = (f'{several(links, "NVLink")} lead from a GPU to switches; at '
               f'{rate} each way they carry {rate_in_words(ring)}.')
    elif both:
        why = (f'{several(len(rings), "ring")} over NVLinks, run both ways, '
               f'let a GPU send over {links} NVLinks at a time; at {rate} '
               f'they carry {rate_in_words(ring)}.')
    else:
        why = (f'At {rate} each way, {several(links, "NVLink")} can carry '
               f'{rate_in_words(ring)}.')
    plan = BOTH_WAYS if both else ONE_WAY
    low, high = (share * ring for share in (OF_PAIR if k == 2 else OF_RING))
    share, fewest = ADDING[100 if machine.gpu.sm >= 100 else 90]
    if not machine.switched or not machine.gpu.adds_in_switch or k < fewest:
        return _Inside(ring, ring, low, high, plan, plan, why)
    best = ring * 2 * (k - 1) / (k + 1) * share
    why += (f' If the switches add (NVLS), {rate_in_words(best)}: a GPU then '
            f'sends {k + 1}/{k} of its array, in a ring {2 * k - 2}/{k}, and '
            f'NCCL counts on {share:.0%} of the rate that this gives.')
    low, high = OF_ADDING[0] * best, OF_ADDING[1] * best
    if k > 8:
        low, high = OF_DOMAIN[0] * ring, OF_DOMAIN[1] * ring
        why += (' With more than eight GPUs in an NVLink domain, measured '
                "rates were nearer to a ring's.")
    return _Inside(ring, best, low, high, plan, ADDS, why)


def _over_pcie(machine):
    """Without a ring over NVLinks: one PCIe switch, or through a CPU."""
    k = len(machine.gpus)
    ways = {machine.path(i, j) for i in range(k) for j in range(i)}
    said = machine.wiring.nvlinks_said or not machine.gpu.nvlinks
    if ways == {'PIX'} and machine.gpu.peer and said:
        low, high = (share * machine.slot for share in OF_SLOT)
        return _Inside(machine.slot, machine.slot, low, high, PCIE, PCIE,
                       'All GPUs are on one PCIe switch, and each slot '
                       f'carries {rate_in_words(machine.slot)} each way.')
    slowest = machine.slot
    if 'SYS' in ways:  # of the processors that it may have, the slowest way
        slowest = min(slowest, *(getattr(rate, machine.rates)
                                 for rate in SOCKETS.values()))
    low, high = THROUGH_CPU[0] * slowest, THROUGH_CPU[1] * machine.slot
    high = max(high, OF_RING[1] * _over_a_gpu(machine))
    return _Inside(machine.slot, high, low, high, PCIE, PCIE,
                   f'{_no_ring(machine, ways)} The range is from measured '
                   f'machines; {SETTINGS}.', predictable=False)


def _over_a_gpu(machine):
    """The most that ways over NVLinks through a GPU between can carry.

    Bytes/s: a GPU sends over all its NVLinks at most. 0 if some GPUs cannot
    be reached over NVLinks.
    """
    near = np.eye(len(machine.gpus), dtype=bool) | (machine.cables > 0)
    if not np.linalg.matrix_power(near, len(near)).all():
        return 0.0
    return int(machine.cables.sum(axis=1).min()) * machine.nvlink


def _no_ring(machine, ways):
    """A reason why no ring runs over NVLinks, or over one PCIe switch."""
    through = ', '.join(sorted(way for way in ways if way[:2] != 'NV'))
    if any(machine.links_to_switch):
        lost = [f'GPU{number}' for number, links in zip(
            machine.gpus, machine.links_to_switch) if not links]
        return (f'{", ".join(lost)} cannot be reached over the switches, so '
                f'some hops lead through a CPU ({through}). The others have '
                'a ring.')
    if not machine.cables.any():
        sentence = ('No NVLinks join these GPUs.'
                    if machine.wiring.nvlinks_said
                    else 'The file says nothing of NVLinks.')
        if 'PXB' in ways and ways <= {'PIX', 'PXB'}:
            return f'{sentence} Several PCIe switches are between them.'
        if ways != {'PIX'}:
            return f'{sentence} Messages go through a CPU ({through}).'
        if machine.gpu.peer:
            return sentence
        return (f'{sentence} They are on one PCIe switch, but '
                f'{machine.gpu.name} cards cannot copy to each other, so data '
                'go through host memory.')
    sentence = 'No ring over direct NVLinks goes through all of these GPUs.'
    over = _over_a_gpu(machine)
    if over:
        sentence += (' NCCL 2.8 and later can send over NVLinks through a '
                     f'GPU in between, with at most {rate_in_words(over)}; '
                     f'otherwise some hops lead through a CPU ({through}).')
    else:
        sentence += f' Some hops lead through a CPU ({through}).'
    return sentence + _better(machine)


def _better(machine):
    """GPUs of the machine that have a ring: as many, or fewer."""
    text = machine.wiring
    if len(text.gpus) > MOST_DEVICES:
        return ''
    for k in range(len(machine.gpus), 1, -1):
        best = best_devices(text.cables, k)
        if best:
            names = ' '.join(str(text.gpus[i]) for i in best[0])
            return f' GPUs {names} would have one.'
    return ''


def _log_of(measured):
    """The table, if it is one."""
    columns = (measured if isinstance(measured, Log) else
               getattr(measured, 'columns', ()))
    if {'size', 'busbw'} - {*columns}:
        refuse('measured', measured, 'bytes/s, such as 129e9, or a table of '
               'read_nccl_tests(text), with columns size and busbw')
    return measured


def _shown(nbytes):
    """The least share of its best that a machine shows at this size."""
    if nbytes >= GiB:
        return 1.0
    return max((share for size, share in SHOWN.items() if size <= nbytes),
               default=0.0)


def rate_in_words(rate: float) -> str:
    """Bytes/s as '129 GB/s', in which nccl-tests has all rates."""
    return with_unit(rate, RATES[:1])

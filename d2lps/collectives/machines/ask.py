"""From what an owner posts to an expectation and a verdict."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from d2lps.collectives.machines.expectation import (Expectation, Verdict,
                                                    expected_bandwidth)
from d2lps.collectives.machines.gpu_machine import GpuMachine, machine_of
from d2lps.collectives.machines.nccl_tests import Log, read_log
from d2lps.collectives.machines.nccl_xml import read_xml
from d2lps.collectives.machines.nvidia_smi import read_table
from d2lps.collectives.machines.rates import find_gpu
from d2lps.collectives.machines.wiring import Wiring


class Answer(NamedTuple):
    """A post that was read, and an answer to it.

    verdict: None without a measurement. notes: of the texts, in sentences.
    log: what the log says, if there was one.
    """
    machine: GpuMachine
    expectation: Expectation
    verdict: Verdict | None
    notes: tuple[str, ...]
    log: Log | None = None


def ask(text: str, gpu: str | None = None, use: Sequence[int] | None = None,
        log: str | None = None, measured: float | None = None,
        machines: int = 1, cards: int | None = None,
        card_rate: float | None = None) -> Answer:
    """Tell what this machine should show, and judge a measurement.

    text: a table of `nvidia-smi topo -m`, or NCCL's XML. log: of nccl-tests.
    measured: or a bus bandwidth, bytes/s. gpu: where no text says which GPU
    it is. use, machines, cards, card_rate: see `machine_of` and
    `expected_bandwidth`.

    Raises ValueError for texts that cannot be read or do not fit together.
    """
    wiring = read_wiring(text)
    read = read_log(log) if log else None
    of_log = read.attrs['gpu'] if read is not None else None
    machine = machine_of(wiring, gpu or wiring.gpu or of_log, use)
    if of_log and find_gpu(of_log).sm != machine.gpu.sm:
        raise ValueError(f'the log is of {of_log} GPUs, and these are '
                         f'{machine.gpu.name}')
    expectation = expected_bandwidth(machine, machines=machines, cards=cards,
                                     card_rate=card_rate)
    notes, verdict = machine.wiring.notes, None
    if read is not None:
        verdict = expectation.verdict(read)
        notes += read.attrs['notes']
    elif measured is not None:
        verdict = expectation.verdict(measured)
    return Answer(machine, expectation, verdict, notes, read)


def read_wiring(text: str) -> Wiring:
    """A table of `nvidia-smi topo -m`, or NCCL's XML.

    Raises ValueError for other texts.
    """
    return (read_xml if '<system' in text else read_table)(text)


def numbers(text: str) -> list[int]:
    """'0, 1, 4-7' as [0, 1, 4, 5, 6, 7]; ValueError for other texts."""
    found: list[int] = []
    for part in text.split(','):
        first, _, last = (end.strip() for end in part.partition('-'))
        last = last or first if '-' not in part else last
        if not all(end.isdecimal() and len(end) < 5 for end in (first, last)
                   ) or int(last) < int(first):
            raise ValueError('GPUs are numbers such as 0,1,2 or 0-3; it was '
                             f'{text[:40]!r}')
        found += range(int(first), int(last) + 1)
    return found

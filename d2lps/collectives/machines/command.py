"""`d2lps server FILE`: from a posted table to an expectation and a verdict."""
import sys
from json import dumps
from pathlib import Path
from typing import Any

from d2lps.checks import writable
from d2lps.collectives.machines.expectation import expected
from d2lps.collectives.machines.nccl_tests import read_nccl_tests
from d2lps.collectives.topology import from_nccl_xml, from_nvidia_smi

GBIT = 1e9 / 8  # bytes/s
MOST_BYTES = 20_000_000  # of a file; posted tables have some thousands


def server(file: str, gpu: str | None = None, use: list[int] | None = None,
           log: str | None = None, machines: int = 1,
           cards: int | None = None, card_gbit: float | None = None,
           json: bool = False) -> None:
    """Print what the machine in a file should show, and if a log does.

    file: a table of `nvidia-smi topo -m`, or NCCL's XML; '-' is standard
    input. log: a log of nccl-tests. card_gbit: Gbit/s of a network card.
    The rest: see `from_nvidia_smi` and `expected`. json: as one object.

    Raises ValueError or OSError for what cannot be read or does not fit.
    """
    if file == log == '-':
        raise ValueError('FILE and --log: only one of them can be -, '
                         'standard input')
    text = _read(file)
    read = from_nccl_xml if '<system' in text else from_nvidia_smi
    machine = read(text, gpu, use)
    found = expected(machine, machines=machines, cards=cards,
                     card_rate=None if card_gbit is None
                     else card_gbit * GBIT)
    word, said = None, ''
    if log is not None:
        table = read_nccl_tests(_read(log))
        _same_ranks(table.attrs.get('ranks'), found.gpus)
        word, said = found.verdict(table)
    notes = ' '.join(machine.wiring.notes)
    if json:
        print(dumps({
            'gpus': found.gpus, 'rings': found.rings,
            'low': round(found.low / 1e9, 3),
            'high': round(found.high / 1e9, 3),
            'predictable': found.predictable, 'verdict': word,
            'why': ' '.join(filter(None, [found.why, said, notes]))}))
        return
    rows: list[tuple[str, Any]] = [('GPUs', _gpus(machine, machines))]
    rows += [('ring', f'{"-".join(map(str, [*order, order[0]]))}, {count} '
                      f'NVLink{"s" * (count > 1)} per hop')
             for order, count in found.rings]
    rows += [('expected', f'{found.low / 1e9:.3g} to {found.high / 1e9:.3g} '
              'GB/s bus bandwidth, for arrays of 1 GiB or more'
              + ('' if found.predictable
                 else '; not predictable from this text')),
             ('why', found.why)]
    if log is not None:
        rows += [('verdict', f'{word or "none yet"}: {said}')]
    rows += [('note', note) for note in machine.wiring.notes]
    for name, words in rows:
        print(f'{name:9} {words}')


def _gpus(machine, machines):
    numbers = ' '.join(map(str, machine.gpus))
    words = f'{len(machine.gpus)} {machine.gpu.name}: {numbers}'
    return words if machines == 1 else f'{machines} machines of {words}'


def _same_ranks(ranks, gpus):
    if ranks is not None and ranks != gpus:
        raise ValueError(f'--log: it has {ranks} ranks, and {gpus} GPUs take '
                         'part; say --use 0,1 for GPUs of one machine, or '
                         '--machines 2')


def _read(name):
    """The text of a file, or of standard input; not more than fits."""
    with (sys.stdin.buffer if name == '-' else Path(name).open('rb')) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f'{writable(name)} is too large: it has more than '
                         f'{MOST_BYTES:,} bytes')
    if content[:2] in (b'\xff\xfe', b'\xfe\xff'):  # as PowerShell writes
        return content.decode('utf-16', 'replace')
    return content.decode('utf-8-sig', 'replace')

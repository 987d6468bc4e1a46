"""`d2lps server FILE`: from a posted table to an expectation and a verdict."""
import os
import stat
import sys
from json import dumps

from d2lps.checks import writable
from d2lps.collectives.machines.expectation import (Expectation, Verdict,
                                                    expected)
from d2lps.collectives.machines.nccl_tests import read_nccl_tests
from d2lps.collectives.machines.nccl_xml import read_xml
from d2lps.collectives.machines.nvidia_smi import read_table
from d2lps.collectives.machines.rates import GPUS
from d2lps.collectives.machines.server import Server, server_of

GBIT = 1e9 / 8  # bytes/s
MOST_BYTES = 20_000_000  # of a file; posted tables have some thousands


def server(file: str, gpu: str | None = None, use: list[int] | None = None,
           log: str | None = None, measured: float | None = None,
           machines: int = 1, cards: int | None = None,
           card_gbit: float | None = None, json: bool = False) -> None:
    """Print what the machine in a file should show, and if it does.

    file: a table of `nvidia-smi topo -m`, or NCCL's XML; '-' is standard
    input. log: a log of nccl-tests; measured: or a bus bandwidth, GB/s.
    card_gbit: Gbit/s of a network card. json: print one object. The rest:
    see `server_of` and `expected`.

    Raises ValueError or OSError for what cannot be read or does not fit.
    """
    if file == log == '-':
        raise ValueError('FILE and --log: only one of them can be -, '
                         'standard input')
    if log is not None and measured is not None:
        raise ValueError('--log and --measured: say only one of them')
    if machines > 1 and (cards is None or card_gbit is None):
        raise ValueError(
            f'--machines {machines}: they are joined by network cards; say '
            'how many each has and how fast one is, such as --cards 8 '
            '--card-gbit 400. (Machines in one NVLink domain, such as a '
            'GB200 rack, count as one: give a table of all their GPUs)')
    text = _read(file)
    wiring = (read_xml if '<system' in text else read_table)(text)
    table = None if log is None else read_nccl_tests(_read(log))
    gpu = gpu or wiring.gpu or (
        None if table is None else table.attrs['gpu'])
    if gpu is None:
        raise ValueError('--gpu: the text does not say which GPU it is; say '
                         '--gpu A100, or what it is: ' + ', '.join(GPUS))
    machine = server_of(wiring, gpu, use)
    found = expected(machine, machines=machines, cards=cards, card_rate=None
                     if card_gbit is None else card_gbit * GBIT)
    verdict = None
    if table is not None:
        _same_ranks(table, found.gpus)
        verdict = found.verdict(table)
    if measured is not None:
        verdict = found.verdict(measured * 1e9)
    notes = list(wiring.notes)
    if table is not None:
        notes += table.attrs['notes']
        if table.attrs['op'] not in (None, 'all_reduce'):
            notes.append(f'The log is of {table.attrs["op"]}; the range is '
                         'of all_reduce. Over a ring both show the same, '
                         'with switches that add they do not.')
    show = _print_object if json else _print_lines
    show(machine, found, verdict, notes, machines)


def _print_object(machine: Server, found: Expectation,
                  verdict: Verdict | None, notes: list[str],
                  machines: int) -> None:
    why = [found.why, verdict.why if verdict else '', *notes]
    print(dumps({
        'gpus': found.gpus, 'rings': found.rings,
        'low': round(found.low / 1e9, 3), 'high': round(found.high / 1e9, 3),
        'predictable': found.predictable,
        'verdict': verdict and verdict.word,
        'why': ' '.join(filter(None, why))}))


def _print_lines(machine: Server, found: Expectation,
                 verdict: Verdict | None, notes: list[str],
                 machines: int) -> None:
    gpus = f'{len(machine.gpus)} {machine.gpu.name}: '
    gpus += ' '.join(map(str, machine.gpus))
    rows = [('GPUs', gpus if machines == 1
             else f'{machines} machines of {gpus}')]
    rows += [('ring', f'{"-".join(map(str, [*order, order[0]]))}, {count} '
                      f'NVLink{"s" * (count > 1)} per hop')
             for order, count in found.rings]
    rows += [('expected', f'{found.low / 1e9:.3g} to {found.high / 1e9:.3g} '
              'GB/s bus bandwidth, for arrays of 1 GiB or more'
              + ('' if found.predictable
                 else '; not predictable from this text')),
             ('why', found.why)]
    if verdict:
        rows += [('verdict', f'{verdict.word or "none yet"}: {verdict.why}')]
    rows += [('note', note) for note in notes]
    for name, words in rows:
        print(f'{name:9} {words}')


def _same_ranks(table, gpus):
    """Refuse a log of more or fewer ranks: it would be judged wrongly."""
    ranks = table.attrs['ranks']
    if ranks is None and table.attrs['op'] in (None, 'all_reduce'):
        # busbw is algbw times 2 (n - 1) / n; both are rounded, and least so
        # where they are large.
        row = table.loc[table['busbw'].idxmax()]
        factor = row['busbw'] / row['algbw']
        if abs(factor / (2 * (gpus - 1) / gpus) - 1) > 0.02:
            ranks = round(2 / (2 - factor)) if factor < 1.99 else 'more'
    if ranks not in (None, gpus):
        raise ValueError(f'--log: it has {ranks} ranks, and {gpus} GPUs take '
                         'part; say --use 0,1 for some GPUs of a machine, or '
                         '--machines 2 for several')


def _read(name):
    """The text of a file, or of standard input; not more than fits."""
    if name != '-' and not stat.S_ISREG(os.stat(name).st_mode):
        raise ValueError(f'{writable(name)} is no file; give one, or - for '
                         'standard input')
    if name == '-' and sys.stdin is None:
        raise ValueError('- is standard input, and it is closed')
    with (sys.stdin.buffer if name == '-' else open(name, 'rb')) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f'{writable(name)} is too large: it has more than '
                         f'{MOST_BYTES:,} bytes')
    if content[:2] in (b'\xff\xfe', b'\xfe\xff'):  # as PowerShell writes
        return content.decode('utf-16', 'replace')
    return content.decode('utf-8-sig', 'replace')

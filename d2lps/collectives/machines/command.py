"""`d2lps server FILE`: an answer to what an owner posts, in a terminal."""
import os
import stat
import sys
from contextlib import contextmanager
from json import dumps

from d2lps.checks import integer, positive, writable
from d2lps.collectives.machines.ask import Answer, ask
from d2lps.collectives.machines.nccl_tests import read_log
from d2lps.collectives.machines.rates import GBIT, find_gpu

MOST_BYTES = 20_000_000  # of a file; posted tables have some thousands


def server(file: str, gpu: str | None = None, use: list[int] | None = None,
           log: str | None = None, measured: float | None = None,
           machines: int = 1, cards: int | None = None,
           card_gbit: float | None = None, json: bool = False) -> None:
    """Print what the machine in a file should show, and if it does.

    file: a table of `nvidia-smi topo -m`, or NCCL's XML; '-' is standard
    input. log: a log of nccl-tests; measured: or a bus bandwidth, GB/s.
    card_gbit: Gbit/s of a network card. json: print one object. The rest:
    see `ask`.

    Raises ValueError or OSError for what cannot be read or does not fit.
    """
    if file == log == '-':
        raise ValueError('FILE and --log: only one of them can be -, '
                         'standard input')
    check_options(gpu, log, measured, machines, cards, card_gbit)
    answer = answered(_read(file), gpu, use, None if log is None else
                      _read(log), measured, machines, cards, card_gbit,
                      (file, log or ''))
    (_print_object if json else _print_lines)(answer, machines)


def answered(table: str, gpu: str | None = None,
             use: list[int] | None = None, log: str | None = None,
             measured: float | None = None, machines: int = 1,
             cards: int | None = None, card_gbit: float | None = None,
             names: tuple[str, str] = ('the table', 'the log')) -> Answer:
    """`ask` for options that were checked, in their units.

    table, log: texts. names: what errors call these two. The rest: see
    `server`, and `ask` for what is raised.
    """
    if log is not None:
        with _about(names[1]):
            read_log(log)
    with _about(names[0]):
        return ask(table, gpu, use, log,
                   None if measured is None else measured * 1e9, machines,
                   cards, None if card_gbit is None else card_gbit * GBIT)


def _print_object(answer: Answer, machines: int) -> None:
    expectation, verdict = answer.expectation, answer.verdict
    why = [expectation.why, verdict.why if verdict else '', *answer.notes]
    print(dumps({
        'gpus': expectation.gpus, 'rings': expectation.rings,
        'low': round(expectation.low / 1e9, 3),
        'high': round(expectation.high / 1e9, 3),
        'predictable': expectation.predictable,
        'verdict': verdict and verdict.word,
        'why': ' '.join(filter(None, why))}))


def _print_lines(answer: Answer, machines: int) -> None:
    for name, line in rows(answer, machines):
        print(f'{name:9} {line}')


def rows(answer: Answer, machines: int = 1) -> list[tuple[str, str]]:
    """Names and sentences of an answer, in the order to print."""
    machine, expectation, verdict, notes, _ = answer
    gpus = f'{len(machine.gpus)} {machine.gpu.name}: '
    gpus += ' '.join(map(str, machine.gpus))
    said = [('GPUs', gpus if machines == 1
             else f'{machines} machines of {gpus}')]
    said += [('ring', f'{"-".join(map(str, [*order, order[0]]))}, {count} '
                      f'NVLink{"s" * (count > 1)} per hop')
             for order, count in expectation.rings]
    said += [('expected', f'bus bandwidth {expectation.in_words()}'),
             ('why', expectation.why)]
    if verdict:
        said += [('verdict', f'{verdict.word or "none yet"}: {verdict.why}')]
    return said + [('note', note) for note in notes]


def check_options(gpu: str | None, log: str | None, measured: float | None,
                  machines: int, cards: int | None,
                  card_gbit: float | None) -> None:
    """Refuse options that do not go together, in the command's own words.

    See `server` for what they are. Raises ValueError.
    """
    if log is not None and measured is not None:
        raise ValueError('--log and --measured: give only one of them')
    integer('--machines', machines)
    if measured is not None:
        positive('--measured', measured, 129)
    if machines > 1 and (cards is None or card_gbit is None):
        raise ValueError(
            f'--machines {machines}: network cards join them; say how many '
            'cards a machine has and the rate of a card, such as --cards 8 '
            '--card-gbit 400. (Machines in one NVLink domain, such as a '
            'GB200 rack, count as one: give a table of all their GPUs)')
    if cards is not None:
        integer('--cards', cards)
    if card_gbit is not None:
        positive('--card-gbit', card_gbit, 400, most=1e6)
    if machines == 1 and (cards, card_gbit) != (None, None):
        raise ValueError('--cards and --card-gbit are about several '
                         'machines; say --machines 2')
    if gpu is None:
        return
    try:
        find_gpu(gpu, '--gpu')
    except ValueError as error:
        raise ValueError(f'{error}. "--gpu list" prints all names') from None


@contextmanager
def _about(file):
    """Errors about a text name the file with the text."""
    try:
        yield
    except ValueError as error:
        line = str(error)
        if line.startswith('text '):
            line = f'{writable(file)} {line.removeprefix("text ")}'
        raise ValueError(line) from None


def _read(name):
    """The text of a file, or of standard input; not more than fits."""
    if name != '-' and not stat.S_ISREG(os.stat(name).st_mode):
        kind = 'a folder' if os.path.isdir(name) else 'no file'
        raise ValueError(f'{writable(name)} is {kind}; name a file, or - for '
                         'standard input')
    if name == '-' and sys.stdin is None:
        raise ValueError('- is standard input, and it is closed')
    with (sys.stdin.buffer if name == '-' else open(name, 'rb')) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f'{writable(name)} is too large: it has more than '
                         f'{MOST_BYTES:,} bytes')
    if not content.strip():
        raise ValueError(f'{writable(name)} is empty')
    if content[:2] in (b'\xff\xfe', b'\xfe\xff'):  # as PowerShell writes
        return content.decode('utf-16', 'replace')
    return content.decode('utf-8-sig', 'replace')

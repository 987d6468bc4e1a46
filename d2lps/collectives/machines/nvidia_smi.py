"""Reads what `nvidia-smi topo -m` prints, however it was posted.

A post shifts the header, glues its words together, breaks lines, quotes them
or cuts them off. So the header is not trusted. A row is a label (GPU3, NIC0,
mlx5_0) and the cells after it, wherever lines break, and it proves its own
place: it has its X in its own column. What the rows say twice has to agree.
"""
import re
from collections import Counter
from functools import partial
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from d2lps.checks import checked
from d2lps.collectives.machines.posts import gpus_listed, kind_of, posted
from d2lps.collectives.machines.wiring import Wiring

MOST_TEXT = 500_000  # characters
MOST_GPUS = 128  # a rack of today joins 72 by NVLink
EXAMPLE = 'GPU0  X  NV4  SYS  0-31'

# NV alone, and NV0, are cells, too: they are refused by their names.
_CELL = re.compile(r'X|NV\d*|SYS|SOC|NODE|PHB|PXB|PIX', re.I)
# The beginning of the row of a GPU.
_ROW = re.compile(rf'(?<![^\W_])GPU\d+\s+(?:{_CELL.pattern})(?=\s|$)', re.I)
_GPU = re.compile(r'GPU(\d{1,4})', re.I)
# In capitals only: gpu59 is the name of somebody's machine.
_NAMED = re.compile(r'(?<![A-Za-z_-])GPU(\d{1,4})')
# A network card's name has a digit: NIC0, mlx5_0, bnxt_re0, rdmap16s27, ib0.
_CARD = re.compile(r'(?=\D*\d)[A-Za-z][\w.+-]{0,40}')
# What nvidia-smi topo -p2p says of two GPUs.
_COPIES = {'OK', 'CNS', 'GNS', 'TNS', 'NS', 'DR', 'U'}
# What else is posted, and words that stand in it.
_OTHERS = {
    'rocm-smi --showtopo prints, of AMD GPUs': 'between two GPUs',
    'amd-smi topology prints, of AMD GPUs': '(ACCESS|LINK TYPE) TABLE',
    'nvidia-smi topo -p2p prints':
        rf'GPU\d+\s+({"|".join(_COPIES)})\b',
    'nvidia-smi nvlink --status prints': r'Link \d+: (<inactive>|[\d.]+ GB/s)',
    'nccl-tests print': r'\balgbw\b',
    'nvidia-smi alone prints': r'NVIDIA-SMI \d'}
# CPUs or NUMA nodes: 0-19,40-59.
_AFFINITY = re.compile(r'\d+(-\d+)?(,\d+(-\d+)?)*,?|N/A|NA', re.I)
# Underlining and colours, with or without the invisible first character.
_ESCAPES = re.compile(r'(\x1b|\x9b|\^\[|\u241b)?\[[0-9;]{0,9}[mK]|\x1b')
_INVISIBLE = re.compile('[\u200b-\u200f\u2060\ufeff\x00]')
# What stands around cells in tables of Markdown, and in CSV files: commas
# before a letter, after one, and after NV4. Those in 0-19,40-59 stay.
_BARS = re.compile(
    r'[`|\u2502\u2503";]|\*\*|,(?=\s*[A-Za-z])'
    r'|(?:(?<=[A-Za-z])|(?<=[Nn][Vv]\d)|(?<=[Nn][Vv]\d\d)) *,')


class _Row(NamedTuple):
    """A label, its cells, and what follows them; line: for messages."""
    label: str
    cells: tuple[str, ...]
    after: tuple[str, ...]
    line: int
    start: int  # number of its label among all words

    def __str__(self) -> str:
        return f'the row of {self.label} (line {self.line})'


@checked(text=partial(posted, most=MOST_TEXT, example=EXAMPLE))
def read_table(text: str) -> Wiring:
    """The wiring in a table of `nvidia-smi topo -m`.

    text: the table, with whatever stands around it. Which GPU it is may be
    said by what `nvidia-smi -L` or `nvidia-smi` print, or by a log.

    Raises ValueError for a text without a table, a table that is cut off,
    and one that contradicts itself; it says where.
    """
    text = _BARS.sub(' ', _INVISIBLE.sub('', _ESCAPES.sub('', text)))
    tokens = _tokens(text)
    rows = _different(_rows(tokens) or _no_table(text))
    gpus, others = _parted(rows)
    n, width = len(gpus), len(gpus[0].cells)
    _all_named(text, gpus)
    names = _cards(_header(tokens, n, gpus[0].start), others, n, width)
    _two_ways(gpus, others)
    cells = [row.cells[:n] for row in gpus]
    cables = np.array([[_nvlinks(cell) for cell in row] for row in cells])
    paths = tuple(tuple('' if cell == 'X' or _nvlinks(cell) else cell
                        for cell in row) for row in cells)
    sockets, notes = _sockets(text, gpus, paths)
    kind, more = kind_of(text)
    if '...' in gpus[0].after:
        more += 'Columns of the table were left out where it has "...".',
    return Wiring(tuple(range(n)), cables, np.zeros(n, int), paths,
                  {name: tuple(row.cells[n + k] for row in gpus)
                   for k, name in enumerate(names)},
                  sockets, kind, None, notes + more)


def _tokens(text):
    """Pairs (word, line) in the text's order; '' stands for a blank line.

    Marks before lines (#, //, *, >, a file's name) are dropped.
    """
    lines = text.splitlines()
    prefix = _prefix(lines)
    tokens = []
    for number, line in enumerate(lines, 1):
        here = line.strip().removeprefix(prefix).split()
        here = [word for word in map(_bare, here) if word] or ['']
        tokens += [(word, number) for word in here]
    return tokens


def _bare(word):
    """A word without what quotes it: '//GPU0' and 'topo.txt:GPU0' are GPU0.

    A word of marks only becomes '', but '...' has a meaning.
    """
    if word.startswith(('...', '\u2026')):
        return '...'
    inner = word.strip('#*>/:+-_.\\')
    last = inner.rpartition(':')[2]
    if _CARD.fullmatch(last):
        return last
    return word if inner else ''


def _prefix(lines):
    """The text before the label in all rows of GPUs, or ''."""
    prefixes = set()
    for line in lines:
        label = _ROW.search(line)
        if label:
            prefixes.add(line[:label.start()].strip())
    return prefixes.pop() if len(prefixes) == 1 else ''


def _rows(tokens):
    """Each label that cells follow, as a `_Row`."""
    rows = []
    for k, (word, line) in enumerate(tokens):
        if not _CARD.fullmatch(word) or _CELL.fullmatch(word):
            continue
        end = k + 1
        while end < len(tokens) and _CELL.fullmatch(tokens[end][0]):
            end += 1
        cells = tuple(cell.upper().replace('SOC', 'SYS')
                      for cell, _ in tokens[k + 1:end])
        following = tokens[end:end + 5]
        same_line = (cell for cell, place in following
                     if place == following[0][1])
        after = tuple(takewhile(_is_affinity, same_line))
        # In prose one such word may follow a name: 'an H100 node'. In a card's
        # row there are two at least, and nvidia-smi topo -p2p writes OK.
        is_gpu = bool(_GPU.fullmatch(word))
        copies = following and following[0][0] in _COPIES
        if '...' in after and 'X' not in cells:
            continue  # its own column was left out
        if len(cells) > 1 or len(cells) == 1 and is_gpu and not copies:
            rows.append(_Row(word, cells, after, line, k))
    if any(len(row.cells) > 1 for row in rows):
        rows = [row for row in rows if len(row.cells) > 1]
    return rows if any(_GPU.fullmatch(row.label) for row in rows) else []


def _no_table(text):
    for others, pattern in _OTHERS.items():
        if re.search(pattern, text):
            raise ValueError('text has no table of nvidia-smi topo -m; it is '
                             f'what {others}: run nvidia-smi topo -m')
    raise ValueError('text has no table of nvidia-smi topo -m: no row of a '
                     f'GPU, such as {EXAMPLE!r}, was found')


def _is_affinity(word):
    return word == '...' or _AFFINITY.fullmatch(word)


def _different(rows):
    """The rows by label; the same row may stand in the text twice."""
    matches: dict[str, _Row] = {}
    for row in rows:
        for cell in row.cells:
            if re.fullmatch(r'NV(0\d*|\d{3,})?', cell):
                raise ValueError(f'{row} has the cell {cell}, which must say '
                                 'how many NVLinks there are: NV1, NV2, ...')
        first = matches.setdefault(row.label, row)
        if first.cells != row.cells:
            raise ValueError(
                f'{row.label} has two rows that differ, in lines {first.line} '
                f'and {row.line}: if these are two tables that differ, give '
                'one, of one machine')
    common = Counter(len(row.cells) for row in rows).most_common(1)[0][0]
    for row in rows:
        if len(row.cells) != common:
            raise ValueError(f'{row} has {len(row.cells)} cells, and other '
                             f'rows have {common}: a row is torn or cut off; '
                             'post the table whole')
    return matches


def _parted(rows):
    """The rows of GPUs, by number, and the others, each at its place."""
    gpus = {int(label[3:]): row for label, row in rows.items()
            if _GPU.fullmatch(label)}
    if len(gpus) > MOST_GPUS:
        raise ValueError(f'text has rows of {len(gpus)} GPUs; at most '
                         f'{MOST_GPUS} are read: post one machine')
    for number in range(max(gpus)):
        if number not in gpus:
            _no_row(number)
    for row in rows.values():
        if row.cells.count('X') != 1:
            raise ValueError(f'{row} must have one X, in its own column; it '
                             f'has {row.cells.count("X")}: is it cut off?')
    for number, row in gpus.items():
        if row.cells.index('X') != number:
            raise ValueError(f'{row} must have its X in column {number} '
                             f'(from 0); it is in {row.cells.index("X")}: is '
                             'a column missing, or a label damaged?')
    ordered = [gpus[number] for number in sorted(gpus)]
    others = [row for label, row in rows.items() if not _GPU.fullmatch(label)]
    places = [row.cells.index('X') for row in others]
    for row, place in zip(others, places):
        if place < len(ordered) or places.count(place) > 1:
            raise ValueError(f'{row} has its X in column {place} (from 0), '
                             'and so has another row: is a label damaged?')
    return ordered, others


def _no_row(number):
    raise ValueError(f'text has no row for GPU{number}: is it cut off? post '
                     'the table whole')


def _all_named(text, gpus):
    """ValueError if the text names a GPU that has no row."""
    named = [int(number) for number in _NAMED.findall(text)]
    for numbers, _ in gpus_listed(text):
        named += numbers
    for number in sorted({*named}):
        if number >= len(gpus):
            _no_row(number)
    if len(gpus) == 1 and len(named) == 1:
        raise ValueError('text has one row, of GPU0, and no header that says '
                         'that there is no other GPU: is it cut off?')


def _header(tokens, n, end):
    """The names after GPU0 ... GPUn-1 in the header; [] if there is none."""
    before = ' '.join(word for word, _ in tokens[:end])
    every = r'\s?'.join(f'GPU{number}' for number in range(n))
    matches = [*re.finditer(rf'{every}(?!\d)', before, re.I)]
    if not matches:
        return []
    names = []
    for word in before[matches[-1].end():].split():
        # Names of cards, too, may be glued together.
        parts = re.findall(r'NIC\d+|mlx\d_\d+', word)
        parts = parts if ''.join(parts) == word else [word]
        if not _CARD.fullmatch(parts[0]) or _GPU.match(parts[0]):
            break
        names += parts
    return names


def _cards(header, others, n, width):
    """A name for each column behind those of the GPUs.

    A card's row names its column. Columns without rows are named by the
    header; those that it does not name may be GPUs whose rows were cut off.
    """
    names = {row.cells.index('X'): row.label for row in others}
    columns = range(n, width)
    if len(header) > len(columns):
        raise ValueError(f'the header names {len(header)} network cards, and '
                         f'the rows have {len(columns)} cells for them: are '
                         'columns missing?')
    for column, name in zip(columns, header):
        if names.setdefault(column, name) != name:
            raise ValueError(f'the row of {names[column]} has its X in the '
                             f'column of {name}')
    for column in columns:
        if column not in names:
            raise ValueError(f'column {column} (from 0) has no row, and no '
                             'header names it: is it a GPU whose row was cut '
                             'off? post the table whole')
    if len({*names.values()}) < len(names):
        raise ValueError('two columns have the same name: '
                         f'{", ".join(names.values())}')
    return [names[column] for column in columns]


def _two_ways(gpus, others):
    """ValueError where two rows disagree about what joins them."""
    rows = [*gpus, *others]
    places = [row.cells.index('X') for row in rows]
    for row, place in zip(rows, places):
        for other, column in zip(rows, places):
            there, back = row.cells[column], other.cells[place]
            if there != back:
                raise ValueError(f'{row} says {there} to {other.label}, and '
                                 f'{other} says {back} to {row.label}')
    for row in rows:
        if any(map(_nvlinks, row.cells[len(gpus):])):
            raise ValueError(f'{row} has an NVLink to a network card, which '
                             'none has: is a column or a row missing?')


def _nvlinks(cell):
    """4 for 'NV4', and 0 for cells that are no NVLinks."""
    return int(cell[2:]) if cell.startswith('NV') else 0


def _sockets(text, gpus, paths):
    """A text for each GPU's CPU, and notes.

    The NUMA column is used if there is one, and the CPU affinity otherwise.
    The last of three columns, GPU NUMA ID, is about the GPU's own memory.
    """
    titles = ' '.join(text.upper().split())
    numa, own = 'NUMA AFFINITY' in titles, 'GPU NUMA ID' in titles
    columns: list[tuple[str, str]] = []
    for row in gpus:
        cells = ['' if cell.upper() in ('N/A', 'NA', '-') else cell.strip(',')
                 for cell in row.after if cell != '...'][:3]
        if own:
            cells = cells[:-1]
            # An empty cell is not seen: one that is left is the NUMA node.
            cells = cells if len(cells) == 2 else ['', *cells]
        cells = (cells + ['', ''])[:2]
        columns.append((cells[0], cells[1] if numa or own else ''))
    affinity, nodes = zip(*columns)
    sockets = nodes if any(nodes) else affinity
    n = len(gpus)
    if any(paths[i][j] == 'SYS' and sockets[i] == sockets[j] != ''
           for i in range(n) for j in range(i)):
        return ('',) * n, (
            'Its columns of affinities say one socket for GPUs that SYS, a '
            'way between sockets, joins: they are not used.',)
    return tuple(sockets), ()

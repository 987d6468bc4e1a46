"""Damaged texts: refused, or read as before; never read as another machine.

A machine is written down, damaged in one place as posts are, and read. What
the text cannot prove may differ: names of cards, their ways, sockets, notes.
"""
import random
import re
import string

import numpy as np
import pytest
from d2lps.collectives.machines.nccl_tests import read_nccl_tests
from d2lps.collectives.machines.nccl_xml import read_xml
from d2lps.collectives.machines.nvidia_smi import read_table

BYTES = string.printable


def table(cells, cards='', affinities=(), header=True, tab='\t'):
    """A table of `nvidia-smi topo -m`: rows of cells, those of cards last."""
    names = [*(f'GPU{k}' for k in range(len(affinities))), *cards.split()]
    lines = [tab.join(['', *names, 'CPU Affinity'])] if header else []
    rows = [row.split() for row in cells.strip().splitlines()]
    for name, row, more in zip(names, rows, [*affinities, *[''] * len(cards)]):
        lines.append(tab.join([name, *row, more]))
    return '\n'.join(lines) + '\n'


CUBE = """X NV1 NV1 NV2 NV2 SYS SYS SYS PIX SYS
NV1 X NV2 NV1 SYS NV2 SYS SYS PIX SYS
NV1 NV2 X NV2 SYS SYS NV1 SYS PHB SYS
NV2 NV1 NV2 X SYS SYS SYS NV1 PHB SYS
NV2 SYS SYS SYS X NV1 NV1 NV2 SYS PIX
SYS NV2 SYS SYS NV1 X NV2 NV1 SYS PIX
SYS SYS NV1 SYS NV1 NV2 X NV2 SYS PHB
SYS SYS SYS NV1 NV2 NV1 NV2 X SYS PHB
"""
CARDS = """PIX PIX PHB PHB SYS SYS SYS SYS X SYS
SYS SYS SYS SYS PIX PIX PHB PHB SYS X
"""
HALVES = ['0-19,40-59'] * 4 + ['20-39,60-79'] * 4
SWITCH = '\n'.join(' '.join('X' if i == j else 'NV12' for j in range(8))
                   for i in range(8))
PAIRS = """X NV4 NODE NODE SYS
NV4 X NODE NODE SYS
NODE NODE X NV4 PXB
NODE NODE NV4 X PXB
"""
TABLES = {
    'cube': table(CUBE + CARDS, 'mlx5_0 mlx5_1', HALVES),
    'cube, cards without rows': table(CUBE, 'mlx5_0 mlx5_1', HALVES),
    'cube without a header': table(CUBE + CARDS, 'mlx5_0 mlx5_1', HALVES,
                                   header=False),
    'switch': table(SWITCH, '', HALVES, tab='    '),
    'pairs': table(PAIRS, 'NIC0', ['0-7'] * 4, tab='  '),
    'two': table('X NV3\nNV3 X\n', '', ['', '']),
    'CSV': table(CUBE, 'mlx5_0 mlx5_1', HALVES, tab=','),
    'quoted': re.sub('^', '# ', table(PAIRS, 'NIC0', ['0-7'] * 4), flags=re.M),
}


def gpu(k, links, sm=70, device='0x1db1'):
    inner = ''.join(f'<nvlink target="0000:{bus}:00.0" count="{count}" '
                    f'tclass="{kind}"/>\n' for bus, count, kind in links)
    return (f'<pci busid="0000:0{k}:00.0" class="0x030200" vendor="0x10de" '
            f'device="{device}">\n<gpu dev="{k}" sm="{sm}" rank="{k}">\n'
            f'{inner}</gpu>\n</pci>\n')


def system(*cpus):
    return '<system version="1">\n' + ''.join(
        f'<cpu numaid="{k}" vendor="GenuineIntel" familyid="6" '
        f'modelid="85">\n{inside}</cpu>\n'
        for k, inside in enumerate(cpus)) + '</system>\n'


def linked(k, *others):
    return gpu(k, [(f'0{other}', count, '0x030200')
                   for other, count in others])


def below(bus, *devices):
    return (f'<pci busid="0000:{bus}:00.0" class="0x060400">\n'
            + ''.join(devices) + '</pci>\n')


CARD = ('<pci busid="0000:c1:00.0" class="0x020000">\n<nic>\n<net name="ib0" '
        'dev="0"/>\n</nic>\n</pci>\n')
FILES = {
    'links': system(
        below('a1', linked(0, (1, 2), (2, 1)), linked(1, (0, 2), (3, 1)),
              CARD),
        below('a2', linked(2, (3, 2), (0, 1)), linked(3, (2, 2), (1, 1)))),
    'switch': system(*(below(f'a{k}', gpu(k, [
        ('f1', 6, '0x068000'), ('f2', 6, '0x068000')], 80, '0x20b0'))
        for k in range(4))),
}
LOG = """# nThread 1 nGpus 8 minBytes 1048576 maxBytes 16777216
# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid  1 on   host device  0 [0x00] NVIDIA H100
#  Rank  1 Group  0 Pid  1 on   host device  1 [0x01] NVIDIA H100
     1048576        262144     float     sum      -1    50.00   20.97   20.97\
      0    48.00   21.85   21.85      0
     2097152        524288     float     sum      -1    80.00   26.21   26.21\
      0    79.00   26.55   26.55      0
     4194304       1048576     float     sum      -1    120.0   34.95   34.95\
      0    119.0   35.25   35.25      0
     8388608       2097152     float     sum      -1    200.0   41.94   41.94\
      0    199.0   42.15   42.15      0
    16777216       4194304     float     sum      -1    400.0   41.94   41.94\
      0    398.0   42.15   42.15      0
# Out of bounds values : 0 OK
"""


def cut_lines(text, rng):
    lines = text.splitlines(True)
    at = rng.randrange(len(lines))
    return ''.join(lines[:at] + lines[at + rng.randint(1, 2):])


def swap_lines(text, rng):
    lines = text.splitlines(True)
    i, j = (rng.randrange(len(lines)) for _ in 'ij')
    lines[i], lines[j] = lines[j], lines[i]
    return ''.join(lines)


def change_cell(text, rng):
    words = re.split(r'(\s+)', text)
    at = rng.randrange(0, len(words), 2)
    words[at] = rng.choice([*words[::2], 'NV1', 'NV2', 'SYS', 'PIX', 'X', ''])
    return ''.join(words)


def change_number(text, rng):
    numbers = [*re.finditer(r'\d+', text)]
    at = rng.choice(numbers)
    new = str(int(at[0]) + rng.choice([-1, 1, 2, 10])).replace('-', '')
    return text[:at.start()] + new + text[at.end():]


def swap_columns(text, rng):
    lines = [re.split(r'(\s+)', line) for line in text.splitlines()]
    width = min(map(len, lines[:3])) // 2
    i, j = (2 * rng.randrange(width + 1) for _ in 'ij')
    for line in lines:
        if max(i, j) < len(line):
            line[i], line[j] = line[j], line[i]
    return '\n'.join(map(''.join, lines))


def flip_bytes(text, rng):
    letters = list(text)
    for _ in range(rng.choice([1, 1, 1, 2])):
        letters[rng.randrange(len(letters))] = rng.choice(BYTES)
    return ''.join(letters)


def cut_end(text, rng):
    return text[:rng.randrange(len(text))]


def cut_begin(text, rng):
    return text[rng.randrange(len(text)):]


def double_half(text, rng):
    at = rng.randrange(len(text))
    return rng.choice([text + text[:at], text + text[at:], text[:at] + text,
                       text[at:] + text, text[:at] + '\n' + text])


DAMAGES = (cut_lines, swap_lines, change_cell, change_number, swap_columns,
           flip_bytes, cut_end, cut_begin, double_half)


def wires(wiring):
    """What must stay: who is joined to whom, and by what."""
    order = np.argsort(wiring.gpus)
    gpus = tuple(wiring.gpus[k] for k in order)
    return (gpus, wiring.cables[np.ix_(order, order)].tolist(),
            wiring.switched[order].tolist(),
            [[wiring.paths[i][j] for j in order] for i in order])


def numbers(measured):
    """Size, time and rates out of place of each row, an array."""
    return measured[['size', 'time', 'algbw', 'busbw']].to_numpy(float)


def outcomes(read, text, count, same, seed=47):
    """How often damaged text was refused, and read as before."""
    rng = random.Random(seed)
    refused = kept = 0
    for k in range(count):
        damage = DAMAGES[k % len(DAMAGES)]
        damaged = damage(text, rng)
        try:
            now = read(damaged)
        except ValueError as error:
            assert '\n' not in str(error)
            refused += 1
            continue
        assert same(now), (f'{damage.__name__} gave another machine:\n'
                           f'{damaged}\n{now}')
        kept += 1
    return refused, kept


def check_table(name, count):
    before = wires(read_table(TABLES[name]))
    refused, kept = outcomes(read_table, TABLES[name], count,
                             lambda now: wires(now) == before)
    assert refused > count / 4
    assert kept > count / 50


@pytest.mark.parametrize('name', TABLES)
def test_a_damaged_table_is_refused_or_read_as_before(name):
    check_table(name, 300)


@pytest.mark.full
@pytest.mark.parametrize('name', TABLES)
def test_ten_thousand_damaged_tables(name):
    check_table(name, 10_000)


def check_file(name, count):
    before = wires(read_xml(FILES[name]))

    def same(now):
        """The same NVLinks, or a note: all else has no second witness."""
        return bool(now.notes) or (now.cables.tolist() == before[1] and
                                   now.switched.tolist() == before[2])
    refused, kept = outcomes(read_xml, FILES[name], count, same)
    assert refused > count / 4
    assert kept > count / 50


@pytest.mark.parametrize('name', FILES)
def test_a_damaged_file_has_the_same_nvlinks_or_is_refused(name):
    check_file(name, 300)


@pytest.mark.full
@pytest.mark.parametrize('name', FILES)
def test_ten_thousand_damaged_files(name):
    check_file(name, 10_000)


def check_log(count):
    before = numbers(read_nccl_tests(LOG))

    def same(now):
        """A last digit may be a rounding, so it has no second witness."""
        return all(np.isclose(before, row, rtol=1e-3, atol=0).all(1).any()
                   for row in numbers(now))
    refused, kept = outcomes(read_nccl_tests, LOG, count, same)
    assert refused > count / 10
    assert kept > count / 10


def test_a_damaged_log_has_no_row_that_it_had_not():
    check_log(300)


@pytest.mark.full
def test_ten_thousand_damaged_logs():
    check_log(10_000)

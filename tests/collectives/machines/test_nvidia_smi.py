"""Tables of `nvidia-smi topo -m` in all spellings in which people post them.

One machine of four GPUs and two network cards is written in each of them, and
the same wiring must be read, or a sentence that says what is missing.
"""
import json
import re
import textwrap

import numpy as np
import pytest
from d2lps.collectives.machines.nvidia_smi import MOST_TEXT, read_table

TABLE = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tmlx5_1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV2\tNV1\tSYS\tPIX\tSYS\t0-19,40-59\t0
GPU1\tNV2\t X \tSYS\tNV1\tPHB\tSYS\t0-19,40-59\t0
GPU2\tNV1\tSYS\t X \tNV2\tSYS\tPIX\t20-39,60-79\t1
GPU3\tSYS\tNV1\tNV2\t X \tSYS\tPHB\t20-39,60-79\t1
mlx5_0\tPIX\tPHB\tSYS\tSYS\t X \tSYS\t\t
mlx5_1\tSYS\tSYS\tPIX\tPHB\tSYS\t X \t\t
"""
CABLES = [[0, 2, 1, 0], [2, 0, 0, 1], [1, 0, 0, 2], [0, 1, 2, 0]]
PATHS = (('', '', '', 'SYS'), ('', '', 'SYS', ''),
         ('', 'SYS', '', ''), ('SYS', '', '', ''))
CARDS = {'mlx5_0': ('PIX', 'PHB', 'SYS', 'SYS'),
         'mlx5_1': ('SYS', 'SYS', 'PIX', 'PHB')}
LEGEND = """
Legend:

  X    = Self
  SYS  = A way over PCIe and between NUMA nodes, such as `X` to `NV#` (UPI)
  NODE = A way over PCIe and between PCIe host bridges of a node, not SYS
  PHB  = A way over a PCIe host bridge PHB (mostly the CPU)
  NV#  = A way over a bonded set of # NVLinks, 1 to NV18

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
LINES = TABLE.splitlines()
NICS = TABLE.replace('mlx5_0', 'NIC0').replace('mlx5_1', 'NIC1')
ROWS_OF_GPUS = '\n'.join(LINES[:5])


def spaced(text):
    """Each cell in eight columns, as a terminal shows the tabs."""
    return '\n'.join(''.join(f'{cell.strip():8}' for cell in line.split('\t'))
                     for line in text.splitlines())


def markdown(text):
    head, *rows = ['| ' + ' | '.join(line.split('\t')) + ' |'
                   for line in text.splitlines()]
    return '\n'.join([head, '|---' * 9 + '|', *rows])


def before_each(mark):
    return '\n'.join(mark + line for line in LINES)


SPELLINGS = {
    'tabs': TABLE,
    'spaces': spaced(TABLE),
    'tabs and spaces': TABLE.replace('NV2\t', 'NV2 \t ').replace(
        '\t0-', ' 0-'),
    'header without its first tab': TABLE[1:],
    'header glued together': TABLE.replace(
        '\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0', '\t    GPU0GPU1GPU2GPU3mlx5_0'),
    'underlined header': TABLE.replace('\tGPU0', '\t\x1b[4mGPU0', 1).replace(
        'NUMA Affinity', 'NUMA Affinity\x1b[0m'),
    'escape codes without the escape': TABLE.replace(
        '\tGPU0', '\t[4mGPU0', 1).replace('NUMA Affinity', 'NUMA Affinity[0m'),
    'no header': '\n'.join(LINES[1:]),
    'cards without rows': ROWS_OF_GPUS,
    'cards without rows, in spaces': spaced(ROWS_OF_GPUS),
    'SOC, of old drivers': TABLE.replace('SYS', 'SOC'),
    'small letters': TABLE.lower(),
    'small letters, and GPU0': 'We take GPU0.\n' + TABLE.lower(),
    'a code fence': f'See:\n```text\n{TABLE}```\nWhat is wrong?',
    'a legend': TABLE + LEGEND,
    'a legend right below': TABLE.rstrip() + LEGEND.replace('\n\n', '\n'),
    'a shell': '[me@gpu59 ~]$ nvidia-smi topo -m\n' + TABLE + '[me@gpu59 ~]$',
    'which GPUs take part': f'CUDA_VISIBLE_DEVICES=0,1\n\n{TABLE}',
    'Markdown': markdown(TABLE),
    'bold and code in Markdown': markdown(TABLE).replace(
        '| GPU1 |', '| **GPU1** |').replace('NV2', '`NV2`'),
    'CSV': TABLE.replace('\t', ','),
    'CSV, no spaces': TABLE.replace('\t', ',').replace(' ', ''),
    'CSV, no cards': '\n'.join(','.join(
        [*line.split('\t')[:5], *line.split('\t')[7:8]])
        for line in LINES[:5]).replace(' ', ''),
    'CSV with ;': TABLE.replace('\t', ';').replace(' ', ''),
    "Docker's log file": ''.join(json.dumps(
        {'log': line, 'stream': 'stdout', 'time': '2026-11-26T10:00:00Z'}
        ) + '\n' for line in TABLE.splitlines(True)),
    "Docker's log file, a line of it damaged": '{"log":"\\ud8","a":"b"}\n'
    + ''.join(json.dumps({'log': line}) + '\n' for line in LINES),
    'the end of a legend right below': TABLE.rstrip() + '\nNV#  = NVLinks\n',
    'lines of Windows': TABLE.replace('\n', '\r\n'),
    'blank lines between': TABLE.replace('\n', '\n\n'),
    'no-break spaces': spaced(TABLE).replace(' ', '\xa0'),
    'zero-width spaces': TABLE.replace('NV2', '\u200bNV2'),
    '#': before_each('# '), '//': before_each('// '), '//, no space':
    before_each('//'), '*': before_each(' * '), '>': before_each('> '),
    '#, no space': before_each('#'), "a file's name": before_each(
        'topo.txt:'), "a file's name and a space": before_each('topo.txt: '),
    "a host's name that is a cell": before_each('node '),
    'a line number': '\n'.join(f'{k}:{line}' for k, line in enumerate(LINES)),
    'a time': '\n'.join(f'2026-11-26T10:00:0{k}Z {line}'
                        for k, line in enumerate(LINES)),
    'a rank': before_each('[1,0]<stdout>:'), 'a host': before_each('gpu7: '),
    'lines broken after 30': '\n'.join(
        textwrap.fill(line, 30) for line in spaced(TABLE).splitlines()),
    'lines broken anywhere': textwrap.fill(spaced(TABLE), 41),
    'broken and quoted': '\n'.join('> ' + line for line in textwrap.wrap(
        spaced(TABLE), 38)),
    'broken, in a comment': '\n'.join('# ' + line for line in textwrap.wrap(
        spaced(TABLE), 53)),
    "broken, with a file's name": '\n'.join(
        f'topo.txt: {part}' for line in spaced(TABLE).splitlines()
        for part in textwrap.wrap(line, 30)),
    'coloured labels': TABLE.replace('GPU', '\x1b[32mGPU').replace(
        '\t', '\x1b[0m\t'),
    'one line': ' '.join(TABLE.split()),
    'the same table twice': TABLE + '\n' + spaced(TABLE),
    'the table of copies, too': TABLE + (
        '\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\t X \tOK\tOK\tCNS\n'
        'GPU1\tOK\t X \tCNS\tOK\nGPU2\tOK\tCNS\t X \tOK\n'
        'GPU3\tCNS\tOK\tOK\t X \n'),
    'GPU NUMA ID': TABLE.replace('NUMA Affinity', 'NUMA Affinity\tGPU NUMA ID'
                                 ).replace('\t0\n', '\t0\t\tN/A\n').replace(
                                     '\t1\n', '\t1\t\tN/A\n'),
    'rows in another order': '\n'.join([LINES[0], *LINES[:0:-1]]),
    'names in sentences': f'An A100 node of 4. GPU0 PIX, GPU1 x.\n\n{TABLE}',
    'a sentence that begins like a cell': TABLE + '\nSYS is slow here, not X.',
    'OK below a table without affinities': (
        '\n'.join(line.rsplit('\t', 2)[0] for line in LINES) + '\nOK?'),
    'sentences around': f'We have 4 GPUs; NCCL takes GPU0 and GPU3.\n{TABLE}'
                        'Is it P2P? NCCL_P2P_LEVEL=SYS, PIX or X.',
}


@pytest.mark.parametrize('spelling', SPELLINGS)
def test_each_spelling_is_read_as_the_same_wiring(spelling):
    wiring = read_table(SPELLINGS[spelling])
    assert wiring.gpus == (0, 1, 2, 3)
    np.testing.assert_array_equal(wiring.cables, CABLES)
    assert wiring.paths == PATHS
    assert wiring.cards == ({} if 'no cards' in spelling else CARDS)
    assert not wiring.switched.any()
    assert (wiring.gpu, wiring.cpu, wiring.notes) == (None, None, ())
    assert len({*wiring.sockets[:2]}) == len({*wiring.sockets[2:]}) == 1
    assert wiring.sockets[0] != wiring.sockets[2] or 'OK' in spelling


def test_cards_are_called_as_in_the_table():
    for names in (('NIC0', 'NIC1'), ('bnxt_re0', 'rdmap16s27'),
                  ('mlx5_2', 'mlx5_bond_0'), ('ib0', 'efa1')):
        text = TABLE.replace('mlx5_0', names[0]).replace('mlx5_1', names[1])
        assert list(read_table(text).cards.items()) == [
            (names[0], CARDS['mlx5_0']), (names[1], CARDS['mlx5_1'])]


def test_names_of_cards_in_a_header_may_be_glued():
    for text in (ROWS_OF_GPUS, NICS[:NICS.index('NIC0\tPIX')]):
        head, *rows = text.splitlines()
        glued = head.replace('\t', '').replace('CPU', ' CPU')
        assert [*read_table('\n'.join([glued, *rows])).cards.values()] == [
            *CARDS.values()]


def test_the_row_of_gpu1_may_stand_right_below_the_header():
    wiring = read_table('\tGPU0\tGPU1\nGPU1\tNV4\t X \nGPU0\t X \tNV4\n')
    assert wiring.cables.tolist() == [[0, 4], [4, 0]]


def test_affinities_may_follow_a_comma_in_a_csv_file():
    wiring = read_table('GPU0,X,NV12,0-9\nGPU1,NV12,X,10-19\n')
    assert wiring.cables.tolist() == [[0, 12], [12, 0]]
    assert wiring.sockets == ('0-9', '10-19')


def test_cards_may_stand_out_of_order():
    swapped = TABLE.replace('mlx5_0', 'mlx5_7')
    assert [*read_table(swapped).cards] == ['mlx5_7', 'mlx5_1']


@pytest.mark.parametrize(('more', 'sockets'), [
    (['', ''], ['', '']), (['0-3', '4-7'], ['0-3', '4-7']),
    (['0,2,4', '1,3,5'], ['0,2,4', '1,3,5']), (['N/A', 'N/A'], ['', '']),
    (['0-47\t\tN/A', '0-47\t\tN/A'], ['0-47', '0-47']),
    (['0\t0-1', '0\t2-3'], ['0-1', '2-3']),
    (['0-3\t0\t\tN/A', '4-7\t1\t\tN/A'], ['0', '1']),
    (['0\t0\t\tN/A', '\t1\t\tN/A'], ['0', '1'])])
def test_sockets_are_numa_nodes_or_else_affinities(more, sockets):
    titles = ['CPU Affinity', 'NUMA Affinity', 'GPU NUMA ID']
    columns = {3: 3, 1: 2}.get(more[0].count('\t'), 1)
    head = '\t'.join(['', 'GPU0', 'GPU1', *titles[:columns]])
    text = f'{head}\nGPU0\t X \tNV4\t{more[0]}\nGPU1\tNV4\t X \t{more[1]}\n'
    assert list(read_table(text).sockets) == sockets


def test_affinities_that_contradict_the_table_are_not_used():
    text = '\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tSYS\t0-9\nGPU1\tSYS\tX\t0-9'
    wiring = read_table(text)
    assert wiring.sockets == ('', '')
    assert 'not used' in wiring.notes[0]


def test_columns_that_were_left_out_are_said():
    text = '\n'.join(line.split('\t' + ('mlx5_0', 'PIX', 'PHB', 'SYS')[0])[0]
                     for line in LINES[:1]) + '\t...\n'
    text += '\n'.join('\t'.join(line.split('\t')[:5]) + '\t...'
                      for line in LINES[1:5])
    wiring = read_table(text)
    np.testing.assert_array_equal(wiring.cables, CABLES)
    assert wiring.cards == {}
    assert 'left out' in wiring.notes[0]


@pytest.mark.parametrize('dots', ['...', '\u2026'])
def test_columns_within_may_be_left_out(dots):
    rows = ['\t'.join([*line.split('\t')[:6], dots, line.split('\t')[6]])
            for line in LINES[:6]]
    wiring = read_table('\n'.join([*rows, f'mlx5_9 SYS SYS SYS SYS {dots} X']))
    assert wiring.cards == {'mlx5_0': CARDS['mlx5_0']}
    assert 'left out' in wiring.notes[0]
    assert read_table('\n'.join(rows[1:])).cards == wiring.cards


def test_one_gpu_is_a_machine_if_the_header_says_so():
    head = '\tGPU0\tNIC0\tCPU Affinity\n'
    row = 'GPU0\t X \tNODE\t0-19\n'
    wiring = read_table(head + row)
    assert wiring.gpus == (0,)
    assert wiring.cards == {'NIC0': ('NODE',)}
    assert read_table('An H100 node.\n\n\tGPU0\nGPU0\t X \n').gpus == (0,)
    with pytest.raises(ValueError, match='no header'):
        read_table('GPU0\t X \t0-19\n')


@pytest.mark.parametrize('n', [2, 8, 16, 72])
def test_a_switch_is_read_as_the_table_says_it(n):
    head = '\t' + '\t'.join(f'GPU{k}' for k in range(n))
    rows = [f'GPU{k}\t' + '\t'.join(' X ' if j == k else 'NV18'
                                    for j in range(n)) for k in range(n)]
    wiring = read_table('\n'.join([head, *rows]))
    np.testing.assert_array_equal(wiring.cables,
                                  18 * (1 - np.eye(n, dtype=int)))
    assert not wiring.switched.any()


# A line of what `nvidia-smi` prints, and one of a log of nccl-tests.
BOX = '|   0  {}| 00000000:1A:00.0 Off |                    0 |\n'
RANK = ('#  Rank  0 Group  0 Pid 4711 on  my-host device  0 [0x16] '
        'NVIDIA A100-SXM4-40GB\n')


@pytest.mark.parametrize(('lines', 'kind', 'note'), [
    ('GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n', 'A100', ''),
    ('GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-1)\n'
     'GPU 1: Tesla V100-SXM2-32GB (UUID: GPU-2)\n', 'V100', ''),
    ('GPU 0,1,2,3: NVIDIA B300 SXM6 AC\n', 'B300', ''),
    ('GPU 0: NVIDIA H100 PCIe\nGPU 1: NVIDIA A40\n', None, 'A40 and H100'),
    ('GPU 0: NVIDIA Unheard-Of\n', None, 'Unheard-Of'),
    ('GPU 0: 34 C\n', None, ''),
    (BOX.format('NVIDIA H100 80GB HBM3          On  | ') * 4, 'H100', ''),
    (BOX.format('Tesla V100-SXM2...  On  '), 'V100', ''),
    (BOX.format('NVIDIA RTX A6000               Off ').replace(
        '|', '\u2502'), 'A6000', ''),
    (BOX.format('NVIDIA GeForce RTX 3090        Off '), 'RTX 3090', ''),
    (BOX.format('NVIDIA GeForce RTX 4080 ...  Off '), None, '4080 ...'),
    (BOX.format('GeForce RTX 2070...  Off '), None, 'RTX 2070...'),  # SUPER?
    (BOX.format('NVIDIA GeForce RTX 3090 ...  Off '), None, '3090 ...'),
    (BOX.format('NVIDIA RTX 6000...  Off '), None, 'RTX 6000...'),
    (BOX.format('GeForce RTX 208...  Off '), None, 'RTX 208...'),
    (BOX.format('NVIDIA GeForce ...  Off ') + 'GPU 1: NVIDIA A40\n', None,
     'A40 and NVIDIA GeForce ...'),
    (RANK, 'A100', ''), (RANK + RANK.replace('A100-SXM4', 'A30'), None,
                         'A100 and A30'),
    (RANK + BOX.format('NVIDIA A100-SXM...  On  '), 'A100', '')])
def test_which_gpu_it_is_may_stand_around_the_table(lines, kind, note):
    for text in (lines + TABLE, TABLE + lines):
        wiring = read_table(text)
        assert wiring.gpu == kind
        assert note in ' '.join(wiring.notes)
        assert bool(note) == bool(wiring.notes)


def changed(old, new, count=1):
    assert old in TABLE
    return TABLE.replace(old, new, count)


REFUSED = {
    'nothing': ('', 'text is empty'),
    'white space': (' \t\r\n', 'text is empty'),
    'no table': ('GPU bandwidth is low. X', 'no table'),
    'rows of cards alone': ('\n'.join(LINES[5:]), 'no table'),
    'a header only': (LINES[0], 'no table'),
    'a table of copies': ('\tGPU0\tGPU1\nGPU0\t X \tOK\nGPU1\tOK\t X \n',
                          'no table .*what nvidia-smi topo -p2p prints'),
    'a table of copies that are not supported': (
        ' \tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n', 'topo -p2p prints'),
    'rocm-smi --showtopo': (
        '===== Weight between two GPUs =====\n       GPU0         GPU1\n'
        'GPU0   0            15\nGPU1   15           0\n',
        'what rocm-smi --showtopo prints, of AMD GPUs'),
    'amd-smi topology': (
        'LINK TYPE TABLE:\n             0000:0c:00.0 0000:22:00.0\n'
        '0000:0c:00.0 SELF         XGMI\n', 'amd-smi topology'),
    'nvidia-smi nvlink --status': (
        'GPU 0: NVIDIA A40 (UUID: GPU-1)\n\t Link 0: 14.062 GB/s\n',
        'nvlink --status prints: run nvidia-smi topo -m'),
    'NVLinks that are switched off': (
        'GPU 0: NVIDIA A40 (UUID: GPU-1)\n\t Link 0: <inactive>\n',
        'nvlink --status'),
    'nvidia-smi alone': (
        '| NVIDIA-SMI 560.35.03    Driver Version: 560.35.03 |\n'
        + BOX.format('NVIDIA A40  On '), 'nvidia-smi alone prints'),
    'a log of nccl-tests': (
        RANK + '# size count type redop root time algbw busbw\n'
        '8 2 float sum -1 9.0 0.00 0.00 0\n', 'what nccl-tests print'),
    'the last row of a GPU is missing': (
        '\n'.join(LINES[:4]), 'no row for GPU3: is it cut off'),
    'a row within is missing': (
        '\n'.join(LINES[:2] + LINES[3:]), 'no row for GPU1'),
    'the first row is missing': (
        '\n'.join(LINES[:1] + LINES[2:]), 'no row for GPU0'),
    'the header, and the last row, are missing': (
        '\n'.join(LINES[1:4]), 'column 3 .*GPU whose row was cut off'),
    'another GPU in nvidia-smi -L': (
        TABLE + 'GPU 4: NVIDIA A40 (UUID: GPU-4)', 'no row for GPU4'),
    'another GPU in the box of nvidia-smi': (
        BOX.format('NVIDIA A40  On ').replace(' 0 ', ' 4 ', 1) + TABLE,
        'no row for GPU4'),
    'cut off in a row': (TABLE[:TABLE.index('NV2\t X \tSYS\tPHB')],
                         'row of GPU3 .line 5. has 2 cells'),
    'cut off in the row of a card': (TABLE[:-12], 'mlx5_1 .line 7. has'),
    'cut off after NV1 of NV12': (
        '\tGPU0\tGPU1\nGPU0\tX\tNV12\nGPU1\tNV1', 'no row for GPU1'),
    'NVLinks that differ': (
        changed('NV2\t X \tSYS\tNV1', 'NV1\t X \tSYS\tNV1'),
        'GPU0 .line 2. says NV2 to GPU1.*GPU1 .line 3. says NV1'),
    'paths that differ': (changed('GPU3\tSYS', 'GPU3\tPHB'),
                          'says SYS to GPU3'),
    'cards that differ': (changed('mlx5_0\tPIX', 'mlx5_0\tPXB'), 'PXB'),
    'two X': (changed('NV2\t X \tSYS\tNV1', 'NV2\t X \tSYS\t X '), 'one X'),
    'the row of a card twice, with two names': (
        TABLE + LINES[6].replace('mlx5_1', 'mlx5_7'), 'so has another row'),
    'the row of a GPU twice, with two names': (
        TABLE + LINES[2].replace('GPU1', 'mlx5_7'), 'so has another row'),
    'two cards of one name': (ROWS_OF_GPUS.replace('mlx5_1', 'mlx5_0'),
                              'same name: mlx5_0, mlx5_0'),
    'no X': (changed('NV2\t X \tSYS\tNV1', 'NV2\tNV2\tSYS\tNV1'), 'one X'),
    'labels swapped': (
        TABLE.replace('GPU1\tNV2', 'GPU?\tNV2').replace(
            'GPU2\tNV1', 'GPU1\tNV1').replace('GPU?', 'GPU2'),
        'its X in column'),
    'a label damaged': (changed('GPU1\tNV2', 'GQU1\tNV2'), 'no row for GPU1'),
    'a cell damaged': (changed('NV2\t X \tSYS', 'NV?\t X \tSYS'),
                       'no row for GPU1'),
    'a later cell damaged': (changed('X \tNV2\tSYS', 'X \tNV2\tSYZ'),
                             'GPU2 .line 4. has 4 cells'),
    'NV0': (TABLE.replace('NV2', 'NV0'), 'line 2. has the cell NV0, which'),
    'NV without a number': (TABLE.replace('NV2', 'NV'), 'the cell NV, which'),
    'NV100': (TABLE.replace('NV2', 'NV100'), 'the cell NV100, which'),
    'an NVLink to a card': (TABLE.replace('PIX', 'NV4'), 'NVLink to a net'),
    'cards without names': ('\n'.join(line.replace('mlx5_0\tmlx5_1\t', '')
                                      for line in LINES[:5]),
                            'no header names it'),
    'a column of a card is missing': (
        '\n'.join(re.sub(r'\t(SYS|PIX|PHB)\t(?=\d)', '\t', line)
                  for line in LINES[:5]), 'header names 2 network cards'),
    'two machines': (TABLE + TABLE.replace('NV1', 'NV2'),
                     'in lines 2 and 9: .*two tables that differ, give one'),
    'two machines, one of two GPUs': (
        TABLE + '\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n',
        'two tables that differ, give one'),
    'the table over PCIe, too': (
        TABLE + re.sub(r'NV\d', 'PHB', TABLE), 'differ, give one'),
    'too long': (TABLE + ' ' * MOST_TEXT, 'characters'),
    'too many GPUs': ('\n'.join(
        f'GPU{k} ' + 'PIX ' * k + 'X ' + 'PIX ' * (199 - k)
        for k in range(200)), '200 GPUs'),
}


@pytest.mark.parametrize('reason', REFUSED)
def test_what_is_cut_off_or_contradicts_itself_is_refused(reason):
    text, words = REFUSED[reason]
    with pytest.raises(ValueError, match=words) as error:
        read_table(text)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('value', [None, 3, b'GPU0 X', ['GPU0 X'], '\ud800'])
def test_only_texts_are_read(value):
    with pytest.raises(ValueError, match='text must be'):
        read_table(value)

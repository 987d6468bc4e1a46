"""Logs of nccl-tests in the spellings in which people post them.

One run is written in each of them, and the same table must be read.
"""
import json
import math
import re

import numpy as np
import pytest
from d2lps.collectives.machines.nccl_tests import MOST_TEXT, read_nccl_tests

HEAD = """\
# nThread 1 nGpus 4 minBytes 8 maxBytes 33554432 step: 2(factor) validation: 1
#
# Using devices
#  Rank  0 Group  0 Pid 4711 on  my-host device  0 [0x16] NVIDIA A100-SXM4-40GB
#  Rank  1 Group  0 Pid 4711 on  my-host device  1 [0x27] NVIDIA A100-SXM4-40GB
#  Rank  2 Group  0 Pid 4711 on  my-host device  2 [0x38] NVIDIA A100-SXM4-40GB
#  Rank  3 Group  0 Pid 4711 on  my-host device  3 [0x5a] NVIDIA A100-SXM4-40GB
#
#                                     out-of-place          in-place
#  size  count  type  redop  root  time  algbw  busbw #wrong
#   (B)  (elements)                (us)  (GB/s)  (GB/s)
"""
ROWS = """\
           8             2     float     sum      -1    12.34    0.00    0.00\
      0    12.01    0.00    0.00      0
     1048576        262144     float     sum      -1    40.00   26.21   39.32\
      0    41.00   25.58   38.36      0
    16777216       4194304     float     sum      -1    200.0   83.89  125.83\
      0    201.5   83.26  124.89      0
    33554432       8388608     float     sum      -1      335  100.16  150.24\
      0      336   99.86  149.80      0
"""
TAIL = """\
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 78.555
#
"""
LOG = HEAD + ROWS + TAIL
SIZES = [8, 1 << 20, 16 << 20, 32 << 20]
TIMES = [12.34e-6, 40e-6, 200e-6, 335e-6]
ALGBW = [0, 26.21e9, 83.89e9, 100.16e9]
BUSBW = [0, 39.32e9, 125.83e9, 150.24e9]
INSIDE = [0, 38.36e9, 124.89e9, 149.80e9]
COMMAND = '$ mpirun -np 4 ./build/all_reduce_perf -b 8 -e 32M -f 2\n'
CSV = ('# all_reduce, ranks=4\nsize_B,time_us,algbw_GBs,busbw_GBs\n'
       '8,12.34,0.00,0.00\n1048576,40,26.21,39.32\n'
       '16777216,200,83.89,125.83\n33554432,335,100.16,150.24\n')


def without(pattern, text=LOG):
    changed = re.sub(pattern, '', text)
    assert changed != text
    return changed


def before_each(mark, text=LOG):
    return ''.join(mark + line for line in text.splitlines(True))


OUT = r'(?m)^(.* [\d.]+ +[\d.]+ +[\d.]+ +0)(?= +\d)'  # out of place
OUT_ONLY = re.sub(OUT + '.*', r'\1', ROWS)
SPELLINGS = {
    'a log': LOG,
    'only the rows': ROWS,
    'without the head': ROWS + TAIL,
    'without root': without(r'(?<=sum)      -1', LOG),
    'without redop': without('sum', LOG),
    'without redop and root': without('sum      -1', LOG),
    'a root that is a rank': LOG.replace(' -1 ', '  2 '),
    'N/A for what was not checked': re.sub(
        r'(?m)(\d)( +)0( +\d.*) 0$', r'\1\2N/A\3 N/A', LOG),
    'errors as small numbers': re.sub(
        r'(?m)(\d)( +)0( +\d.*) 0$', r'\1\g<2>2e-07\3 4e-07', LOG),
    'mpirun --tag-output': before_each('[1,0]<stdout>:'),
    'srun --label': before_each('0: '), 'a host': before_each('gpu59: '),
    '#': before_each('# '), '>': before_each('> '),
    "a file's name": before_each('run1.log:'),
    'a time': before_each('2026-11-26 10:00:00 '),
    'sizes with _': LOG.replace('1048576 ', '1_048_576 ').replace(
        '16777216 ', '16_777_216 '),
    'sizes as 3.3554432e+07': LOG.replace('    33554432 ',
                                          '3.3554432e+07 '),
    'times as 3.35e+02': LOG.replace('      335 ', ' 3.35e+02 '),
    'Windows': LOG.replace('\n', '\r\n'),
    'a code fence': f'```\n{LOG}```\n',
    'Markdown': re.sub(r'(?m)^|(?<=\S) +| *$', ' | ', ROWS),
    'rows broken by the terminal': re.sub(OUT, r'\1\n', ROWS),
    'rows broken by the terminal, not checked': re.sub(
        r'(?m) 0$', ' N/A', re.sub(OUT, r'\1\n', ROWS)),
    'a remark after a row': ROWS.replace(
        '38.36      0', '38.36      0  here only 3 of 4 GPUs'),
    'messages of NCCL between': LOG.replace(
        '    16777216  ', 'host:1:1 [0] NCCL INFO Channel 00/02 : 0 1\n'
        '    16777216  '),
    'rows of 0 bytes, of sizes that are not shared': LOG.replace(
        ROWS, '0 0 float sum -1 6.36 0.00 0.00 0 6.40 0.00 0.00 0\n'
        '0 0 float sum -1 6.43 0.00 0.00 0 6.35 0.00 0.00 0\n' + ROWS),
    'half floats': LOG.replace('float', ' half'),
    'the same rows twice': LOG + ROWS,
    "Docker's log file": ''.join(json.dumps({'log': line}) + '\n'
                                 for line in LOG.splitlines(True)),
}


@pytest.mark.parametrize('spelling', SPELLINGS)
def test_each_spelling_is_read_as_the_same_table(spelling):
    table = read_nccl_tests(SPELLINGS[spelling])
    assert list(table.columns) == ['size', 'time', 'algbw', 'busbw',
                                   'busbw_in_place']
    assert table['size'].tolist() == SIZES
    assert table['size'].dtype.kind == 'i'
    for name, right in (('time', TIMES), ('algbw', ALGBW), ('busbw', BUSBW),
                        ('busbw_in_place', INSIDE)):
        np.testing.assert_allclose(table[name], right)
    assert table.attrs['notes'] == ()
    assert table.attrs['wrong'] == 0


@pytest.mark.parametrize('text', [CSV, CSV.replace(',', ' ; '), OUT_ONLY,
                                  without('#.*\n|size.*\n', CSV)])
def test_without_columns_in_place_they_are_nan(text):
    table = read_nccl_tests(text)
    assert table['size'].tolist() == SIZES
    np.testing.assert_allclose(table['busbw'], BUSBW)
    np.testing.assert_allclose(table['time'], TIMES)
    assert table['busbw_in_place'].isna().all()


def test_what_the_log_says_besides_its_rows():
    table = read_nccl_tests(COMMAND + LOG)
    assert table.attrs == {'op': 'all_reduce', 'ranks': 4,
                           'average': 78.555e9, 'gpu': 'A100', 'wrong': 0,
                           'notes': ()}
    assert read_nccl_tests(ROWS).attrs == {
        'op': None, 'ranks': None, 'average': None, 'gpu': None, 'wrong': 0,
        'notes': ()}
    assert read_nccl_tests(CSV).attrs['op'] == 'all_reduce'
    assert read_nccl_tests(CSV).attrs['ranks'] == 4


@pytest.mark.parametrize(('line', 'op'), [
    ('# Collective test starting: sendrecv_perf', 'sendrecv'),
    ('# Collective test starting: all_gather_perf_mpi', 'all_gather'),
    ('./alltoall_perf -g 4', 'alltoall'),
    ('Linking all_reduce_perf\nLinking broadcast_perf', None),
    ('Linking all_reduce_perf\nLinking reduce_scatter_perf\n'
     '# Collective test starting: reduce_scatter_perf', 'reduce_scatter')])
def test_the_collective_is_that_of_the_program(line, op):
    assert read_nccl_tests(f'{line}\n{LOG}').attrs['op'] == op


@pytest.mark.parametrize('factor', [1, 7 / 8, 15 / 8])
def test_other_factors_of_busbw(factor):
    rows = [f'{size} {size // 4} float none 0 {time:.2f} '
            f'{size / time / 1e3:.2f} {size / time / 1e3 * factor:.2f} 0'
            for size, time in ((1 << 10, 9.0), (1 << 20, 51.3),
                               (1 << 30, 7654.32))]
    table = read_nccl_tests('\n'.join(rows))
    np.testing.assert_allclose(table['busbw'][1:] / table['algbw'][1:],
                               factor, rtol=1e-3)


def test_a_torn_last_row_is_left_out_and_said():
    for end in range(ROWS.rindex('float') + 6, len(ROWS.rstrip())):
        table = read_nccl_tests(ROWS[:end])
        assert table['size'].tolist() == SIZES[:3]
        assert table.attrs['notes'] == (
            'The last row (line 4) is cut off, and left out.',)


@pytest.mark.parametrize('log', [ROWS, OUT_ONLY, re.sub(OUT, r'\1\n', ROWS)],
                         ids=['both tables', 'one table', 'broken rows'])
def test_a_log_that_is_cut_anywhere_after_two_rows_shows_whole_rows(log):
    rows, lines = read_nccl_tests(log), log.splitlines(True)
    each = len(lines) // len(rows)  # a terminal may have broken them
    ends = [len(''.join(lines[:each * k])) - 1 for k in range(5)]
    for cut in range(ends[2], len(log)):
        many = sum(end <= cut for end in ends[1:])
        table = read_nccl_tests(log[:cut])
        assert table.equals(rows[:many]), log[:cut]
        assert table.attrs['wrong'] == 0
        assert len(table.attrs['notes']) == bool(log[ends[many]:cut].strip())


def test_a_row_that_is_cut_off_before_its_type_is_not_a_part_of_another():
    table = read_nccl_tests(ROWS + '  8589934592  214')
    assert table['size'].tolist() == SIZES
    assert table.attrs['notes'] == (
        'The last row (line 5) is cut off, and left out.',)


def test_rows_that_the_average_counts_and_the_text_lacks_are_said():
    table = read_nccl_tests(''.join(LOG.splitlines(True)[-5:]))
    assert len(table) == 2
    assert 'rows are missing' in table.attrs['notes'][0]


FAILED = "Test NCCL failure common.cu:958 'unhandled system error'"


@pytest.mark.parametrize(('changes', 'wrong'), [
    ({'39.32      0': '39.32     26'}, 1),
    ({'38.36      0': '38.36  1e+06'}, 1),
    ({'39.32      0': '39.32     26', '38.36      0': '38.36     26'}, 1),
    ({'39.32      0': '39.32     26', '124.89      0': '124.89      1'}, 2)])
@pytest.mark.parametrize('out', ['# Out of bounds values : 0 OK',
                                 '# Out of bounds values : 26 FAILED'])
def test_rows_with_wrong_results_are_counted_and_said(changes, wrong, out):
    log = LOG.replace('# Out of bounds values : 0 OK', out)
    for old, new in changes.items():
        assert old in log
        log = log.replace(old, new)
    for text in (log, log + ROWS, log + log):
        table = read_nccl_tests(text)
        assert table.attrs['wrong'] == wrong
        assert table.attrs['notes'] == (
            f'{wrong} row{"s have" if wrong > 1 else " has"} wrong results '
            '(#wrong): the sums are not right. Correct this before you look '
            'at the speed.',)


def test_wrong_results_without_columns_in_place():
    text = OUT_ONLY.replace('39.32      0', '39.32     26')
    assert read_nccl_tests(text).attrs['wrong'] == 1
    text = re.sub(r'(?<=\d)      0(?= +\d)', '', ROWS)  # none out of place
    assert read_nccl_tests(text).attrs['wrong'] == 0
    text = text.replace('38.36      0', '38.36      3')
    assert read_nccl_tests(text).attrs['wrong'] == 1


def test_wrong_results_that_only_the_last_lines_say():
    old = re.sub(r'(?m)(\d)( +)0( +\d.*) 0$', r'\1\g<2>2e-07\3 4e-02', ROWS)
    table = read_nccl_tests(old + '# Out of bounds values : 26 FAILED\n')
    assert table.attrs['wrong'] == 1
    assert 'The log says that 26 results are wrong' in table.attrs['notes'][0]


def test_a_run_that_failed_after_its_last_row_is_said():
    table = read_nccl_tests(f'{HEAD}{ROWS}gpu59: {FAILED}\n')
    assert len(table) == 4
    assert table.attrs['notes'] == (f'The run failed: "{FAILED}".',)


def test_few_digits_of_a_time_may_be_shown_with_a_power():
    table = read_nccl_tests('33554432 8388608 float sum -1 3.4e+02 100.16 '
                            '150.24 0')
    assert table['time'].tolist() == [3.4e-4]


def test_in_a_csv_file_times_may_be_missing():
    table = read_nccl_tests('size,time,algbw,busbw\n1073741824,,,47.5\n')
    assert table['busbw'].tolist() == [47.5e9]
    assert table[['time', 'algbw']].isna().all(None)


ONE_RANK = ('33554432 8388608 float none -1 19.56 1715.46 0.00 0 '
            '0.78 43018.50 0.00 N/A\n')
REFUSED = {
    'nothing': ('', 'text is empty'),
    'white space': ('\n \n', 'text is empty'),
    'a run that failed': (f'{HEAD}gpu59: {FAILED}\n .. gpu59 pid 9: Test '
                          'failure common.cu:842', f'no row .*"{FAILED}"'),
    'a run without memory': (
        "gpu59: Test CUDA failure common.cu:892 'out of memory'", 'no row .*'
        "failed, .Test CUDA failure common.cu:892 'out of memory'"),
    'another program that failed': (
        "NCCL failure all_reduce.cu:95 'unhandled cuda error'",
        "failed, .NCCL failure all_reduce.cu:95 'unhandled cuda error'"),
    'only the average': (TAIL, 'bandwidth" alone .*give the rows above it'),
    'a table of nvidia-smi topo -m': (
        '\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n',
        'what nvidia-smi topo -m prints'),
    'one rank': (ONE_RANK, 'busbw is 0 in all rows: with one rank .*-g 8'),
    'too small arrays': ('8 2 float sum -1 12.34 0.00 0.00 0',
                         'busbw is 0 in all rows: the arrays are too small'),
    'rates of 0, and times': (
        LOG.replace('26.21   39.32', ' 0.00    0.00'),
        'line 13 .*its algbw is 0, though its size and time are not'),
    'decimal commas': (ROWS.replace('.', ','), 'write 48.46 for 48,46'),
    'decimal commas in a CSV file': (
        CSV.replace(',', ';').replace('.', ','), 'write 48.46 for 48,46'),
    'commas between thousands': (
        LOG.replace('1048576 ', '1,048,576 ').replace(' 262144', ' 262,144'),
        'line 13 .*write .*1048576 for 1,048,576'),
    'no row': (HEAD, "no row of nccl-tests, such as '1048576  262144"),
    'a table of something else': ('ranks,busbw\n2,208\n3,20\n', 'no row'),
    'a table of something else, in four columns': (
        'ranks,low,high,mean\n2,208,210,209\n', 'no row'),
    'an algbw that is not size / time': (
        LOG.replace('83.89', '93.89'), 'line 14 .*not its size / time'),
    'a size that is not algbw * time': (
        LOG.replace('16777216 ', '16777219 '), 'line 14'),
    'a count that does not fit': (LOG.replace('4194304 ', '4194305 '),
                                  'line 14 .*times its count'),
    'another factor': (LOG.replace('125.83', '115.83'),
                       'line 14 contradicts the others: its busbw is not 1.5'),
    'another factor in place': (LOG.replace('124.89', '104.89'), 'line 14'),
    'a low busbw that changed places with the errors': (
        LOG.replace('    1048576 ', '1000 250 float sum -1 5.00 0.20 0 0.30 '
                    '5.00 0.20 0.30 0\n1048576 '),
        'line 13 .*its busbw has fewer decimals'),
    'a torn row within': (LOG.replace('  0    201.5   83.26  124.89', ''),
                          'line 14 .*it has 5 numbers, and others have 9'),
    'one row, and it is torn': ('1048576 262144 float sum -1 40.00 26.2',
                                'line 1 '),
    'one row, and it is torn in place': (
        '1048576 262144 float sum -1 40.00 26.21 39.32 0 41.00 25.5',
        'line 1 '),
    'a time alone is missing': ('1048576,,26.21,39.32\n', 'no row'),
    'a rate alone is missing': ('1048576,40,,39.32\n', 'no row'),
    'a part of a byte': ('8.5,,,39.3\n', 'no row'),
    'more bytes than fit anywhere': ('1e30,,,39.3\n', 'no row'),
    'two runs': (LOG + ROWS.replace(' 335 ', ' 330 ').replace(
        '100.16  150.24', '101.68  152.52'), 'lines 15 and 22 .*one run'),
    'two runs side by side': (re.sub('(?m)^(.+)$', r'\1 | \1', ROWS),
                              'line 1 has two rows'),
    'one row, and its busbw is torn': (
        '1048576 262144 float sum -1 40.00 26.21 39.3', 'line 1 '),
    'only rows of 0 bytes': ('0 0 float sum -1 6.36 0.00 0.00 0',
                             'no row of more than 0 bytes'),
    'a time of 0': ('1048576 262144 float sum -1 0.00 26.2 39.3', 'line 1 '),
    'too long': (LOG + ' ' * MOST_TEXT, 'characters'),
    'too many rows': ('8 2 float 9.0 0.00 0.00\n' * 2001, 'than 2,000 rows'),
}


@pytest.mark.parametrize('reason', REFUSED)
def test_rows_that_contradict_are_refused(reason):
    text, words = REFUSED[reason]
    with pytest.raises(ValueError, match=words) as error:
        read_nccl_tests(text)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('value', [None, 3, b'8 2 float', ['8 2'], '\ud800'])
def test_only_texts_are_read(value):
    with pytest.raises(ValueError, match='text must be'):
        read_nccl_tests(value)


@pytest.mark.parametrize('number', ['1e999', '1e-999', '9' * 400, '1e', '.'])
def test_numbers_that_no_float_holds(number):
    for text in (f'{number} 2 float 9.0 0.00 0.00',
                 f'8 {number} float 9.0 0.00 0.00',
                 f'8 2 float {number} 0.00 0.00',
                 f'8 2 float 9.0 0.00 {number}', f'8,{number},0,{number}'):
        try:
            table = read_nccl_tests(text)
        except ValueError:
            continue
        assert all(map(math.isfinite, table['busbw']))

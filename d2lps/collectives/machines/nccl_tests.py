"""Reads logs of nccl-tests, the usual measurement of collectives.

A row of its tables says the same thing twice: algbw is size / time, and busbw
is algbw times a factor, the same in all rows. So a row proves where its
columns are, and a row that was damaged contradicts itself.
"""
import math
import re
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from d2lps.checks import checked
from d2lps.collectives.machines.posts import kind_of, posted

if TYPE_CHECKING:
    import pandas as pd

MOST_TEXT = 1_000_000  # characters
MOST_ROWS = 2_000
EXAMPLE = ("'1048576  262144  float  sum  -1  57.9  18.11  31.69  0' (size, "
           'count, type, redop, root, time, algbw, busbw, #wrong) or '
           "'1048576,57.9,18.11,31.69' (bytes, us, GB/s, GB/s)")

# 32_768, 57.9 or 3.3554432e+07.
_NUMBER = r'(?:\d[\d_]*(?:\.\d+)?(?:e[+-]?\d{1,3})?|\.\d+)'
_TYPE = r'(?:u?int|float|bfloat|half|double|char|fp|f8|bf)\w*(?=\s|$)'
# size, count and type, after whatever stands before them in the line.
_ROW = re.compile(rf'(?<![\w.,])({_NUMBER})\s+({_NUMBER})\s+{_TYPE}', re.I)
# The first four columns of a CSV file: a number, and three of any content.
_CSV = re.compile(rf'^[^\w.]*({_NUMBER})\s*[,;]([^,;]*)[,;]([^,;]*)[,;]'
                  r'([^,;]*)(?:$|[,;])', re.I)
# A row that is cut off before or in its type.
_BEGUN = re.compile(rf'\s*{_NUMBER}(\s+{_NUMBER}(\s+[a-z]+)?)?\s*', re.I)
_OPS = ('all_reduce|all_gather|reduce_scatter|alltoallv?|all_to_all|sendrecv|'
        'broadcast|hypercube|reduce|gather|scatter')
# A count such as 262,144 before a type, and 48,46 between semicolons.
_COMMAS = re.compile(rf'\d,\d+\s+{_TYPE}|^[^\w.]*\d+;.*;\s*\d+,\d+\s*(;|$)',
                     re.I)
# The program that ran, in its own words, and in a command line.
_STARTED = re.compile(rf'Collective test starting: ({_OPS})_perf')
_PROGRAM = re.compile(rf'(?<![A-Za-z_])({_OPS})_perf')
_RANK = re.compile(r'(?<!\w)Rank\s+(\d+)\s.{0,200}?device\s+\d+', re.I)
_AVERAGE = re.compile(rf'Avg bus bandwidth\s*:\s*({_NUMBER})', re.I)
_WRONG = re.compile(r'Out of bounds values\s*:\s*(\d{1,12})\s+FAILED', re.I)
# "Test NCCL failure common.cu:958 'unhandled system error ...'"
_FAILED = re.compile(r'(?:Test )?(?:NCCL|CUDA|Test) failure .{1,150}')

_CUT = 'The last row (line {}) is cut off, and left out.'


class _Number(NamedTuple):
    """A number as printed, and how far its rounding may have moved it."""
    value: float
    half: float

    @property
    def low(self) -> float:
        return self.value - self.half

    @property
    def high(self) -> float:
        return self.value + self.half


class _Row(NamedTuple):
    """The content of a line; sizes in bytes, times in us, rates in GB/s."""
    line: int
    columns: int
    size: float
    width: float  # bytes of an element, or 0
    out: tuple[_Number, ...]  # time, algbw, busbw; () if they do not fit
    inside: tuple[_Number, ...]  # the same in place
    wrong: bool = False  # does it count wrong results?
    whole: bool = False  # are all columns there, out of place and in place?
    lines: int = 1  # how many it takes


class Log(dict[str, np.ndarray]):
    """The columns and `attrs` of `read_nccl_tests`, without pandas."""
    attrs: dict[str, Any]

    def table(self) -> 'pd.DataFrame':
        """The same as a table."""
        import pandas as pd
        table = pd.DataFrame(self)
        table.attrs |= self.attrs
        return table


def read_nccl_tests(text: str) -> 'pd.DataFrame':
    """The table in a log of nccl-tests, or in a CSV file of its columns.

    text: the log of one run, with whatever stands around it.

    Returns a row for each size, with the columns `size` (bytes), `time`
    (seconds), `algbw` and `busbw` (bytes/s; these three out of place), and
    `busbw_in_place` (bytes/s, nan where it is missing). In its `attrs`: `op`
    ('all_reduce', ... or None), `ranks` (how many the log lists, or None),
    `average` (its "Avg bus bandwidth", bytes/s, or None), `gpu` (the kind
    that it lists, a name of `rates.GPUS`, or None), `wrong` (in how many rows
    results are wrong; at least 1 if the log says that some are) and `notes`,
    a tuple of sentences about what was left out or is wrong.

    Raises ValueError for a text without rows, for a row that contradicts
    itself or the other rows (it says in which line), and where all rates are
    0.
    """
    return read_log(text).table()


@checked(text=partial(posted, most=MOST_TEXT, example='8  2  float'))
def read_log(text: str) -> Log:
    """The result of `read_nccl_tests`, as a `Log`."""
    lines = text.replace('|', ' ').splitlines()
    notes: list[str] = []
    rows = _whole(_rows(lines) or _no_row(text), lines, notes)
    _same_factor(rows)
    wrong = _wrong(rows, text, notes)
    rows = _different(rows)
    _not_all_zero(rows)
    log = Log({name: np.array(column) for name, column in {
        'size': [int(row.size) for row in rows],
        'time': [row.out[0].value / 1e6 for row in rows],
        'algbw': [row.out[1].value * 1e9 for row in rows],
        'busbw': [row.out[2].value * 1e9 for row in rows],
        'busbw_in_place': [row.inside[2].value * 1e9 if row.inside else
                           math.nan for row in rows]}.items()})
    average = _average(text)
    mean = np.nanmean([log['busbw'], log['busbw_in_place']])
    if average and abs(mean / average - 1) > 0.02:
        notes.append(f'The log says {average / 1e9:.4g} GB/s on average, and '
                     f'its rows have {mean / 1e9:.4g}: rows are missing.')
    if failed := _FAILED.search(text):
        notes.append(f'The run failed: "{failed[0].strip()}".')
    log.attrs = {'op': _op(text), 'ranks': _ranks(text), 'average': average,
                 'gpu': kind_of(text)[0], 'wrong': wrong,
                 'notes': tuple(notes)}
    return log


def _number(word):
    """A `_Number`; its value is nan for N/A and for an empty cell."""
    word = word.strip().replace('_', '')
    if not re.fullmatch(_NUMBER, word, re.I):
        return _Number(math.nan, 0)
    digits, _, power = word.lower().partition('e')
    decimals = len(digits.partition('.')[2]) - int(power or 0)
    value = float(word)
    return _Number(value, 0.51 * 10.0 ** min(-decimals, 300))


def _rows(lines):
    """Rows in the lines, good or bad: of a log, or of a CSV file."""
    logged, listed = [], []
    for k, line in enumerate(lines):
        matches = _ROW.search(line)
        if matches:
            if _ROW.search(line, matches.end()):
                raise ValueError(f'line {k + 1} has two rows side by side: '
                                 'give the log of one run')
            numbers = _after(line[matches.end():])
            row = _log_row(k + 1, *matches.groups(), numbers)
            # Did a terminal break the line? Then numbers are missing. If
            # none is, the next line is the start of a row that is cut off.
            whole = (row.columns >= logged[-1].columns if logged
                     else row.whole)
            following = ' '.join(lines[k + 1:k + 2])
            if not whole and _is_rest(following):
                row = _log_row(k + 1, *matches.groups(), numbers
                               + _after(following))._replace(lines=2)
            logged.append(row)
        elif _COMMAS.search(line):
            raise ValueError(f'line {k + 1} has numbers with commas: write '
                             '48.46 for 48,46 and 1048576 for 1,048,576')
        elif matches := _CSV.search(line):
            size, *out = map(_number, matches.groups())
            fits = _fits(size.value, out)
            listed.append(_Row(k + 1, 4, size.value, 0,
                               tuple(out) if fits else (), ()))
        if len(logged) + len(listed) > MOST_ROWS:
            raise ValueError(f'text has more than {MOST_ROWS:,} rows: give '
                             'the log of one run')
    return logged or (listed if any(row.out for row in listed) else [])


def _no_row(text):
    """Raise the ValueError that says why there are no rows."""
    failed = _FAILED.search(text)
    if failed:
        why = f': the run failed, "{failed[0].strip()}"'
    elif _AVERAGE.search(text):
        why = (': "Avg bus bandwidth" alone is a mean over all sizes, small '
               'ones, too; give the rows above it')
    elif re.search(r'GPU\d+\s+(X|NV\d+|SYS|NODE|P..)\s', text):
        why = '; it is what nvidia-smi topo -m prints'
    else:
        why = f', such as {EXAMPLE}'
    raise ValueError('text has no row of nccl-tests' + why)


def _wrong(rows, text, notes):
    """In how many rows results are wrong, and a note about it."""
    wrong = len({row.size for row in rows if row.wrong})
    said = _WRONG.search(text)
    if wrong:
        begin = (f'{wrong} rows have' if wrong > 1 else '1 row has')
        begin += ' wrong results (#wrong)'
    elif said:
        begin = (f'The log says that {said[1]} results are wrong (out of '
                 'bounds)')
        wrong = 1
    else:
        return 0
    notes.append(f'{begin}: the sums are not right. Correct this before you '
                 'look at the speed.')
    return wrong


def _not_all_zero(rows):
    """ValueError where no row says a rate."""
    if not rows:
        raise ValueError('text has no row of more than 0 bytes, such as '
                         + EXAMPLE)
    if not any(row.out[2].value for row in rows):
        raise ValueError('busbw is 0 in all rows: ' + (
            'with one rank there is nothing to send; were several GPUs given '
            '(-g 8)?' if any(row.out[1].value for row in rows) else
            'the arrays are too small; measure larger ones, too (-e 8G)'))


def _is_rest(line):
    """Is the line only numbers, the last maybe cut off: a part of a row?"""
    return all(re.fullmatch(r'N(/A?)?|[\d.][\d_.e+-]*', word, re.I)
               for word in line.split())


def _after(words):
    """The numbers after the type of a row, up to the first other word.

    The word right after the type, an operation such as sum, is left out.
    """
    numbers = []
    for k, word in enumerate(words.split()):
        if re.fullmatch('-?' + _NUMBER, word, re.I) or (
                word.upper() in ('N/A', 'NAN')):
            numbers.append(word)
        elif k:
            break
    return numbers


def _log_row(line, size, count, words):
    """A row of a log: the numbers after its type may begin with a root."""
    size, count = _number(size).value, _number(count).value
    width = size / count if count else 0
    for root in (1, 0):
        rest = words[root:]
        out = tuple(map(_number, rest[:3]))
        if _fits(size, out):
            break
    else:
        return _Row(line, len(words), size, width, (), ())
    rest = rest[3:]
    # Between the two tables there may be a column of errors: old versions
    # print how large they are (1e-07), newer ones how many (#wrong).
    for at in (1, 0):
        inside = tuple(map(_number, rest[at:at + 3]))
        if _fits(size, inside):
            wrong = any(_number(word).value >= 1
                        for word in rest[:at] + rest[at + 3:at + 4])
            return _Row(line, len(words), size, width, out, inside, wrong,
                        len(rest) > 2 + 2 * at)
    torn = len(rest) > 1  # an error alone belongs to the first table
    wrong = any(_number(word).value >= 1 for word in rest)
    return _Row(line, len(words), size, width, () if torn else out, (), wrong)


def _fits(size, numbers):
    """Are these a time, algbw and busbw of so many bytes?

    What is missing in a CSV file (nan) fits, but for busbw.
    """
    if len(numbers) < 3 or not size < 2 ** 60 or size % 1:
        return False
    time, algbw, busbw = numbers
    if not busbw.value < 1e9 or time.value <= 0:
        return False
    if math.isnan(time.value) or math.isnan(algbw.value):
        return math.isnan(time.value) and math.isnan(algbw.value)
    rate = size / 1e3  # bytes per us are MB/s
    return rate / time.high <= algbw.high and rate / time.low >= algbw.low


def _whole(rows, lines, notes):
    """The rows that are whole: the last one may be torn, others may not."""
    usual = max(row.columns for row in rows)
    widths = [row.width for row in rows if row.width]
    width = median(widths) if widths else 0
    after = lines[rows[-1].line - 1 + rows[-1].lines:]
    for row in rows:
        reason = ''
        if not row.out:
            reason = _misfit(lines[row.line - 1])
        elif row.columns < usual:
            reason = f'it has {row.columns} numbers, and others have {usual}'
        elif row.width and row.width != width:
            reason = (f'its size is {row.width:g} times its count; in other '
                      f'rows it is {width:g} times')
        elif row.width and any(busbw.value < 1000 and busbw.half > algbw.half
                               for _, algbw, busbw in filter(
                                   None, (row.out, row.inside))):
            # nccl-tests prints fewer decimals for large numbers only.
            reason = 'its busbw has fewer decimals than its algbw'
        last = row is rows[-1] and _is_rest(' '.join(after))
        if last and not reason and any(
                some[1].half != some[2].half for some in (
                    row.out, row.inside) if some) and row.width:
            reason = 'its busbw has fewer decimals than its algbw'
        if not reason:
            continue
        if last and len(rows) > 1:
            notes.append(_CUT.format(row.line))
            return rows[:-1]
        raise ValueError(f'the row in line {row.line} contradicts itself or '
                         f'is torn: {reason}; a row looks like {EXAMPLE}')
    if width and _BEGUN.fullmatch(' '.join(after)):
        notes.append(_CUT.format(len(lines)))
    return rows


def _misfit(line):
    """A reason why the numbers of a row do not fit each other."""
    if re.search(r'\s\d+,\d+(\s|$)', line):
        return 'its numbers have commas; write 48.46 for 48,46'
    if re.search(r'\s0\.00\s+0\.00(\s|$)', line):
        return 'its algbw is 0, though its size and time are not'
    return 'its algbw is not its size / time, or columns are missing'


def _same_factor(rows):
    """ValueError for a row whose busbw / algbw is not that of the others.

    Because of the roundings, each row leaves an interval for the factor.
    """
    left = [(row, busbw.low / algbw.high,
             busbw.high / algbw.low if algbw.low > 0 else math.inf)
            for row in rows for _, algbw, busbw in
            filter(None, (row.out, row.inside))
            if not math.isnan(algbw.value)]
    # The factor that most rows allow: where most intervals overlap.
    ends = sorted([(low, 0) for _, low, _ in left]
                  + [(high, 1) for _, _, high in left])
    inside = most = factor = 0
    for end, closes in ends:
        inside += -1 if closes else 1
        if inside > most:
            most, factor = inside, end
    for row, low, high in left:
        if not low <= factor <= high:
            raise ValueError(
                f'the row in line {row.line} contradicts the others: its '
                f'busbw is not {factor:.4g} times its algbw')


def _different(rows):
    """The rows without repetitions; ValueError for two of one size.

    Sizes that the ranks cannot share are rounded down to 0 in the logs; what
    a row of 0 bytes says is left out.
    """
    matches: dict[float, _Row] = {}
    for row in filter(lambda row: row.size, rows):
        first = matches.setdefault(row.size, row)
        if first.out[2] != row.out[2] or first.inside != row.inside:
            raise ValueError(
                f'lines {first.line} and {row.line} are both about '
                f'{row.size:.0f} bytes, and differ: give the log of one run '
                '(nccl-tests built without MPI=1 runs once per process)')
    return list(matches.values())


def _op(text):
    """The collective that was measured, or None if the text names several."""
    matches = {*_STARTED.findall(text)} or {*_PROGRAM.findall(text)} or {
        *re.findall(rf'^[# ]*({_OPS})\b', text, re.M)}
    return matches.pop() if len(matches) == 1 else None


def _ranks(text):
    listed = {int(number) for number in _RANK.findall(text)}
    said = {int(number) for number in re.findall(r'\branks=(\d{1,6})\b', text)}
    matches = {len(listed)} if listed else said
    return matches.pop() if len(matches) == 1 else None


def _average(text):
    matches = {float(number) * 1e9 for number in _AVERAGE.findall(text)}
    return matches.pop() if len(matches) == 1 else None

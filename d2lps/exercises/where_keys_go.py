"""Exercise: keys are cut and placed, so that no server has too much.

To chapters 9 and 10, notebooks/09-a-real-parameter-server.ipynb.
"""
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from reprlib import repr as short
from typing import TypeAlias

from d2lps.exercises.charts import draw_named, row_chart
from d2lps.exercises.checking import (SLOWER, Answer, Check, Differs, Picture,
                                      Wrong, in_time, returned, unchanged,
                                      whole_numbers)
from d2lps.explaining import brief

Pieces: TypeAlias = Sequence[Sequence[int]]  # (server, key, start, end)
# Elements of LeNet's parameters, keys 0 to 7: weights are even, biases odd.
LENET = [180, 20, 25_000, 50, 102_400, 128, 1_280, 10]
SECONDS = 1 * SLOWER  # of processor time, for both calls; right: 0.001


def run(answer: Answer, sizes: Sequence[int], n: int,
        twice: bool = False) -> Pieces:
    """The pieces; twice: they must be the same in a second call.

    Both calls are in one process. What differs from process to process, such
    as an order by the `hash` of texts, is not seen here.
    """
    mine = [*sizes]
    # A student who changes the sizes loses one part only.
    with unchanged(**{'sizes': mine} if twice else {}), in_time(
            SECONDS, lambda: f'no result after {SECONDS} s, the limit. The '
                             f'largest key has {max(sizes):,} elements.'):
        pieces = _plain(returned(answer, mine, n))
        again = _plain(returned(answer, [*sizes], n)) if twice else pieces
    if again != pieces:
        raise Wrong(f'two calls with the same sizes return {len(pieces)} and '
                    f'{len(again)} pieces, and they differ; the same pieces '
                    'are right.')
    return pieces


def _plain(pieces):
    """The pieces as lists of four whole numbers."""
    wanted = ('a list of (server, key, start, end), four whole numbers each, '
              'is right.')
    plain = whole_numbers(pieces, 2, wanted)
    if any(len(piece) != 4 for piece in plain):
        raise Wrong(f'you return {brief(pieces)}; {wanted}', anywhere=True)
    return plain


# The pieces, read in another way: if all is right then, a student hears it.
READINGS: dict[str, Callable] = {
    'The last number of each piece is 1 too small.':
        lambda server, key, start, last: (server, key, start, last + 1),
    'Your last number is how many elements a piece has; `end` is wanted.':
        lambda server, key, start, many: (server, key, start, start + many),
    'Server and key are interchanged.':
        lambda key, server, start, end: (server, key, start, end)}


def judge(wrong_of: Callable[..., str], pieces: Pieces, sizes: Sequence[int],
          n: int) -> None:
    """Raise what `wrong_of` says of the pieces, unless it is ''."""
    if wrong := wrong_of(pieces, sizes, n):
        lost = not_whole(pieces, sizes, n)
        raise Differs(  # '': other changes can be right by luck
            f'sizes = {short(sizes)}, n = {n}: {wrong}', pieces, '', known={
                (said,): said for said, read in READINGS.items() if lost
                and not not_whole([read(*piece) for piece in pieces], sizes,
                                  n)})


def not_whole(pieces: Pieces, sizes: Sequence[int], n: int) -> str:
    """Words about the first piece that does not fit its key, or about the
    first element that is not in exactly one piece; '' if all is right."""
    for piece in pieces:
        _, key, start, end = piece
        if not 0 <= key < len(sizes):
            return (f'{_text(piece)} is of key {key}; keys 0 to '
                    f'{len(sizes) - 1} are right')
        if not 0 <= start <= end <= sizes[key]:
            return (f'{_text(piece)} goes from {start:,} to {end:,}; key '
                    f'{key} goes from 0 to {sizes[key]:,}')
    for key, size in enumerate(sizes):
        reached, last = 0, None
        mine = [piece for piece in pieces
                if piece[1] == key and piece[2] < piece[3]]
        mine.sort(key=itemgetter(2, 3))
        for piece in [*mine, (0, key, size, size)]:
            if piece[2] < reached:
                return (f'element {piece[2]:,} of key {key} is in '
                        f'{_text(last)} and {_text(piece)}; one piece is '
                        'right')
            if piece[2] > reached:
                return (f'element {reached:,} of key {key} is in no piece; '
                        'one is right')
            reached, last = piece[3], piece
    return ''


def _text(piece):
    return '({}, {}, {}, {})'.format(*piece)


def share_of(sizes: Sequence[int], n: int) -> int:
    """The target: how many elements the fullest server may have."""
    return -(-sum(sizes) // n)


def load_of(pieces: Pieces, n: int) -> Counter[int]:
    """Elements on each server, also on servers that are not there."""
    load = Counter(dict.fromkeys(range(n), 0))
    for server, _, start, end in pieces:
        load[server] += max(0, end - start)
    return load


def _cuts(pieces):
    return len(pieces) - len({key for _, key, *_ in pieces})


def not_even(pieces: Pieces, sizes: Sequence[int], n: int) -> str:
    """Words about a server with more than its share, or ''."""
    load, share = load_of(pieces, n), share_of(sizes, n)
    if load.total() < sum(sizes):
        return not_whole(pieces, sizes, n)
    for piece in pieces:
        if not 0 <= piece[0] < n:
            least = min(range(n), key=load.__getitem__)
            return (f'{_text(piece)} is on server {piece[0]}; servers 0 to '
                    f'{n - 1} are right. A share, rounded up, is {share:,}; '
                    f'server {least} has {load[least]:,}')
    (worst, most), *_ = ranked = load.most_common()
    least, fewest = ranked[-1]
    return '' if most <= share else (
        f'server {worst} has {most:,} elements; at most {share:,} is right. '
        + (f'Server {least} has {fewest:,}.' if _cuts(pieces)
           else 'No key is cut.'))


def too_many(pieces: Pieces, sizes: Sequence[int], n: int) -> str:
    """Words about a piece more than a cut for each border needs, or ''.

    To cut nothing needs few pieces, too. So all elements must be there, and
    no server may have far more than its share.
    """
    load, most = load_of(pieces, n), len(sizes) + n - 1
    for piece in pieces:
        if piece[2] >= piece[3]:
            return (f'{_text(piece)} has no element; each piece with one or '
                    'more is right')
    if len(pieces) > most:
        return (f'you return {len(pieces)} pieces; at most keys + n - 1 = '
                f'{most} is right. Keys are cut {_cuts(pieces)} times')
    if max(load.values()) > share_of(sizes, n) + n + len(sizes) or (
            load.total() < sum(sizes)):
        return not_even(pieces, sizes, n)
    return ''


def picture(answer: Answer) -> Picture:
    """Elements on each server: by the chapter's rule, and by the answer."""
    from d2lps.kvstore.placement import place
    from d2lps.pictures.rows import legend_below
    from d2lps.pictures.style import CHUNK_COLORS
    n, share = 2, share_of(LENET, 2)
    rule = [(server, key, start, end) for key, size in enumerate(LENET)
            for server, start, end in place(key, size, n)]
    yours = run(answer, LENET, n)
    rows = [(f'{owner}: server {server}', server, pieces)
            for owner, pieces in (('the rule', rule), ('yours', yours))
            for server in range(n)]
    names = [name for name, *_ in rows]
    loads = [load_of(pieces, n)[server] for _, server, pieces in rows]
    title = (f'The fullest server: {max(loads[:n]):,} elements by the rule, '
             f'{max(loads[n:]):,} by yours, in {len(yours)} pieces. Dashed: '
             f'the share, {share:,}')
    ax = row_chart(names, max(loads) * 1.12, f'{title}. ' + '; '.join(
        f'{name}: {load:,}' for name, load in zip(names, loads)) + '.',
        height=3, title=title, xlabel='elements of LeNet, on two servers')
    ax.xaxis.set_major_formatter('{x:,.0f}')
    named: set[int] = set()
    for row, (_, server, pieces) in enumerate(rows):
        start = 0
        for owner, key, first, end in pieces:
            if owner == server and end > first:
                stop, label = start + end - first, f'key {key}'
                is_new = end - first >= 1000 and key not in named
                draw_named(ax, [(start, stop, row, label)],
                           CHUNK_COLORS[key], label * is_new)
                named.update({key} if is_new else ())
                start = stop
        ax.annotate(f'{loads[row]:,}', (start, row), (6, 0), va='center',
                    textcoords='offset points')
    ax.axvline(share, color='gray', linestyle='--', linewidth=1.5)
    legend_below(ax)
    return ax.figure


MANY = [(37 * key) % 101 for key in range(60)]
CHECKS = {
    'whole': Check(
        [{'sizes': LENET, 'n': 2}, {'sizes': LENET, 'n': 3},
         {'sizes': [7], 'n': 3}, {'sizes': [3, 0, 1], 'n': 2},
         {'sizes': MANY, 'n': 7}, {'sizes': [1_000_000_001, 3], 'n': 2}],
        partial(run, twice=True), partial(judge, not_whole),
        'each element of each key is in one piece.', case=''),
    'even': Check(
        [{'sizes': LENET, 'n': 2}, {'sizes': LENET, 'n': 3},
         {'sizes': [7], 'n': 3}, {'sizes': [2, 1], 'n': 5},
         {'sizes': MANY, 'n': 7}],
        run, partial(judge, not_even),
        'no server has more than its share: 64,534 of LeNet, on two.',
        case=''),
    'pieces': Check(
        [{'sizes': LENET, 'n': 2}, {'sizes': LENET, 'n': 3},
         {'sizes': [4, 4], 'n': 2}, {'sizes': [50, 0, 30], 'n': 2},
         {'sizes': MANY, 'n': 7}],
        run, partial(judge, too_many),
        'at most keys + n - 1 pieces, and no piece is empty.', case='')}

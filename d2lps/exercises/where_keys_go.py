"""Exercise: keys are cut and placed, so that no server has too much.

To chapters 9 and 10, notebooks/09-a-real-parameter-server.ipynb.
"""
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from functools import wraps
from operator import index
from reprlib import repr as short

from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding)
from d2lps.figures import describe

# Elements of LeNet's parameters, keys 0 to 7: weights are even, biases odd.
LENET = [180, 20, 25_000, 50, 102_400, 128, 1_280, 10]


def run(answer: Answer, sizes: Sequence[int], n: int) -> Notes:
    """The pieces, twice, and whether the list of sizes was left alone.

    Both calls are in one process. What differs from process to process, such
    as an order by the `hash` of texts, is not seen here.
    """
    from d2lps.kvstore.placement import place
    mine = [*sizes]
    with forbidding(place, _share), _few_lines():
        pieces = _plain(answer(mine, n))
        again = _plain(answer([*sizes], n))
    return {'pieces': pieces, 'same': pieces == again, 'sizes': mine,
            'again': len(again)}


@contextmanager
def _few_lines():
    """Raise `Wrong` in what runs inside, if it runs too many lines."""
    count = 0

    def look(frame, event, _):
        nonlocal count
        count += event == 'line'
        if count > MOST_LINES:
            raise Wrong(f'your program had run {MOST_LINES:,} lines, and was '
                        'not done. Does it go from element to element?')
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


def _plain(pieces):
    """The pieces as lists of four whole numbers."""
    if pieces is None:
        raise Wrong('your function returned nothing: is there a `return`?')
    try:
        found = [[index(number) for number in piece] for piece in pieces]
    except TypeError:
        raise Wrong(f'your function returned {short(pieces)}. A list of '
                    '(server, key, start, end) is wanted, four whole numbers '
                    'for each piece.') from None
    for piece in found:
        if len(piece) != 4:
            raise Wrong(f'your list has the piece {short(piece)}. Four whole '
                        'numbers are wanted: (server, key, start, end).')
    return found


def _piece(piece):
    """A piece as students write it."""
    return f'({", ".join(map(str, piece))})'


def _explained(judge):
    """The same judge; its messages say the sizes, and what grew."""
    @wraps(judge)
    def judged(found, sizes, n):
        try:
            judge(found, sizes, n)
        except Wrong as error:
            grew = ''
            if found.get('again', 0) > len(found['pieces']):
                grew = (f' Called again, it returns {found["again"]} pieces '
                        f'after {len(found["pieces"])}: does something stay '
                        'from call to call?')
            raise Wrong(f'{error}{grew} (sizes = {short(sizes)})') from None
    return judged


@_explained
def judge_whole(found: Notes, sizes: Sequence[int], n: int) -> None:
    """Is each element of each key in one piece?"""
    for piece in found['pieces']:
        server, key, start, end = piece
        if not 0 <= key < len(sizes):
            why = 'Which comes first, server or key?'
            if _keys_from_1(found['pieces'], sizes):
                why = 'Keys are counted from 0.'
            raise Wrong(f'the piece {_piece(piece)} is of key {key}, but '
                        f'keys are 0 to {len(sizes) - 1}. {why}')
        if start > end:
            why = ('The last two numbers are the first element, and the end '
                   'of the piece.')
            if end < 0:
                why = 'Did a server get more than it had room for?'
            raise Wrong(f'the piece {_piece(piece)} ends before it starts. '
                        f'{why}')
        if start < 0 or end > sizes[key]:
            why = 'Does a piece end where its key ends?'
            if server >= n > key:
                why = 'Which comes first, server or key?'
            elif _keys_from_1(found['pieces'], sizes):
                why = 'Keys are counted from 0, too.'
            elif 0 < sum(sizes[:key]) <= start:
                why = 'The elements of each key are counted from 0.'
            raise Wrong(f'the piece {_piece(piece)} goes from {start} to '
                        f'{end}, but the size of key {key} is '
                        f'{sizes[key]:,}. {why}')
    of_key: list[list] = [[] for _ in sizes]
    for piece in found['pieces']:
        of_key[piece[1]].append(piece)
    for key, pieces in enumerate(of_key):
        if not pieces and sizes[key]:
            why = _only_the_first(found['pieces'], sizes)
            raise Wrong(f'{_lost(key, 0, sizes[key])}.{why}')
        _judge_key(key, sizes[key], pieces)
    if found['sizes'] != sizes:
        raise Wrong('your function has changed the list of sizes. The caller '
                    'still needs it.')
    if not found['same']:
        raise Wrong('called twice with the same sizes, it returns different '
                    'pieces. Two workers would look for an element on two '
                    'servers.')


def _keys_from_1(pieces, sizes):
    """Would the pieces fit, were they all of the key before?"""
    return all(0 < piece[1] <= len(sizes)
               and piece[3] <= sizes[piece[1] - 1] for piece in pieces)


def _only_the_first(pieces, sizes):
    """A question, if the first key alone is there, and is whole."""
    full = [key for key, size in enumerate(sizes) if size]
    there = sum(end - start for _, _, start, end in pieces)
    if ({piece[1] for piece in pieces} == {*full[:1]} and len(full) > 1
            and there == sizes[full[0]]):
        return ' Is `return` inside the loop?'
    return ''


def _judge_key(key, size, pieces):
    """The first element that is lost, or is there twice."""
    reached, before = 0, None
    for piece in sorted(pieces, key=lambda piece: piece[2:]):
        _, _, start, end = piece
        if start == end:
            continue  # an empty piece; another check counts it
        if start > reached:
            raise Wrong(f'{_lost(key, reached, size)} before the piece '
                        f'{_piece(piece)}. Is the element `end` in your '
                        'piece? It should not be.')
        if start < reached:
            raise Wrong(f'of key {key}, element {start:,} is in two pieces, '
                        f'{_piece(before)} and {_piece(piece)}. Both servers '
                        'would update it.')
        reached, before = end, piece
    if reached < size:
        last = f', after the piece {_piece(before)}' if before else ''
        why = ''
        if before and 0 < before[2] == size - before[3]:
            why = (' Is the last number where the piece ends, or how many '
                   'elements it has?')
        elif before and reached == size - 1:
            why = ' Is the element `end` in your piece? It should not be.'
        raise Wrong(f'{_lost(key, reached, size)}{last}.{why}')


def _lost(key, element, size):
    return f'of key {key}, element {element:,} of {size:,} is in no piece'


def _share(sizes, n):
    """The target: how many elements the fullest server may have."""
    return -(-sum(sizes) // n)


def load_of(pieces: Sequence[Sequence[int]], n: int,
            share: int = 0) -> list[int]:
    """How many elements each server has; raises `Wrong` if there is none."""
    load = [0] * n
    for piece in pieces:
        if not 0 <= piece[0] < n:
            raise Wrong(f'the piece {_piece(piece)} is on server {piece[0]}, '
                        'but servers are 0 to '
                        f'{n - 1}.{_not_full(pieces, n, share)}')
        load[piece[0]] += max(0, piece[3] - piece[2])
    return load


def _not_full(pieces, n, share):
    """Which server has less than its share, in words."""
    for server in range(n):
        has = sum(end - start for owner, _, start, end in pieces
                  if owner == server)
        if 0 <= has < share:
            return (f' Server {server} has {has:,}, and a share, rounded up, '
                    f'is {share:,}.')
    return ''


def _all_are_there(pieces, sizes):
    """Nothing at all is placed very evenly, too."""
    there = sum(max(0, end - start) for _, _, start, end in pieces)
    if there < sum(sizes):
        why = _only_the_first(pieces, sizes)
        if there + len(pieces) == sum(sizes):
            why = ' Is the element `end` in your piece? It should not be.'
        raise Wrong(f'only {there:,} of {sum(sizes):,} elements are in a '
                    f'piece. This check needs all of them.{why}')


@_explained
def judge_even(found: Notes, sizes: Sequence[int], n: int) -> None:
    """Has no server more than its share?"""
    share = _share(sizes, n)
    load = load_of(found['pieces'], n, share)
    _all_are_there(found['pieces'], sizes)
    worst = max(load)
    if worst > share:
        server, text = load.index(worst), ''
        of_key: dict[int, int] = {}
        for owner, key, start, end in found['pieces']:
            if owner == server:
                of_key[key] = of_key.get(key, 0) + end - start
        key = max(of_key, key=of_key.__getitem__)
        if load.count(0) and n <= sum(sizes):
            text = f' Server {load.index(0)} has none.'
        elif sum(sizes) % n == 0 and worst == share + 1:
            text = (' The number of servers divides them: why does one '
                    'server get one more?')
        elif worst - share < n + len(sizes) and sum(sizes) % n:
            text = (' That is close. Which server gets what is left when the '
                    'elements are divided?')
        raise Wrong(
            f'server {server} has {worst:,} of {sum(sizes):,} elements, '
            f'{of_key[key]:,} of them from key {key}. A share for each of '
            f'{n}, rounded up, is {share:,}.{text}')


@_explained
def judge_pieces(found: Notes, sizes: Sequence[int], n: int) -> None:
    """Are there no more pieces than a cut for each border needs?

    To cut nothing needs few pieces, too. So it counts if all elements are
    there, and if no server has far more than its share: whether one has a few
    more is for the other check.
    """
    pieces = found['pieces']
    _all_are_there(pieces, sizes)
    for piece in pieces:
        if piece[2] >= piece[3]:
            raise Wrong(f'the piece {_piece(piece)} has no element. It would '
                        'be an unnecessary message.')
    most = len(sizes) + n - 1
    if len(pieces) > most:
        of_key = [piece[1] for piece in pieces]
        often = max(of_key, key=of_key.count)
        raise Wrong(f'there are {len(pieces)} pieces, and keys + n - 1 = '
                    f'{most} are enough. {of_key.count(often)} are of key '
                    f'{often}. How many cuts do {n} servers need?')
    share = _share(sizes, n)
    load: dict[int, int] = {}
    for server, _, start, end in pieces:
        load[server] = load.get(server, 0) + end - start
    worst = max(load, key=load.__getitem__)
    if load[worst] > share + n + len(sizes):
        raise Wrong(f'server {worst} has {load[worst]:,} elements, and a '
                    f'share is {share:,}. This check needs servers without '
                    'far more than a share.')


def picture(answer: Answer) -> Picture:
    """What lies on each server: by the chapter's rule, and by the answer."""
    from d2lps.kvstore.placement import place
    from d2lps.pictures.rows import (WIDE, draw_bars, legend_below, name_bar,
                                     new_figure, row_axes)
    from d2lps.pictures.style import CHUNK_COLORS
    n = 2
    rule = [[server, key, start, end] for key, size in enumerate(LENET)
            for server, start, end in place(key, size, n)]
    yours = run(answer, LENET, n)['pieces']
    load, share = load_of(yours, n), _share(LENET, n)
    rows = [('the rule', server, rule) for server in range(n)]
    rows += [('yours', server, yours) for server in range(n)]
    loads = load_of(rule, n) + load
    told = (f'The fullest server: {max(loads[:n]):,} elements by the rule, '
            f'{max(load):,} by yours, in {len(yours)} pieces')
    figure = new_figure(WIDE, 3)
    ax = row_axes([f'{who}: server {server}' for who, server, _ in rows],
                  max(loads) * 1.12, ax=figure.subplots(),
                  title=f'{told}. Dashed: the share, {share:,}',
                  xlabel='elements of LeNet, on two servers')
    ax.xaxis.set_major_formatter('{x:,.0f}')
    describe(ax, f'{told}. {_words(rows, loads)}')
    named = set()
    for row, (_, server, pieces) in enumerate(rows):
        start = 0
        for owner, key, first, end in pieces:
            if owner == server and end > first:
                end, words = start + end - first, f'key {key}'
                color = CHUNK_COLORS[key % len(CHUNK_COLORS)]
                is_new = LENET[key] >= 1000 and key not in named
                draw_bars(ax, [(start, end, row)], color, words * is_new)
                name_bar(ax, start, end, row, words, color)
                named.add(key)
                start = end
        ax.annotate(f'{loads[row]:,}', (start, row), (6, 0), va='center',
                    textcoords='offset points')
    ax.axvline(share, color='gray', linestyle='--', linewidth=1.5)
    legend_below(ax)
    return figure


def _words(rows, loads):
    return '; '.join(f'{who}, server {server}: {load:,}' for
                     (who, server, _), load in zip(rows, loads)) + '.'


MOST_LINES = 2_000_000  # executed in both calls; right answers need few
MANY = [(37 * key) % 101 for key in range(60)]
CHECKS = {
    'whole': Check(
        [{'sizes': LENET, 'n': 2}, {'sizes': LENET, 'n': 3},
         {'sizes': [7], 'n': 3}, {'sizes': [3, 0, 1], 'n': 2},
         {'sizes': MANY, 'n': 7}, {'sizes': [1_000_001, 3], 'n': 2}],
        run, judge_whole, 'each element of each key is in one piece.'),
    'even': Check(
        [{'sizes': LENET, 'n': 2}, {'sizes': LENET, 'n': 3},
         {'sizes': [7], 'n': 3}, {'sizes': [2, 1], 'n': 5},
         {'sizes': MANY, 'n': 7}],
        run, judge_even,
        'no server has more than its share: 64,534 of LeNet, on two.'),
    'pieces': Check(
        [{'sizes': LENET, 'n': 2}, {'sizes': LENET, 'n': 3},
         {'sizes': [4, 4], 'n': 2}, {'sizes': [50, 0, 30], 'n': 2},
         {'sizes': MANY, 'n': 7}],
        run, judge_pieces, 'at most keys + n - 1 pieces, and no piece is '
                           'empty.')}

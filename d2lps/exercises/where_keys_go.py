"""Exercise: keys are cut and placed, so that no server has too much.

To chapters 9 and 10, notebooks/09-a-real-parameter-server.ipynb.
"""
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from operator import index
from reprlib import repr as short
from typing import TypeAlias

from d2lps.checks import shown
from d2lps.exercises.checking import (SLOWER, Answer, Check, Notes, Picture,
                                      Wrong, forbidding, in_time)
from d2lps.figures import describe

Pieces: TypeAlias = Sequence[Sequence[int]]  # (server, key, start, end)
# Elements of LeNet's parameters, keys 0 to 7: weights are even, biases odd.
LENET = [180, 20, 25_000, 50, 102_400, 128, 1_280, 10]
SECONDS = 1 * SLOWER  # of processor time, for both calls; right: 0.001


def run(answer: Answer, sizes: Sequence[int], n: int) -> Notes:
    """The pieces of two calls, and the list of sizes after them.

    Both calls are in one process. What differs from process to process, such
    as an order by the `hash` of texts, is not seen here.
    """
    from d2lps.kvstore.placement import place
    mine = [*sizes]
    with forbidding(place, share_of), in_time(SECONDS, lambda: (
            f'your function was not done after {SECONDS} s. The largest key '
            f'has {max(sizes):,} elements, so a loop over single elements '
            'takes too long.')):
        return {'pieces': _plain(answer(mine, n)),
                'again': _plain(answer([*sizes], n)), 'sizes': mine}


def _plain(pieces):
    """The pieces as lists of four whole numbers."""
    try:
        found = [[index(number) for number in piece] for piece in pieces]
    except TypeError:
        found = [[]]
    if any(len(piece) != 4 for piece in found):
        raise Wrong(f'your function returned {shown(pieces)}. A list of '
                    '(server, key, start, end) is wanted, four whole numbers '
                    'for each piece.')
    return found


def judge(wrong_of: Callable[..., str], notes: Notes, sizes: Sequence[int],
          n: int) -> None:
    """Raise what `wrong_of` says of the pieces, unless it is ''."""
    said, more = wrong_of(notes, sizes, n), len(notes['again'])
    if said and more > len(notes['pieces']):
        said += (f' Called again, your function returns {more} pieces in '
                 f'place of {len(notes["pieces"])}: some stay from call to '
                 'call.')
    if said:
        raise Wrong(f'{said} (sizes = {short(sizes)})')


def not_whole(notes: Notes, sizes: Sequence[int], n: int) -> str:
    """Is each element of each key in one piece?"""
    said = _wrong_element(notes['pieces'], sizes)
    if said:
        return said + _hint(notes['pieces'], sizes)
    if notes['sizes'] != sizes:
        return ('your function has changed the list of sizes. The caller '
                'still needs it.')
    return '' if notes['again'] == notes['pieces'] else (
        'called twice with the same sizes, it returns different pieces. Two '
        'workers would look for an element on two servers.')


def _wrong_element(pieces, sizes):
    """What is wrong with the first piece that does not fit its key, or with
    the first element that is not in exactly one piece; '' if all is right."""
    for piece in pieces:
        _, key, start, end = piece
        if not 0 <= key < len(sizes):
            return (f'the piece {_words(piece)} is of key {key}, but keys are '
                    f'0 to {len(sizes) - 1}.')
        if not 0 <= start <= end <= sizes[key]:
            return (f'the piece {_words(piece)} goes from {start:,} to '
                    f'{end:,}, but key {key} goes from 0 to {sizes[key]:,}.')
    for key, size in enumerate(sizes):
        reached, last = 0, None
        mine = [piece for piece in pieces
                if piece[1] == key and piece[2] < piece[3]]
        mine.sort(key=lambda piece: piece[2:])
        for piece in [*mine, (0, key, size, size)]:
            element = (f'of key {key}, element {min(piece[2], reached):,} of '
                       f'{size:,}')
            if piece[2] < reached:
                return (f'{element} is in two pieces, {_words(last)} and '
                        f'{_words(piece)}. Both servers would update it.')
            if piece[2] > reached:
                return f'{element} is in no piece.' + (
                    f' The piece before it is {_words(last)}.' if last else '')
            reached, last = piece[3], piece
    return ''


def _words(piece):
    return '(server {}, key {}, {}, {})'.format(*piece)


# The pieces, read in another way: if all is right then, a student hears it.
READINGS: dict[str, Callable] = {
    'if `end` were the last element of a piece':
        lambda server, key, start, last: (server, key, start, last + 1),
    'if the last number were how many elements a piece has':
        lambda server, key, start, many: (server, key, start, start + many)}


def _hint(pieces, sizes):
    for words, read in READINGS.items():
        if not _wrong_element([read(*piece) for piece in pieces], sizes):
            return f' Your pieces would be right {words}.'
    return ''


def share_of(sizes: Sequence[int], n: int) -> int:
    """The target: how many elements the fullest server may have."""
    return -(-sum(sizes) // n)


def load_of(pieces: Pieces, n: int) -> Counter[int]:
    """How many elements each server has; also those that are not there."""
    load = Counter(dict.fromkeys(range(n), 0))
    for server, _, start, end in pieces:
        load[server] += max(0, end - start)
    return load


def _not_all(pieces, sizes):
    """Nothing at all is placed very evenly, too."""
    there = sum(load_of(pieces, 0).values())
    return '' if there >= sum(sizes) else (
        f'only {there:,} of {sum(sizes):,} elements are in a piece. This '
        f'check needs all of them: {_wrong_element(pieces, sizes)}'
        f'{_hint(pieces, sizes)}')


def not_even(notes: Notes, sizes: Sequence[int], n: int) -> str:
    """Has no server more than its share?"""
    pieces, share = notes['pieces'], share_of(sizes, n)
    load, of_key = load_of(pieces, n), Counter[int]()
    least = min(range(n), key=load.__getitem__)
    worst = max(load, key=load.__getitem__)
    target = (f'A share, rounded up, is {share:,}, and server {least} has '
              f'{load[least]:,}.')
    for piece in pieces:
        server, key, start, end = piece
        of_key[key] += (end - start) * (server == worst)
        if not 0 <= server < n:
            return (f'the piece {_words(piece)} is on server {server}, but '
                    f'servers are 0 to {n - 1}. {target}')
    said = _not_all(pieces, sizes)
    if said or load[worst] <= share:
        return said
    [(key, most)] = of_key.most_common(1)
    return (f'server {worst} has {load[worst]:,} of {sum(sizes):,} elements, '
            f'{most:,} of them from key {key}. {target}')


def too_many(notes: Notes, sizes: Sequence[int], n: int) -> str:
    """Are there no more pieces than a cut for each border needs?

    To cut nothing needs few pieces, too. So all elements must be there, and
    no server may have far more than its share.
    """
    pieces, most = notes['pieces'], len(sizes) + n - 1
    for piece in pieces:
        if piece[2] >= piece[3]:
            return (f'the piece {_words(piece)} has no element. It would be '
                    'an unnecessary message.')
    said = _not_all(pieces, sizes)
    if said:
        return said
    if len(pieces) > most:
        of_key = Counter(piece[1] for piece in pieces)
        [(key, often)] = of_key.most_common(1)
        return (f'there are {len(pieces)} pieces, and keys + n - 1 = {most} '
                f'are enough. The servers need n - 1 = {n - 1} cuts, and your '
                f'pieces have {len(pieces) - len(of_key)}. Key {key} alone '
                f'is in {often} pieces.')
    load, share = load_of(pieces, n), share_of(sizes, n)
    worst = max(load, key=load.__getitem__)
    return '' if load[worst] <= share + n + len(sizes) else (
        f'server {worst} has {load[worst]:,} elements, and a share is '
        f'{share:,}. This check needs servers without far more than a share.')


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
    share = share_of(LENET, n)
    rows = [('the rule', server, rule) for server in range(n)]
    rows += [('yours', server, yours) for server in range(n)]
    loads = [load_of(pieces, n)[server] for _, server, pieces in rows]
    told = (f'The fullest server: {max(loads[:n]):,} elements by the rule, '
            f'{max(loads[n:]):,} by yours, in {len(yours)} pieces')
    figure = new_figure(WIDE, 3)
    ax = row_axes([f'{who}: server {server}' for who, server, _ in rows],
                  max(loads) * 1.12, ax=figure.subplots(),
                  title=f'{told}. Dashed: the share, {share:,}',
                  xlabel='elements of LeNet, on two servers')
    ax.xaxis.set_major_formatter('{x:,.0f}')
    words = '; '.join(f'{who}, server {server}: {load:,}' for
                      (who, server, _), load in zip(rows, loads))
    describe(ax, f'{told}. {words}.')
    named: set[int] = set()
    for row, (_, server, pieces) in enumerate(rows):
        start = 0
        for owner, key, first, end in pieces:
            if owner == server and end > first:
                is_new = end - first >= 1000 and key not in named
                end, words = start + end - first, f'key {key}'
                color = CHUNK_COLORS[key % len(CHUNK_COLORS)]
                draw_bars(ax, [(start, end, row)], color, words * is_new)
                name_bar(ax, start, end, row, words, color)
                named.update({key} if is_new else ())
                start = end
        ax.annotate(f'{loads[row]:,}', (start, row), (6, 0), va='center',
                    textcoords='offset points')
    ax.axvline(share, color='gray', linestyle='--', linewidth=1.5)
    legend_below(ax)
    return figure


MANY = [(37 * key) % 101 for key in range(60)]
CHECKS = {
    'whole': Check(
        [{'sizes': LENET, 'n': 2}, {'sizes': LENET, 'n': 3},
         {'sizes': [7], 'n': 3}, {'sizes': [3, 0, 1], 'n': 2},
         {'sizes': MANY, 'n': 7}, {'sizes': [1_000_000_001, 3], 'n': 2}],
        run, partial(judge, not_whole),
        'each element of each key is in one piece.'),
    'even': Check(
        [{'sizes': LENET, 'n': 2}, {'sizes': LENET, 'n': 3},
         {'sizes': [7], 'n': 3}, {'sizes': [2, 1], 'n': 5},
         {'sizes': MANY, 'n': 7}],
        run, partial(judge, not_even),
        'no server has more than its share: 64,534 of LeNet, on two.'),
    'pieces': Check(
        [{'sizes': LENET, 'n': 2}, {'sizes': LENET, 'n': 3},
         {'sizes': [4, 4], 'n': 2}, {'sizes': [50, 0, 30], 'n': 2},
         {'sizes': MANY, 'n': 7}],
        run, partial(judge, too_many),
        'at most keys + n - 1 pieces, and no piece is empty.')}

"""Are these machines healthy? Their owners posted a table and a number.

To chapter 21, notebooks/21-your-own-server.ipynb. The student's functions do
the arithmetic, and judge. Wirings are those of known machines; what was
measured is made up, near what such machines showed. Calls of the
package's `expected` are found in the student's own thread only, and nothing
keeps a student from copying its source.
"""
from collections.abc import Callable, Sequence
from math import isclose
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np

from d2lps.collectives.machines import examples, expectation
from d2lps.collectives.machines.expectation import Expectation
from d2lps.collectives.machines.rates import GBIT
from d2lps.collectives.machines.server import Server
from d2lps.collectives.topology import from_nvidia_smi
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, functions_of, scalar)
from d2lps.figures import describe

NEAR = 0.03  # how far a bound may be away
SCATTER = 1.15  # measurements of one machine differ by less than this
MOST_RATE = 1e15  # GB/s: no answer in a wrong unit is as large
REASONS = {
    'links': 'the links that all data must cross are this fast',
    'NVLS': 'the switches add, so GPUs send fewer bytes than in a ring',
    'fewer bytes': 'the cards carry less, but fewer bytes go between '
                   'machines than in a ring',
    'one slot': 'all cards of a machine send through the PCIe slot of its GPU',
    'CPU': 'no ring of NVLinks: data go through a CPU, and the rate is '
           'unknown',
    'no NVLS': 'a ring is as fast as this: the switches do not add',
    'PCIe': 'data go over PCIe, although there are NVLinks',
    'no direct way': 'data go through host memory, from GPU to card',
    'Gbit/s': 'the owner wrote Gbit/s, and called it GB/s'}
WORDS = 'healthy', 'below', 'above'


class Post(NamedTuple):
    """What an owner says of a machine.

    table: what `nvidia-smi topo -m` printed. gpu: which GPU it is.
    use: the numbers of the GPUs that take part, in each machine.
    machines: how many. cards: network cards of each machine. gbit: Gbit/s of
    a card by its data sheet. measured: bus bandwidth for 1 GiB, in GB/s.
    """
    table: str
    gpu: str
    use: list[int]
    machines: int = 1
    cards: int = 0
    gbit: float = 0.0
    measured: float = 0.0

    def server(self, rates: str = 'usable') -> Server:
        """One of the machines, with the GPUs that take part."""
        return from_nvidia_smi(self.table, self.gpu, self.use, rates)


def post_of(post: str, wiring: str, gpu: str, measured: float,
            use: Sequence[int] = range(8), nvlinks: int = 0,
            machines: int = 1, cards: int = 0, gbit: float = 0) -> Post:
    """The `Post` of a case. wiring, nvlinks: see `examples.posted`."""
    table = examples.posted(wiring, 4 if wiring == 'all joined' else 8,
                            nvlinks)
    return Post(table, gpu, [*use], machines, cards, gbit, measured)


def _expected(post: Post, rates: str = 'usable') -> Expectation:
    if post.machines == 1:
        return expectation.expected(post.server(rates))
    return expectation.expected(
        post.server(rates), machines=post.machines, cards=post.cards,
        card_rate=post.gbit * GBIT)


def _bounds(post: Post, rates: str = 'usable') -> list[float] | None:
    """The rates of `expected`, in GB/s, without what machines vary by.

    None where no ring runs over NVLinks.
    """
    found = _expected(post, rates)
    if not found.predictable:
        return None
    low = found.best if post.machines == 1 else found.ring
    return [low / 1e9, found.best / 1e9]


def _verdict(post: Post) -> tuple[str, str]:
    """The right word and reason."""
    found, bounds = _expected(post), _bounds(post)
    word = str(found.verdict(post.measured * 1e9).word)
    if bounds is None:
        return word, 'CPU'
    if word == 'above':
        return word, 'Gbit/s'
    if word == 'below' and post.machines > 1:
        return word, 'no direct way'
    if word == 'below':
        ring = post.measured > expectation.OF_RING[0] * found.ring / 1e9
        return word, 'no NVLS' if ring else 'PCIe'
    if found.wire is None:
        return word, 'NVLS' if found.best > found.ring else 'links'
    if post.measured > SCATTER * found.wire / 1e9:
        return word, 'fewer bytes'
    return word, 'one slot' if found.slots_limit else 'links'


_OURS: list[Callable[..., Any]] = [
    *functions_of(expectation), _expected, _bounds, _verdict]


def run_bounds(answer: Answer, **case: Any) -> Notes:
    with forbidding(*_OURS):
        found = answer(post_of(**case))
    if found is None:
        return None
    try:
        if not isinstance(found, (tuple, list, np.ndarray)):
            raise TypeError  # of a text, each letter would be a number
        low, high = (float(scalar(end)) for end in found)
        if not max(abs(low), abs(high)) < MOST_RATE or high != high:
            raise ValueError  # infinite, or not a number
    except (TypeError, ValueError, OverflowError):
        raise Wrong(f'your function returned {short(found)}. Two numbers are '
                    'wanted, in GB/s, or None.') from None
    return [low, high]


def judge_bounds(found: Notes, **case: Any) -> None:
    post = post_of(**case)
    right, why = _bounds(post), _expected(post).why
    if found is None or right is None:
        if found != right:
            raise Wrong(f'you return {_in_words(found)}; {_in_words(right)} '
                        f'is right. {why}')
        return
    sheets = _bounds(post, 'nominal') or right
    for name, mine, true, sheet in zip(('low', 'high'), found, right, sheets):
        if isclose(mine, true, rel_tol=NEAR):
            continue
        text = f'{name} is {mine:.4g} GB/s in your answer, and should be '
        text += f'{true:.4g}. '
        if isclose(mine, sheet, rel_tol=NEAR):
            text += 'Yours is what data sheets promise. '
        elif mine > 0:
            text += f'Yours is {mine / true:.3g} times as much. '
        raise Wrong(text + why)


def _in_words(bounds):
    if bounds is None:
        return 'None'
    low, high = map('{:.4g}'.format, bounds)
    return f'{low} GB/s' if low == high else f'from {low} to {high} GB/s'


def run_verdict(answer: Answer, **case: Any) -> Notes:
    post = post_of(**case)
    bounds = _bounds(post)
    with forbidding(*_OURS):
        found = answer(post, bounds and tuple(bounds))
    if (not isinstance(found, (tuple, list)) or len(found) != 2
            or not all(isinstance(word, str) for word in found)
            or found[0] not in WORDS or found[1] not in REASONS):
        raise Wrong(f'your function returned {short(found)}. A word and a '
                    f'reason are wanted: one of {", ".join(WORDS)}, and one '
                    f'of {", ".join(REASONS)}.')
    return [*map(str, found)]


def judge_verdict(found: Notes, **case: Any) -> None:
    post, (word, reason) = post_of(**case), found
    right, why = _verdict(post)
    said = _expected(post).verdict(post.measured * 1e9).why
    if word != right:
        raise Wrong(f'you say {word}; it is {right}. Expected is '
                    f'{_in_words(_bounds(post))}. {said}')
    if reason != why:
        more = f' {_expected(post).why}' if word == 'healthy' else ''
        raise Wrong(f'{word} is right, but your reason is {reason}: '
                    f'{REASONS[reason]}. {said}{more}')


def picture(bounds: Answer, verdict: Answer) -> Picture:
    """The student's ranges and words beside what was measured."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, draw_bars, new_figure, row_axes
    ranges = [run_bounds(bounds, **case) for case in POSTS]
    said = []
    for case in POSTS:
        try:
            said.append(', '.join(run_verdict(verdict, **case)))
        except NotImplementedError:  # there is no second function yet
            said.append('')
    measured = [case['measured'] for case in POSTS]
    most = max([*measured, *(high for _, high in filter(None, ranges))])
    ax = row_axes([case['post'] for case in POSTS], 1.45 * most,
                  ax=new_figure(WIDE, 2.8).subplots(),
                  xlabel='bus bandwidth (GB/s)',
                  title='Bars: your range. Points: what was measured')
    draw_bars(ax, [(min(found), max(*found, min(found) + most / 100), row)
                   for row, found in enumerate(ranges) if found], BLUE,
              height=0.5)
    ax.plot(measured, range(len(POSTS)), 'D', color=ORANGE,
            markeredgecolor='black')
    for row, (found, words) in enumerate(zip(ranges, said)):
        end = max(measured[row], *(found or [0]))
        ax.text(end + most / 40, row, words, va='center')
    describe(ax, '; '.join(
        f'{case["post"]}: measured {case["measured"]}, your range '
        f'{_in_words(found)}, you say {words or "nothing"}'
        for case, found, words in zip(POSTS, ranges, said)) + '.')
    return ax.figure


def _case(post, wiring, gpu, measured, **more):
    return {'post': post, 'wiring': wiring, 'gpu': gpu, 'measured': measured,
            **more}


POSTS = [
    _case('8 V100', 'DGX-1, numbered otherwise', 'V100', 124.6),
    _case('3 of 8 A100', 'pairs', 'A100', 18.9, nvlinks=12, use=[0, 1, 2]),
    _case('8 H100', 'NVSwitch', 'H100', 471.0, nvlinks=18),
    _case('2 x 8 A100', 'NVSwitch', 'A100', 76.3, nvlinks=12, machines=2,
          cards=4, gbit=100),
    _case('4 x 8 H100', 'NVSwitch', 'H100', 97.0, nvlinks=18, machines=4,
          cards=8, gbit=400),
    _case('2 x 1 H100', 'NVSwitch', 'H100', 46.8, nvlinks=18, use=[0],
          machines=2, cards=4, gbit=400)]
_MORE = [
    _case('2 of 8 A100', 'pairs', 'A100', 211.0, nvlinks=12, use=[4, 5]),
    _case('8 A100', 'NVSwitch', 'A100', 1864.0, nvlinks=12),
    _case('8 H200', 'NVSwitch', 'H200', 361.0, nvlinks=18),
    _case('4 of 8 V100', 'DGX-1', 'V100', 9.7, use=[0, 1, 2, 3]),
    _case('2 x 8 A100, more cards', 'NVSwitch', 'A100', 188.0, nvlinks=12,
          machines=2, cards=8, gbit=200)]
CHECKS = {
    'cables': Check(
        [POSTS[0], _MORE[3], _MORE[0], POSTS[1],
         _case('4 others', 'DGX-1', 'V100', 39.0, use=[0, 3, 4, 7]),
         _case('4 A100', 'all joined', 'A100', 233.0, nvlinks=4,
               use=[0, 1, 2, 3])], run_bounds, judge_bounds,
        'rings over cables, both ways; and None where there is no ring.'),
    'switches': Check(
        [_MORE[1], POSTS[2],
         _case('3 of 8 H100', 'NVSwitch', 'H100', 358.0, nvlinks=18,
               use=[0, 1, 2]),
         _case('8 B200', 'NVSwitch', 'B200', 839.0, nvlinks=18)],
        run_bounds, judge_bounds,
        'all links of a GPU lead to switches, and new ones add.'),
    'network': Check([*POSTS[3:], _MORE[4]], run_bounds, judge_bounds,
                     'from one ring to the best plan.'),
    'verdict': Check([*POSTS, *_MORE], run_verdict, judge_verdict,
                     'whether a machine is healthy, and why.')}

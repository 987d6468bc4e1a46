"""Are these machines healthy? Their owners posted a table and a number.

To chapter 21, notebooks/21-your-own-server.ipynb. The student's functions do
the arithmetic, and judge. Wirings are those of known machines; what was
measured is made up, near what such machines showed.
"""
from collections.abc import Callable, Sequence
from math import isclose
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np

from d2lps.collectives.machines import examples, expectation
from d2lps.collectives.machines.expectation import Expectation
from d2lps.collectives.machines.gpu_machine import GpuMachine
from d2lps.collectives.machines.rates import GBIT
from d2lps.collectives.topology import from_nvidia_smi
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, functions_of)
from d2lps.figures import describe

NEAR = 0.03  # how far a bound may be away
SCATTER = 1.15  # measurements of one machine differ by less than this
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

    def server(self) -> GpuMachine:
        """One of the machines, with the GPUs that take part."""
        return from_nvidia_smi(self.table, self.gpu, self.use)


def post_of(post: str, wiring: str, gpu: str, measured: float,
            use: Sequence[int] = range(8), nvlinks: int = 0,
            machines: int = 1, cards: int = 0, gbit: float = 0) -> Post:
    """The `Post` of a case. wiring, nvlinks: see `examples.posted`."""
    table = examples.posted(wiring, 4 if wiring == 'all joined' else 8,
                            nvlinks)
    return Post(table, gpu, [*use], machines, cards, gbit, measured)


def _expected(post: Post) -> Expectation:
    one = post.machines == 1
    return expectation.expected(
        post.server(), machines=post.machines,
        cards=None if one else post.cards,
        card_rate=None if one else post.gbit * GBIT)


def _bounds(post: Post) -> list[float] | None:
    """The rates of `expected`, in GB/s, without what machines vary by.

    None where no ring runs over NVLinks.
    """
    found = _expected(post)
    if not found.predictable:
        return None
    low = found.best if post.machines == 1 else found.ring
    return [low / 1e9, found.best / 1e9]


def _verdict(post: Post) -> tuple[str, str]:
    """The right word and reason."""
    found, rate = _expected(post), post.measured * 1e9
    word = str(found.verdict(rate).word)
    if not found.predictable:
        return word, 'CPU'
    if word == 'above':
        return word, 'Gbit/s'
    adds = found.wire is None and found.best > found.ring
    if word == 'below':
        return word, ('no direct way' if found.wire else 'no NVLS' if adds
                      and rate > expectation.OF_RING[0] * found.ring
                      else 'PCIe')
    if found.wire is None:
        return word, 'NVLS' if adds else 'links'
    if rate > SCATTER * found.wire:
        return word, 'fewer bytes'
    return word, 'one slot' if found.slots_limit else 'links'


_OURS: list[Callable[..., Any]] = [
    *functions_of(expectation), _expected, _bounds, _verdict]


def run_bounds(answer: Answer, **case: Any) -> Notes:
    """What the student expects of a post, and of one machine of several."""
    post = post_of(**case)
    with forbidding(*_OURS):
        notes = {'found': _range(answer(post))}
        if post.machines > 1 and len(post.use) > 1:
            try:
                notes['alone'] = _range(answer(_alone(post)))
            except Exception:
                pass  # other cases are about one machine
    return notes


def _alone(post):
    return post._replace(machines=1, cards=0, gbit=0.0)


def _range(found: Any) -> list[float] | None:
    """The two numbers that a student returned."""
    if found is None:
        return None
    try:
        ends = np.array(found, float)
        if ends.shape == (2,) and np.isfinite(ends).all():
            return ends.tolist()
    except (TypeError, ValueError, OverflowError):
        pass
    raise Wrong(f'your function returned {short(found)}. Two numbers are '
                'wanted, in GB/s, or None.')


def judge_bounds(notes: Notes, **case: Any) -> None:
    post, found = post_of(**case), notes['found']
    right = _bounds(post)
    if not _same(found, right):
        ratios = {f'{mine / true:.3g}' for mine, true in zip(
            found or [], right or [])}
        text = (f'Yours is {ratios.pop()} times as much. '
                if len(ratios) == 1 else '')
        raise Wrong(f'you return {_in_words(found)}, and {_in_words(right)} '
                    f'is right. {text}{_parts(found, right, post, notes)}')


def _same(found, right):
    """Is each of the two numbers near enough, or are both None?"""
    if found is None or right is None:
        return found == right
    return all(isclose(mine, true, rel_tol=NEAR)
               for mine, true in zip(found, right, strict=True))


def _in_words(bounds):
    if bounds is None:
        return 'None'
    low, high = map('{:.4g}'.format, bounds)
    return f'{low} GB/s' if low == high else f'from {low} to {high} GB/s'


def _parts(found, right, post, notes):
    """Which part of the machines is wrong, and its numbers."""
    k, m, why = len(post.use), post.machines, _why(post)
    if m == 1:
        return f'Only {k} GPUs take part. ' * (
            k < post.table.count('\nGPU')) + why
    if 'alone' not in notes:
        return why
    alone, text = _alone(post), 'For one of these machines alone, '
    if not _same(notes['alone'], _bounds(alone)):
        return (f'{text}you return {_in_words(notes["alone"])}, and '
                f'{_in_words(_bounds(alone))} is right. {_why(alone)}')
    inside, wire = _expected(alone), (_expected(post).wire or 0) / 1e9
    text += f'your result is right. {why} '
    if found and right and isclose(found[0], right[0], rel_tol=NEAR):
        return (f'{text}For 1 GB, the best plan sends {2 * (k - 1) / k:.4g} '
                f'GB inside at {inside.best / 1e9:.4g} GB/s, and '
                f'{2 * (m - 1) / m:.4g} GB over the cards at {wire:.4g} GB/s. '
                'Which of the two takes longer?')
    return (f'{text}A ring inside shows {inside.ring / 1e9:.4g} GB/s. Which '
            'of the two is slower?')


def _why(post):
    """What the lesson says of the links, or of the cards of more machines."""
    why = _expected(post).why
    for rest in ' Inside: ', ' One ring through', ' The range is from':
        why = why.split(rest)[0]
    return why


def run_verdict(answer: Answer, **case: Any) -> Notes:
    post = post_of(**case)
    bounds = _bounds(post)
    with forbidding(*_OURS):
        found = answer(post, bounds and tuple(bounds))
    try:
        word, reason = map(str, found)
        if word in WORDS and reason in REASONS:
            return [word, reason]
    except (TypeError, ValueError):
        pass
    raise Wrong(f'your function returned {short(found)}. A word and a reason '
                f'are wanted: one of {", ".join(WORDS)}, and one of '
                f'{", ".join(REASONS)}.')


def judge_verdict(notes: Notes, **case: Any) -> None:
    (word, reason), post = notes, post_of(**case)
    (right, why), bounds = _verdict(post), _bounds(post)
    found, rate = _expected(post), post.measured
    if word != right:
        text = 'Expected is None. ' if bounds is None else (
            f'{rate:g} GB/s were measured; 0.85 times low is '
            f'{0.85 * bounds[0]:.4g}, and 1.15 times high is '
            f'{1.15 * bounds[1]:.4g}. ')
        raise Wrong(f'you say {word}, and {right} is right. {text}'
                    f'{found.verdict(rate * 1e9).why}')
    if reason != why:
        text, rated = '', (found.wire or found.ring) / 1e9
        if (right == 'below') == (found.wire is None):
            times = 0.85 if right == 'below' else 1.15
            text = (f' {rate:g} GB/s were measured, and {times} times '
                    f'{rated:.4g} is {times * rated:.4g}.')
        raise Wrong(f'{word} is right, but your reason is {reason!r}: '
                    f'{REASONS[reason]}. Right is {why!r}: {REASONS[why]}. '
                    f'{_why(post)}{text}')


def picture(bounds: Answer, verdict: Answer) -> Picture:
    """The student's ranges and words beside what was measured."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, draw_bars, new_figure, row_axes
    ranges = [run_bounds(bounds, **case)['found'] for case in POSTS]
    most = max([case['measured'] for case in POSTS] +
               [max(found) for found in ranges if found])
    ax = row_axes([case['post'] for case in POSTS], 1.45 * most,
                  ax=new_figure(WIDE, 2.8).subplots(),
                  xlabel='bus bandwidth (GB/s)',
                  title='Bars: your range. Points: what was measured')
    alt = []
    for row, (case, found) in enumerate(zip(POSTS, ranges)):
        ends, measured = found or [0, 0], case['measured']
        if found:
            draw_bars(ax, [(min(ends), max(*ends, min(ends) + most / 100),
                            row)], BLUE, height=0.5)
        ax.plot(measured, row, 'D', color=ORANGE, markeredgecolor='black')
        try:
            words = ', '.join(run_verdict(verdict, **case))
        except NotImplementedError:  # there is no second function yet
            words = ''
        ax.text(max(measured, *ends) + most / 40, row, words, va='center')
        alt.append(f'{case["post"]}: measured {measured}, your range '
                   f'{_in_words(found)}, you say {words or "nothing"}')
    describe(ax, '; '.join(alt) + '.')
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
          machines=2, cards=8, gbit=200),
    _case('8 B200', 'NVSwitch', 'B200', 41.0, nvlinks=18),
    _case('2 x 8 A100, once more', 'NVSwitch', 'A100', 51.5, nvlinks=12,
          machines=2, cards=4, gbit=100),
    _case('2 x 2 H100', 'NVSwitch', 'H100', 131.0, nvlinks=18, use=[0, 1],
          machines=2, cards=4, gbit=400)]
CHECKS = {
    'cables': Check(
        [POSTS[0], _MORE[3], _MORE[0], POSTS[1]], run_bounds, judge_bounds,
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

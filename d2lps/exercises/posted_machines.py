"""Exercise: are these machines healthy, by what their owners posted?

To chapter 21, notebooks/21-your-own-server.ipynb. The student's functions do
the arithmetic, and judge. Wirings are those of known machines; what was
measured is made up, near what such machines showed.
"""
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from d2lps.collectives.machines import examples, expectation
from d2lps.collectives.machines.expectation import Expectation
from d2lps.collectives.machines.gpu_machine import (GpuMachine,
                                                    from_nvidia_smi)
from d2lps.collectives.machines.rates import CARD, GBIT
from d2lps.exercises.charts import result_or_none, row_chart
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      numbers, returned, without)
from d2lps.explaining import brief, nothing_returned, returns, same

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
    """An owner's description of a machine.

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

    def machine(self) -> GpuMachine:
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
    alone = post.machines == 1
    return expectation.expected_bandwidth(
        post.machine(), machines=post.machines,
        cards=None if alone else post.cards,
        card_rate=None if alone else post.gbit * GBIT)


def _bounds(post: Post) -> list[float] | None:
    """The rates of `expected_bandwidth` in GB/s, before machines vary.

    None where no ring runs over NVLinks.
    """
    rates = _expected(post)
    if not rates.predictable:
        return None
    low = rates.best if post.machines == 1 else rates.ring
    return [low / 1e9, rates.best / 1e9]


def _verdict(post: Post) -> tuple[str, str]:
    """The right word and reason."""
    rates, rate = _expected(post), post.measured * 1e9
    word = str(rates.verdict(rate).word)
    if not rates.predictable:
        return word, 'CPU'
    if word == 'above':
        return word, 'Gbit/s'
    adds = rates.wire is None and rates.best > rates.ring
    if word == 'below':
        return word, ('no direct way' if rates.wire else 'no NVLS' if adds
                      and rate > expectation.OF_RING[0] * rates.ring
                      else 'PCIe')
    if rates.wire is None:
        return word, 'NVLS' if adds else 'links'
    if rate > SCATTER * rates.wire:
        return word, 'fewer bytes'
    return word, 'one slot' if rates.slots_limit else 'links'


def _judge_source(answer):
    without(answer, expectation.expected_bandwidth, _expected, _bounds,
            _verdict)


def run_bounds(answer: Answer, **case: Any) -> list[float] | None:
    """The two numbers, in GB/s, that the student expects of a post."""
    _judge_source(answer)
    bounds = answer(post_of(**case))
    if bounds is None:
        if not returns(answer):
            raise Wrong(nothing_returned(answer), anywhere=True)
        return None
    return numbers(bounds, 2, 'two numbers, low and high, are right, or None')


def judge_bounds(notes: list[float] | None, **case: Any) -> None:
    post = post_of(**case)
    right, decides = _bounds(post), _decides(post)
    if same(notes, right, NEAR):
        return
    text = f'you return {_in_words(notes)}; {_in_words(right)} is right'
    if notes is None or right is None:
        raise Wrong(f'{text}. {decides}')
    raise Differs(text, notes, right, NEAR, {
        'post.machines': post.machines, 'post.cards': post.cards},
        place=decides, unit='gigabytes per second')


def _in_words(bounds):
    if bounds is None:
        return 'None'
    low, high = map('{:.4g}'.format, bounds)
    return f'{low} GB/s' if low == high else f'{low} to {high} GB/s'


def _decides(post):
    """The rates from which the lesson computes."""
    rates, machine, k = _expected(post), post.machine(), len(post.use)
    if not rates.predictable:
        return 'No ring of NVLinks joins these GPUs.'
    if post.machines == 1:
        cables = sum(count for _, count in rates.rings)
        return (f'Each GPU has {cables} NVLinks to switches'
                if machine.switched else
                f'Rings with {cables} cables join the {k} GPUs'
                ) + f', at {machine.nvlink / 1e9:g} GB/s.'
    ring, best = _inside(post)
    return f'The cards carry {rates.wire / 1e9:.4g} GB/s; ' + (
        'nothing goes inside.' if k == 1 else
        f'inside, a ring has {ring:.4g} and the best plan {best:.4g}.')


def _inside(post):
    """Rates of a ring and of the best plan in one machine, in GB/s."""
    if len(post.use) == 1:
        return np.inf, np.inf
    rates = _expected(post._replace(machines=1, cards=0, gbit=0.0))
    return rates.ring / 1e9, rates.best / 1e9


def run_verdict(answer: Answer, **case: Any) -> list[str]:
    post = post_of(**case)
    bounds = _bounds(post)
    _judge_source(answer)
    reply = returned(answer, post, bounds and tuple(bounds))
    try:
        word, reason = map(str, reply)
        if word in WORDS and reason in REASONS:
            return [word, reason]
    except (TypeError, ValueError):
        pass
    raise Wrong(f'you return {brief(reply)}; a word ({", ".join(WORDS)}) and '
                'a key of REASONS are right.', anywhere=True)


def judge_verdict(notes: list[str], **case: Any) -> None:
    (word, reason), (right, why) = notes, _verdict(post_of(**case))
    if word != right:
        raise Wrong(f'you return {word!r}; {right!r} is right. '
                    f'{_range(post_of(**case), right)}')
    if reason != why:
        raise Wrong(f'you return {word!r} for {reason!r}; {why!r} is right. '
                    f'{_reason(post_of(**case), why)}')


def _range(post, word):
    """Words: the measured number, compared with the ends of a range."""
    if (bounds := _bounds(post)) is None:
        return '`expected` is None.'
    than = [_than(post.measured, *pair)
            for pair in zip((0.85, SCATTER), bounds)]
    return f'{post.measured:g} is ' + {
        'below': than[0], 'above': than[1], 'healthy': ' and '.join(than)
        }[word] + '.'


def _than(rate, times, limit):
    return (f'{"more" if rate > times * limit else "less"} than {times} · '
            f'{limit:.4g} = {times * limit:.4g}')


def _reason(post, why):
    """Words about the number that decides on a reason."""
    rates, k, alone = _expected(post), len(post.use), post.machines == 1
    adds = alone and rates.best > rates.ring
    if why in ('CPU', 'Gbit/s'):
        return _range(post, 'above')
    if alone and (why == 'NVLS' or not adds):
        return f'{"S" if adds else "No s"}witches add for {k} {post.gpu}.'
    if why == 'no direct way':
        return f'There are {post.machines} machines.'
    if why == 'one slot':
        cards = post.cards * post.gbit / 100 * CARD.usable
        return (f'The cards could carry {cards / 1e9:.4g}, '
                f'the slots {rates.wire / 1e9:.4g}.')
    return f'{post.measured:g} is {{}}.'.format(
        _than(post.measured, 0.85, rates.ring / 1e9) if alone else
        _than(post.measured, SCATTER, rates.wire / 1e9))


def picture(bounds: Answer, verdict: Answer) -> Picture:
    """The student's ranges and words beside what was measured."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import draw_bars
    ranges = [run_bounds(bounds, **case) for case in POSTS]
    verdicts = [', '.join(result_or_none(run_verdict, verdict, **case) or ())
                for case in POSTS]
    most = max([case['measured'] for case in POSTS] +
               [max(ends) for ends in ranges if ends])
    ax = row_chart(
        [case['post'] for case in POSTS], 1.45 * most, '; '.join(
            f'{case["post"]}: measured {case["measured"]}, your range '
            f'{_in_words(ends)}, you say {said or "nothing"}'
            for case, ends, said in zip(POSTS, ranges, verdicts)) + '.',
        xlabel='bus bandwidth (GB/s)',
        title='Bars: your range. Points: what was measured')
    for row, (case, ends, said) in enumerate(zip(POSTS, ranges, verdicts)):
        low, high = sorted(ends or [0, 0])
        if ends:
            draw_bars(ax, [(low, max(high, low + most / 100), row)], BLUE,
                      height=0.5)
        ax.plot(case['measured'], row, 'D', color=ORANGE,
                markeredgecolor='black')
        ax.text(max(case['measured'], high) + most / 40, row, said,
                va='center')
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
POST = '{post}'  # the case in a message
CHECKS = {
    'cables': Check(
        [POSTS[0], _MORE[3], _MORE[0], POSTS[1]], run_bounds, judge_bounds,
        'rings over cables, both ways; and None where there is no ring.',
        case=POST),
    'switches': Check(
        [_MORE[1], POSTS[2],
         _case('3 of 8 H100', 'NVSwitch', 'H100', 358.0, nvlinks=18,
               use=[0, 1, 2]),
         _case('8 B200', 'NVSwitch', 'B200', 839.0, nvlinks=18)],
        run_bounds, judge_bounds,
        'all links of a GPU lead to switches, and new ones add.', case=POST),
    'network': Check([*POSTS[3:], _MORE[4]], run_bounds, judge_bounds,
                     'from one ring to the best plan.', case=POST),
    'verdict': Check([*POSTS, *_MORE], run_verdict, judge_verdict,
                     'whether a machine is healthy, and why.', case=POST)}

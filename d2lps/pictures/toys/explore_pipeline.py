"""Micro-batches through stages of a pipeline: who is idle, what is kept."""
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from d2lps.checks import checked, integer, one_of, refuse
from d2lps.figures import describe
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import width_of
from d2lps.pictures.rows import (
    LETTERS,
    WIDE,
    draw_bars,
    new_figure,
    row_axes,
)
from d2lps.pictures.style import BLUE, ORANGE, ink_on
from d2lps.pictures.widgets import live_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDERS = ['GPipe', '1F1B']
MOST_STAGES, MOST_BATCHES = 8, 16
COLORS = {'F': BLUE, 'B': ORANGE}
MOST_WIDE, ROW = 0.33, 0.31  # inches, of a slot and of a row


def _order(stage, num_stages, num_batches, schedule):
    """What one stage does, in order: a letter for each pass."""
    first = num_batches
    if schedule == '1F1B':
        first = min(num_batches, num_stages - stage)
    return 'F' * first + 'BF' * (num_batches - first) + 'B' * first


def _orders(name, value):
    """A list of texts in which each F has its B behind it."""
    def whole_order(text):
        return isinstance(text, str) and {*text} == {'F', 'B'} and all(
            text[:end].count('F') >= text[:end].count('B')
            for end in range(len(text))) and (
                text.count('F') == text.count('B') == value[0].count('F'))
    if not isinstance(value, (list, tuple)) or not value or not all(
            map(whole_order, value)):
        refuse(name, value, "a text of F and B for each stage, such as "
                            "['FFBB', 'FBFB']")
    return value


@checked(orders=_orders)
def pass_slots(orders: Sequence[str]) -> list[list[int]]:
    """When each pass can begin, if each takes one slot of time: lists.

    orders: for each stage what it does, in order: a text with F for the
    forward pass of its next micro-batch, and B for the backward pass of the
    oldest one. A forward pass waits for that of the stage before, a backward
    pass for that of the stage behind.
    """
    last = len(orders) - 1
    done: dict[tuple[int, str, int], int] = {}  # when it ends, of each pass
    slots: list[list[int]] = [[] for _ in orders]
    progress = True
    while progress:
        progress = False
        for stage, order in enumerate(orders):
            while len(slots[stage]) < len(order):
                at = len(slots[stage])
                kind, batch = order[at], order[:at].count(order[at])
                other = stage + (1 if kind == 'B' else -1)
                if 0 <= other <= last and (other, kind, batch) not in done:
                    break
                begin = max(done.get((other, kind, batch), 0),
                            slots[stage][-1] + 1 if at else 0)
                slots[stage].append(begin)
                done[stage, kind, batch] = begin + 1
                progress = True
    if any(len(some) < len(order)
           for some, order in zip(slots, orders, strict=True)):
        raise ValueError('in these orders stages wait for each other forever')
    return slots


def _most_kept(order):
    """How many micro-batches' activations a stage keeps, at most."""
    return max(order[:end].count('F') - order[:end].count('B')
               for end in range(len(order) + 1))


@checked(orders=_orders)
def draw_passes(orders: Sequence[str]) -> 'Figure':
    """A chart: a row for each stage, a box for each pass. orders: as above.

    Beside a row: of how many micro-batches the stage keeps activations.
    """
    return _draw(orders, len(orders))


def _draw(orders, rows):
    """`draw_passes` in a figure that has room for this many rows."""
    slots = pass_slots(orders)
    length = 1 + max(map(max, slots))
    idle = 1 - len(orders[0]) / length
    kept = [*map(_most_kept, orders)]
    slot, high = min(MOST_WIDE, 6 / length), ROW * rows + 0.9  # inches
    figure = new_figure(WIDE, high, layout=None)
    deep = ROW * len(orders)
    ax = row_axes(
        [f'stage {stage}' for stage in range(len(orders))], length,
        xlabel='time →', ax=figure.add_axes((
            0.7 / WIDE, 1 - (0.3 + deep) / high, slot * length / WIDE,
            deep / high), xticks=[], frame_on=False))
    draw_bars(ax, [(0, length, stage) for stage in range(len(orders))],
              '#88888840', f'idle: {idle:.0%}', height=0.9)
    passes = {'F': [], 'B': []}
    for stage, order in enumerate(orders):
        for at, begin in enumerate(slots[stage]):
            kind, batch = order[at], order[:at].count(order[at])
            passes[kind].append((begin, begin + 1, stage))
            if width_of(batch, LETTERS) < 96 * slot:  # else there is no room
                ax.text(begin + 0.5, stage, batch, ha='center',
                        va='center_baseline', color=ink_on(COLORS[kind]))
        ax.text(length + 0.3 / slot, stage, kept[stage], ha='center',
                va='center_baseline', weight='bold')
    draw_bars(ax, passes['F'], COLORS['F'], 'forward', height=0.8)
    draw_bars(ax, passes['B'], COLORS['B'], 'backward', height=0.8)
    ax.text(length + 0.3 / slot, -0.8, 'kept', ha='center')
    figure.legend(loc='upper left', ncols=3, bbox_to_anchor=(
        0.6 / WIDE, 1 - (0.5 + deep) / high))
    describe(
        ax, f'{len(orders)} stages of a pipeline, a row of slots each. '
        f'Forward passes are blue, backward passes are orange, and {idle:.0%} '
        'of the slots are empty. The stages keep the activations of at most '
        f'{", ".join(map(str, kept))} micro-batches.')
    return figure


def draw_pipeline(num_stages: int, num_batches: int, schedule: str
                  ) -> 'Figure':
    """The picture of the toy: of one size, however many stages there are."""
    return _draw([_order(stage, num_stages, num_batches, schedule)
                  for stage in range(num_stages)], MOST_STAGES)


@checked(num_stages=partial(integer, least=2, most=MOST_STAGES),
         num_batches=partial(integer, least=2, most=MOST_BATCHES),
         schedule=one_of(*ORDERS))
def explore_pipeline(num_stages: int = 4, num_batches: int = 8,
                     schedule: str = 'GPipe') -> None:
    """Choose stages, micro-batches and their order; see who is idle."""
    live_picture(draw_pipeline, {
        'num_stages': choose([*range(2, MOST_STAGES + 1)], num_stages,
                             'stages'),
        'num_batches': choose([*range(2, MOST_BATCHES + 1)], num_batches,
                              'batches'),
        'schedule': menu(ORDERS, schedule, 'order')})

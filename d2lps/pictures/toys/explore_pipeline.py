"""Micro-batches through stages of a pipeline: who is idle, what is kept."""
from collections.abc import Sequence
from functools import partial

from d2lps.checks import checked, integer, one_of, refuse
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import Drawing, width_of
from d2lps.pictures.style import BLUE, GRAY, ORANGE
from d2lps.pictures.widgets import live_picture

ORDERS = ['GPipe', '1F1B']
MOST_STAGES, MOST_BATCHES = 8, 16
LEFT, MOST_WIDE, HIGH = 80, 32, 30  # pixels: before the slots, of a slot


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
def draw_passes(orders: Sequence[str]) -> Drawing:
    """A chart: a row for each stage, a box for each pass. orders: as above.

    Beside a row: of how many micro-batches the stage keeps activations.
    """
    slots = pass_slots(orders)
    length = 1 + max(map(max, slots))
    idle = 1 - len(orders[0]) / length
    kept = [*map(_most_kept, orders)]
    wide = min(MOST_WIDE, (720 - LEFT - 60) / length)
    end = LEFT + wide * length
    drawing = Drawing(
        end + 60, HIGH * len(orders) + 62,
        f'{len(orders)} stages of a pipeline, a row of slots of time each. '
        f'Forward passes are blue, backward passes are orange, and {idle:.0%} '
        'of the slots are empty. The stages keep the activations of at most '
        f'{", ".join(map(str, kept))} micro-batches.')
    drawing.text(end + 30, 12, 'kept', 12)
    for stage, order in enumerate(orders):
        top = 24 + HIGH * stage
        drawing.text(LEFT - 8, top + HIGH / 2, f'stage {stage}', 12, 'end')
        drawing.box(LEFT, top + 2, wide * length, HIGH - 4, fill='#eee',
                    stroke=GRAY)
        for at, slot in enumerate(slots[stage]):
            batch = order[:at].count(order[at])
            x, gap = LEFT + wide * slot, min(1, wide / 12)
            drawing.box(x + gap, top + 3, wide - 2 * gap, HIGH - 6,
                        fill=BLUE if order[at] == 'F' else ORANGE)
            if width_of(batch, 12) < wide:  # else there is no room
                drawing.text(x + wide / 2, top + HIGH / 2, batch, 12,
                             fill='white' if order[at] == 'F' else 'black')
        drawing.text(end + 30, top + HIGH / 2, kept[stage],
                     13, bold=True)
    bottom = 24 + HIGH * len(orders) + 20
    drawing.text(LEFT, bottom, f'time →   blue: forward, orange: backward, '
                               f'idle: {idle:.0%}', 12, 'start')
    return drawing


def draw_pipeline(num_stages: int, num_batches: int, schedule: str) -> Drawing:
    """The picture of the toy: of one size, however many stages there are."""
    drawing = draw_passes([_order(stage, num_stages, num_batches, schedule)
                           for stage in range(num_stages)])
    drawing.width, drawing.height = 720, HIGH * MOST_STAGES + 62
    return drawing


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

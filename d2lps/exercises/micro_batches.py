"""Exercise: in which order a pipeline does its passes, and what it holds.

To chapter 2, notebooks/02-three-ways-to-split.ipynb, and to chapter 22.
"""
from collections.abc import Sequence
from reprlib import repr as short
from typing import TypeAlias

import numpy as np

from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      call_twice, forbidding, functions_of)
from d2lps.figures import describe
from d2lps.pipelines import orders as lesson
from d2lps.pipelines import (Pass, most_kept, one_f_one_b, time_passes,
                             timing)

Order: TypeAlias = Sequence[tuple[str, int]]  # a device's: ('F', 0), ...


def needs(device: int, kind: str, m: int,
          num_devices: int) -> list[tuple[int, str, int]]:
    """The passes that end before this one: (device, 'F' or 'B', m)."""
    return [(other, what, m) for other, what, _ in timing.needs(
        device, Pass(kind, m), num_devices, num_parts=1)]


def timetable(orders: Sequence[Order]
              ) -> tuple[dict[tuple[int, str, int], int], list[int]]:
    """When each pass begins, if each device keeps to its list.

    Returns {pass: slot}, and how many passes of its list each device has
    done when nobody can go on.
    """
    begins: dict[tuple[int, str, int], int] = {}
    done = [0] * len(orders)
    for slot in range(sum(map(len, orders))):
        now = [device for device, order in enumerate(orders)
               if done[device] < len(order) and all(
                   begins.get(one, slot) < slot for one in
                   needs(device, *order[done[device]], len(orders)))]
        for device in now:
            begins.setdefault((device, *orders[device][done[device]]), slot)
            done[device] += 1
    return begins, done


def run(answer: Answer, K: int, M: int) -> Notes:
    from d2lps.pictures.toys import explore_pipeline
    with forbidding(explore_pipeline._order, explore_pipeline.draw_pipeline,
                    *functions_of(lesson)):
        return call_twice(answer, _notes, K, M)


def _notes(found):
    """The passes as lists, and whether a list is there twice."""
    if found is None:
        raise Wrong('your function returned nothing: is there a `return`?')
    lists = _list(found, 'what your function returned')
    orders = [_list(passes, f'the list of device {device}')
              for device, passes in enumerate(lists)]
    return {'orders': [*map(_order, range(len(orders)), orders)],
            'shared': len({*map(id, lists)}) < len(lists)}


def _list(one, what):
    """A list, from anything that gives one thing after the other."""
    if isinstance(one, np.ndarray):
        one = one.tolist()
    if not hasattr(one, '__iter__') or isinstance(
            one, (str, dict, set, frozenset)):
        raise Wrong(f'{what} is of type {type(one).__name__}. A list with a '
                    'list of passes for each device is wanted.')
    return [*one]


def _order(device, passes):
    """The passes of a device as a student gave them, as lists."""
    pairs = [[*one] if hasattr(one, '__iter__') else [] for one in passes]
    for one, pair in zip(passes, pairs, strict=True):
        if len(pair) != 2 or pair[0] not in ('F', 'B') or not isinstance(
                pair[1], (int, np.integer)):
            raise Wrong(f'the list of device {device} is {short(passes)}. '
                        'Pairs of a letter and a whole number are wanted in '
                        "it, such as ('F', 0) or ('B', 0), in place of "
                        f'{one!r:.60}.')
    return [[str(kind), int(m)] for kind, m in pairs]


def judge_order(found: Notes, K: int,
                M: int) -> dict[tuple[int, str, int], int]:
    """Each pass once, and all can be done; returns when each begins."""
    orders = found['orders']
    if len(orders) != K:
        raise Wrong(f'one list for each of {K} devices is wanted; you '
                    f'returned {len(orders)}.')
    for device, order in enumerate(orders):
        _judge_passes(device, order, M, found['shared'])
    begins, done = timetable(orders)
    if len(begins) < 2 * K * M:
        raise Wrong(_who_waits(orders, begins, done))
    return begins


def _judge_passes(device, order, M, shared):
    names = [_name(*one) for one in order]
    wanted = [_name(kind, m) for kind in 'FB' for m in range(M)]
    for name in names + wanted:
        many, right = names.count(name), wanted.count(name)
        if many != right:
            same = (' Several devices have the same list object: what you '
                    'append for one device is appended for all.')
            raise Wrong(f'device {device} has {name} {many} '
                        f'time{"s" * (many != 1)} in its list, and {right} is '
                        f'right. The micro-batches are 0 to {M - 1}.'
                        f'{same if shared and many > 1 else ""}')


def _name(kind, m):
    return f"('{kind}', {m})"


def _who_waits(orders, begins, done):
    """A device that waits for itself, or two that wait for each other."""
    def lacks(device):
        return next(one for one in needs(
            device, *orders[device][done[device]], len(orders))
            if one not in begins)

    stuck = next(d for d, order in enumerate(orders) if done[d] < len(order))
    while lacks(lacks(stuck)[0])[0] != stuck:
        stuck = lacks(stuck)[0]
    circle = sorted({stuck, lacks(stuck)[0]})
    text = (f'after {len(begins)} of {sum(map(len, orders))} passes no '
            'device can continue. ')
    for device in circle:
        other, *missing = lacks(device)
        text += (f'Device {device} would do '
                 f'{_name(*orders[device][done[device]])} now, and needs '
                 f'{_name(*missing)} of device {other}, which has this pass '
                 'later in its list. ')
    return text + ('Each waits for the other, for ever.' if len(circle) > 1
                   else 'It waits for itself, for ever.')


def slots_of_1f1b(K: int, M: int) -> int:
    """How many slots the lesson's order takes: no order takes fewer."""
    lists = [[*one_f_one_b(d, K, M)] for d in range(K)]
    return int(max(one.end for one in time_passes(lists, {'F': 1, 'B': 1})))


def judge_slots(found: Notes, K: int, M: int) -> None:
    begins = judge_order(found, K, M)
    slots, best = max(begins.values()) + 1, slots_of_1f1b(K, M)
    if slots > best:
        raise Wrong(f'your order takes {slots} slots, and 2(M + K - 1) = '
                    f'{best} are enough. {_hint(found["orders"], begins)}')


def _hint(orders, begins):
    """The first slot in which the last device waits."""
    last = len(orders) - 1
    for slot, (kind, m) in enumerate(orders[last], last):
        if begins[last, kind, m] > slot:
            place = orders[last - 1].index([kind, m])
            after = f', after {_name(*orders[last - 1][place - 1])}'
            return (f'Device {last} could be busy from slot {last} on, '
                    'without a pause. In your order it is idle in slot '
                    f'{slot}: it waits for {_name(kind, m)} of device '
                    f'{last - 1}, which does this pass in slot '
                    f'{begins[last - 1, kind, m]}{after if place else ""}.')
    return (f'Device {last} has no pause. From the last device on, one slot '
            'more for each device is enough.')


def judge_kept(found: Notes, K: int, M: int) -> None:
    begins = judge_order(found, K, M)
    for device, order in enumerate(found['orders']):
        passes = [Pass(*one) for one in order]
        for number in range(1, len(passes) + 1):
            if most_kept(passes[:number]) > K - device:
                is_or_are = 'is' if device == K - 1 else 'are'
                raise Wrong(
                    f'device {device} holds the activations of '
                    f'{K - device + 1} micro-batches after '
                    f'{_name(*order[number - 1])}, pass {number} of its '
                    f'list; K - d = {K - device} {is_or_are} enough. From '
                    'this device to the last one, through how many devices '
                    'does a micro-batch go before its gradient comes back?')
    slots = max(begins.values()) + 1
    if min(K, M) > 2 and slots == 2 * K * M:
        raise Wrong('your devices hold few micro-batches, but only because '
                    f'one device works at a time: {slots} slots. Let devices '
                    'work at the same time.')


def picture(answer: Answer) -> Picture:
    """A row for each device: its passes, and below them what it holds."""
    from d2lps.pictures import BLUE, ORANGE, PURPLE
    from d2lps.pictures.rows import (WIDE, draw_bars, legend_below, name_bar,
                                     new_figure, row_axes)
    found = run(answer, **SHOWN)
    devices = range(min(len(found['orders']), 8) or 1)
    begins, _ = timetable(found['orders'][:8])
    slots = 1 + max(begins.values(), default=0)
    try:
        judge_order(found, **SHOWN)
        busy = len(begins) / slots / len(devices)
        title = f'{slots} slots; {busy:.0%} of them are busy'
    except Wrong as error:
        title = str(error).split('. ')[0].rstrip('.')
    held = [[*_held(d, begins, slots)] for d in devices]
    told = [f'at most {max(held[d])}; K - d = {len(devices) - d}'
            for d in devices]
    figure = new_figure(WIDE, 1.2 + 0.5 * len(devices))
    ax = row_axes([name for d in devices for name in (f'device {d}', 'holds')],
                  slots, ax=figure.subplots(), title=title,
                  xlabel='slots of time')
    ax.locator_params(axis='x', integer=True)
    describe(ax, f'{title}. ' + '. '.join(
        f'Device {d} holds {told[d]}' for d in devices) + '.')
    draw_bars(ax, [(0, slots, 2 * d) for d in devices], '#88888840', 'idle',
              height=0.9)
    for kind, label, color in ('F', 'forward', BLUE), ('B', 'backward',
                                                       ORANGE):
        bars = {(d, m): slot for (d, what, m), slot in begins.items()
                if what == kind}
        draw_bars(ax, [(slot, slot + 1, 2 * d) for (d, _), slot
                       in bars.items()], color, label, '', 0.9)
        for (d, m), slot in bars.items():
            name_bar(ax, slot, slot + 1, 2 * d, m, color)
    one = 0.8 / max(len(devices), *map(max, held))  # height of a micro-batch
    for d in devices:
        floor, limit = 2 * d + 1.4, len(devices) - d
        ax.fill_between(range(slots + 1), floor,
                        [floor - one * count for count in (*held[d], 0)],
                        step='post', color=PURPLE, linewidth=0, label='held')
        ax.hlines(floor - one * limit, 0, slots, 'gray', '--', label='K - d')
        ax.text(1.01, 2 * d + 1, told[d], va='center',
                weight='bold' if max(held[d]) > limit else 'normal',
                transform=ax.get_yaxis_transform())
    legend_below(ax)
    return figure


def _held(device, begins, slots):
    """Of how many micro-batches it holds activations in each slot."""
    for now in range(slots):
        yield sum((slot <= now) if kind == 'F' else -(slot < now)
                  for (d, kind, _), slot in begins.items() if d == device)


SHOWN = {'K': 4, 'M': 8}
SIZES = [SHOWN, {'K': 2, 'M': 2}, {'K': 3, 'M': 7}]
CHECKS = {
    'order': Check(
        [*SIZES, {'K': 4, 'M': 2}, {'K': 2, 'M': 1}], run, judge_order,
        'each device does each pass once, and no device waits for ever.'),
    'slots': Check(
        SIZES, run, judge_slots,
        '22 slots for four devices and eight micro-batches; one micro-batch '
        'after the other takes 64.'),
    'kept': Check(
        SIZES, run, judge_kept,
        'device d never holds the activations of more than K - d '
        'micro-batches.')}

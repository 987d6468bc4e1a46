"""Exercise: in which order a pipeline does its passes, and what it holds.

To chapter 2, notebooks/02-three-ways-to-split.ipynb, and to chapter 22.
"""
from collections import Counter
from collections.abc import Sequence
from reprlib import repr as short
from typing import TypeAlias

import numpy as np

from d2lps.exercises.charts import draw_named, row_chart
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      functions_of, returned, without)
from d2lps.explaining import brief
from d2lps.pipelines import orders as lesson
from d2lps.pipelines import (Pass, most_kept, one_f_one_b, time_passes,
                             timing)

Order: TypeAlias = Sequence[tuple[str, int]]  # a device's: ('F', 0), ...


def needs(device: int, kind: str, m: int,
          num_devices: int) -> list[tuple[int, str, int]]:
    """The passes that end before this one: (device, 'F' or 'B', m)."""
    return [(other, letter, m) for other, letter, _ in timing.needs(
        device, Pass(kind, m), num_devices, num_chunks=1)]


def timetable(orders: Sequence[Order]
              ) -> tuple[dict[tuple[int, str, int], int], list[int]]:
    """Slots in which all passes begin, if each device keeps to its list.

    Returns {pass: slot}, and how many passes of its list each device has
    done when nobody can go on.
    """
    begins: dict[tuple[int, str, int], int] = {}
    done = [0] * len(orders)
    for slot in range(sum(map(len, orders))):
        now = [device for device, order in enumerate(orders)
               if done[device] < len(order) and all(
                   begins.get(need, slot) < slot for need in
                   needs(device, *order[done[device]], len(orders)))]
        for device in now:
            begins.setdefault((device, *orders[device][done[device]]), slot)
            done[device] += 1
    return begins, done


def run(answer: Answer, K: int, M: int) -> list[Order]:
    """The passes of each device, as lists [letter, number]."""
    without(answer, *functions_of(lesson))
    orders = returned(answer, K, M)
    try:
        lists = [[*passes] for passes in orders]
    except TypeError:
        raise Wrong(f'you return {brief(orders)}; a list of passes for each '
                    'device is right.', anywhere=True) from None
    return [[_pass(device, step) for step in passes]
            for device, passes in enumerate(lists)]


def _pass(device, step):
    pair = [*step] if isinstance(step, (tuple, list, np.ndarray)) else []
    if len(pair) != 2 or pair[0] not in ('F', 'B') or not isinstance(
            pair[1], (int, np.integer)):
        raise Wrong(f'device {device} has {short(step)} in its list; a pair '
                    "such as ('F', 0) or ('B', 0) is right.")
    return [str(pair[0]), int(pair[1])]


def judge_order(orders: list[Order], K: int,
                M: int) -> dict[tuple[int, str, int], int]:
    """Each pass once, and all can be done; returns when each begins."""
    if len(orders) != K:
        raise Differs(f'you return {len(orders)} of {K} lists; one for each '
                      'device is right', orders)
    passes = Counter((kind, m) for kind in 'FB' for m in range(M))
    counts = [Counter((kind, m) for kind, m in order) for order in orders]
    each_has_all = all(count == dict.fromkeys(passes, K)
                       for count in counts)
    for device, count in enumerate(counts):
        for step in count | passes:
            if count[step] != passes[step]:
                raise Differs(
                    f'device {device} has {step} {count[step]} times in its '
                    'list; once is right' if passes[step] else
                    f'device {device} has {step} in its list; micro-batches '
                    f'0 to {M - 1} are right', orders, known={
                        ('all',): f'Each list has the passes of all {K} '
                        'devices.'} if each_has_all else {})
    begins, done = timetable(orders)
    if len(begins) < 2 * K * M:
        raise Differs(f'after {len(begins)} of {2 * K * M} passes no device '
                      f'can continue: {_who_waits(orders, begins, done)}',
                      orders)
    return begins


def _who_waits(orders, begins, done):
    """A device that waits for itself, or two that wait for each other."""
    def lacks(device):
        return next(need for need in needs(
            device, *orders[device][done[device]], len(orders))
            if need not in begins)

    stuck = next(d for d, order in enumerate(orders) if done[d] < len(order))
    while lacks(lacks(stuck)[0])[0] != stuck:
        stuck = lacks(stuck)[0]
    other, *missing = lacks(stuck)
    if other == stuck:
        return (f'device {stuck} has {(*orders[stuck][done[stuck]],)} before '
                f'{(*missing,)}')
    return (f'device {stuck} waits for {(*missing,)} of device {other}, and '
            f'that for {(*lacks(other)[1:],)} of device {stuck}')


def slots_of_1f1b(K: int, M: int) -> int:
    """The number of slots of the lesson's order: no order takes fewer."""
    lists = [[*one_f_one_b(d, K, M)] for d in range(K)]
    return int(max(task.end for task in time_passes(lists, {'F': 1, 'B': 1})))


def judge_slots(orders: list[Order], K: int, M: int) -> None:
    begins = judge_order(orders, K, M)
    slots, best = max(begins.values()) + 1, slots_of_1f1b(K, M)
    if slots > best:
        raise Differs(f'your order takes {slots} slots; {best} are right',
                      orders, place=_pause(orders, begins))


def _pause(orders, begins):
    """The first slot in which the last device waits."""
    last = len(orders) - 1
    for slot, (kind, m) in enumerate(orders[last], last):
        if begins[last, kind, m] > slot:
            place = orders[last - 1].index([kind, m])
            when = f'after {(*orders[last - 1][place - 1],)}' if place else (
                'first')
            return (f'In slot {slot} device {last} waits for {(kind, m)}, '
                    f'which device {last - 1} does {when}.')
    more = max(begins.values()) - begins[(last, *orders[last][-1])]
    return (f'Device {last} never waits, but device 0 ends {more} slots '
            f'after it; {last} are enough.')


def judge_kept(orders: list[Order], K: int, M: int) -> None:
    begins = judge_order(orders, K, M)
    for device, order in enumerate(orders):
        passes = [Pass(*step) for step in order]
        for number, step in enumerate(order, 1):
            kept = int(most_kept(passes[:number]))
            if kept > K - device:
                raise Differs(
                    f'device {device} holds {kept} micro-batches after '
                    f'{(*step,)}; at most K - d = {K - device} is right',
                    orders)
    slots = max(begins.values()) + 1
    if min(K, M) > 2 and slots == 2 * K * M:
        raise Wrong(f'one device works at a time, for {slots} slots; devices '
                    'that work at the same time are right.')


def picture(answer: Answer) -> Picture:
    """A row for each device: its passes, and below them what it holds."""
    from d2lps.pictures import BLUE, ORANGE, PURPLE
    from d2lps.pictures.rows import draw_bars, legend_below
    orders = run(answer, **SHOWN)
    devices = range(min(len(orders), 8) or 1)
    begins, _ = timetable(orders[:8])
    slots = 1 + max(begins.values(), default=0)
    try:
        judge_order(orders, **SHOWN)
        busy = len(begins) / slots / len(devices)
        title = f'{slots} slots; {busy:.0%} of them are busy'
    except Wrong as error:
        title = str(error).split('; ')[0].split(': ')[0]
    held = [_held(d, begins, slots) for d in devices]
    told = [f'at most {max(held[d])}; K - d = {len(devices) - d}'
            for d in devices]
    ax = row_chart(
        [name for d in devices for name in (f'device {d}', 'holds')], slots,
        f'{title}. ' + '. '.join(
            f'Device {d} holds {told[d]}' for d in devices) + '.',
        height=1.2 + 0.5 * len(devices), title=title, xlabel='slots of time')
    ax.locator_params(axis='x', integer=True)
    draw_bars(ax, [(0, slots, 2 * d) for d in devices], '#88888840', 'idle',
              height=0.9)
    for letter, label, color in (('F', 'forward', BLUE),
                                 ('B', 'backward', ORANGE)):
        draw_named(ax, [(slot, slot + 1, 2 * d, m) for (d, kind, m), slot
                        in begins.items() if kind == letter], color, label,
                   '', 0.9)
    unit = 0.8 / max(len(devices), *map(max, held))  # height of a micro-batch
    for d in devices:
        floor, limit = 2 * d + 1.4, len(devices) - d
        ax.stairs(floor - unit * np.array(held[d]), range(slots + 1),
                  baseline=floor, fill=True, color=PURPLE, label='held')
        ax.hlines(floor - unit * limit, 0, slots, 'gray', '--', label='K - d')
        ax.text(1.01, 2 * d + 1, told[d], va='center',
                weight='bold' if max(held[d]) > limit else 'normal',
                transform=ax.get_yaxis_transform())
    legend_below(ax)
    return ax.figure


def _held(device, begins, slots):
    """Number of micro-batches that it holds in each slot, a list."""
    return [sum((slot <= now) if kind == 'F' else -(slot < now)
                for (d, kind, _), slot in begins.items() if d == device)
            for now in range(slots)]


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

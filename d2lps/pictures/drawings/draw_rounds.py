"""The arrays of all devices after each round of a plan: numbers in boxes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from d2lps.checks import checked, from_zero, function, refuse
from d2lps.collectives import Schedule
from d2lps.collectives.schedule import any_schedule
from d2lps.pictures.drawing import INK, PALE, Drawing, width_of

HIGH, GAP, TOP, LEFT, MOST = 46, 44, 34, 70, 720


def _held(schedule, arrays, op, rounds):
    """Copies of the arrays before round 1, and after each round."""
    for number in range(rounds + 1):
        now = [np.array(array) for array in arrays]
        if number:
            Schedule(schedule.rounds[:number], schedule.num_devices,
                     schedule.nodes[schedule.num_devices:],
                     schedule.weights).run(now, op=op)
        yield now


def _small(schedule, arrays, **_):
    if schedule.num_devices > 8 or schedule.num_devices < len(schedule.nodes):
        refuse('schedule', schedule, 'one of 8 devices at most, no helpers')
    if not isinstance(arrays, (list, tuple)) or (
            len(arrays) != schedule.num_devices):
        refuse('arrays', arrays, 'a list with an array for each device')


@checked(_small, schedule=any_schedule, op=function, rounds=from_zero)
def draw_rounds(schedule: Schedule, arrays: Sequence[Any],
                op: Callable[[Any, Any], Any] = np.add,
                rounds: int | None = None) -> Drawing:
    """The arrays after each round: a column for a round, a row per device.

    An arrow is a message; what a message has changed has a dark frame.

    arrays: one per device, with a few elements each; they stay as they are.
    rounds: how many to draw; all, if left out.
    """
    rounds = len(schedule.rounds) if rounds is None else min(
        rounds, len(schedule.rounds))
    states = list(_held(schedule, arrays, op, rounds))
    cell = max([30, *(width_of(value, 13) + 11 for now in states
                      for array in now for value in array.flat)])
    wide = cell * np.size(arrays[0])
    step = max(wide, 90) + GAP
    per_row = max(2, int((MOST - LEFT + GAP) // step))
    # The last state of a row begins the next one, too.
    starts = range(0, max(1, rounds), per_row - 1)
    high = TOP + HIGH * schedule.num_devices
    picture = Drawing(
        LEFT + step * min(rounds + 1, per_row) - GAP + 2, high * len(starts), (
            f'{schedule.name}, what the devices hold. ' + '; '.join(
                ('at first ' if not k else f'after round {k} ') +
                ', '.join(' '.join(map(str, array.flat)) for array in now)
                for k, now in enumerate(states))))
    for row, start in enumerate(starts):
        shown = [*enumerate(states)][start:start + per_row]
        _row(picture, schedule, shown, states, high * row, cell, wide, step)
    return picture


def _row(picture, schedule, shown, states, top, cell, wide, step):
    """Some of the states, from left to right, with the messages between."""
    rows, top = range(schedule.num_devices), top + TOP
    for row in rows:
        picture.text(4, top + HIGH * (row + 0.4), f'device {row}', 12, 'start')
    for place, (k, now) in enumerate(shown):
        x = LEFT + step * place + (step - GAP - wide) / 2
        picture.text(x + wide / 2, top - 16,
                     f'after round {k}' if k else 'at first', 12, bold=True)
        for row in rows:
            for c, value in enumerate(now[row].flat):
                changed = k and value != states[k - 1][row].flat[c]
                picture.box(x + cell * c, top + HIGH * row, cell, HIGH * 0.8,
                            value, 'white' if changed else PALE,
                            stroke=INK if changed else '#bbb')
        for send in schedule.rounds[k] if place < len(shown) - 1 else ():
            y = [top + HIGH * (node + 0.4) for node in (send.src, send.dst)]
            picture.arrow((x + wide + 4, y[0]), (x + step - 4, y[1]),
                          width=1.5, dashed=not send.reduce)

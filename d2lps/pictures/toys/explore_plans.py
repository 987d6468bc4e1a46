"""Every strategy to step through, with as many devices as one likes."""
from collections.abc import Sequence
from functools import cache, partial

from d2lps.checks import boolean, checked, from_zero, integer, list_of, one_of
from d2lps.pictures.controls import choose, menu, steps
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.menus import PLANS, STEPPED
from d2lps.pictures.player import plot_holdings
from d2lps.pictures.sketch import in_words
from d2lps.pictures.widgets import live_picture


@cache
def _plan(name, num_devices):
    """The schedule, or a text that says why there is none."""
    return PLANS[name][1](num_devices)


def _last_round(plan, num_devices, **others):
    schedule = _plan(plan, num_devices)
    return None if isinstance(schedule, str) else len(schedule.rounds)


@cache
def _height(plans, num_devices):
    """Of the highest picture of these plans with so many devices."""
    made = [_plan(name, num_devices) for name in plans]
    most = max([one for one in made if not isinstance(one, str)],
               key=lambda one: len(one.nodes))
    return plot_holdings(most, signs=True, width=720).height


def draw_plan(plan: str, num_devices: int, number: int, sums: bool,
              plans: tuple[str, ...] = tuple(PLANS)) -> Drawing:
    """The picture of the toy: `plan` after round `number`, or the last.

    plans: those of the menu. While one steps through them, what is below the
    picture stays where it is.
    """
    words, schedule = PLANS[plan][0], _plan(plan, num_devices)
    if isinstance(schedule, str):
        drawing = Drawing(720, 200, schedule)
        drawing.text(360, 100, schedule.replace('\n\n', '\n'), 13)
    else:
        last = len(schedule.rounds)
        number = min(number, last)
        drawing = plot_holdings(
            schedule, number, f'{words}, {num_devices} devices: ' + (
                f'after round {number} of {last}, '
                f'{in_words(schedule.rounds[number - 1])}' if number else
                f'before round 1 of {last}'), sums, 720, True)
    drawing.height = _height(plans, num_devices)
    return drawing


@checked(plan=one_of(*PLANS), number=from_zero, sums=boolean,
         num_devices=partial(integer, least=STEPPED[0], most=STEPPED[-1]),
         plans=list_of(one_of(*PLANS), "a list such as ['ring', 'tree']"))
def explore_plans(plan: str = 'ring', num_devices: int = 4, number: int = 0,
                  plans: Sequence[str] | None = None, sums: bool = False
                 ) -> None:
    """Choose a strategy and devices, and go through its rounds.

    number: the round to begin after; beyond the last, all are over.
    plans: names of those to choose from, of `PLANS`; without it, all.
    sums: write what a box holds as a number, with 1 from device 0, 2 from
    device 1 and so on.
    """
    names = dict.fromkeys([*(plans or PLANS), plan])
    live_picture(partial(draw_plan, plans=tuple(names)), {
        'plan': menu([(PLANS[name][0], name) for name in names], plan,
                     'plan'),
        'num_devices': choose(STEPPED, num_devices, 'devices'),
        'number': steps(_last_round, number, 'round'),
        'sums': menu({'bars for who is in': False,
                      'sums of 1, 2, 3, …': True}, sums, 'boxes')})

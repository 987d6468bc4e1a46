"""Every strategy to step through, with as many devices as one likes."""
from functools import cache, partial

from d2lps.checks import checked, flag, from_zero, list_of, one_of, whole
from d2lps_pictures.chart import wrapped
from d2lps_pictures.controls import choose, menu, steps
from d2lps_pictures.drawing import Drawing
from d2lps_pictures.menus import PLANS, STEPPED
from d2lps_pictures.player import plot_holdings
from d2lps_pictures.widgets import live_picture

def _explain(words):
    """A picture of words, where there is nothing to draw."""
    drawing = Drawing(720, 200, words)
    lines = [line for one in words.split('\n')
             for line in wrapped(one, 13, 690)]
    return drawing.text(360, 100, '\n'.join(lines), 13)


def _sentence(sends):
    """What the messages of a round do."""
    counts = {'added': sends.reduce.sum(), 'replacing': (~sends.reduce).sum()}
    return ', '.join(f'{count} message{"s" * int(count > 1)} {what}'
                     for what, count in counts.items() if count)


def _draw(words, schedule, number, sums):
    title = f'{words}, {schedule.num_devices} devices: ' + (
        f'after round {number} of {len(schedule.rounds)}, '
        f'{_sentence(schedule.rounds[number - 1])}' if number else
        f'before round 1 of {len(schedule.rounds)}')
    return plot_holdings(schedule, number, title, sums, width=720, signs=True)


@cache
def _plan(name, num_devices):
    """The schedule, or a text that says why there is none."""
    return PLANS[name][1](num_devices)


def _last_round(plan, num_devices, **others):
    schedule = _plan(plan, num_devices)
    return None if isinstance(schedule, str) else len(schedule.rounds)


def draw_plan(plan, num_devices, number, sums):
    """The picture of the toy: `plan` after round `number`, or the last."""
    schedule = _plan(plan, num_devices)
    if isinstance(schedule, str):
        return _explain(schedule)
    return _draw(PLANS[plan][0], schedule,
                 min(number, len(schedule.rounds)), sums)


@checked(plan=one_of(*PLANS), number=from_zero, sums=flag,
         num_devices=partial(whole, least=STEPPED[0], most=STEPPED[-1]),
         plans=list_of(one_of(*PLANS), "a list such as ['ring', 'tree']"))
def explore_plans(plan='ring', num_devices=4, number=0, plans=None,
                  sums=False):
    """Choose a strategy and devices, and go through its rounds.

    number: the round to begin after; beyond the last, all are over.
    plans: names of those to choose from, of `PLANS`; without it, all.
    sums: write what a box holds as a number, with 1 from device 0, 2 from
    device 1 and so on.
    """
    names = dict.fromkeys([*(plans or PLANS), plan])
    live_picture(draw_plan, {
        'plan': menu([(PLANS[name][0], name) for name in names], plan,
                     'plan'),
        'num_devices': choose(STEPPED, num_devices, 'devices'),
        'number': steps(_last_round, number, 'round'),
        'sums': menu({'bars for who is in': False,
                      'sums of 1, 2, 3, …': True}, sums, 'boxes')})

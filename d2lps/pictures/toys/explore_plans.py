"""Every strategy to step through, with as many devices as one likes."""
from collections.abc import Sequence
from functools import cache, partial

from d2lps.checks import boolean, checked, from_zero, integer, list_of, one_of
from d2lps.collectives import strategies
from d2lps.pictures.controls import choose, menu, steps
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.player import plot_holdings
from d2lps.pictures.sketch import in_words
from d2lps.pictures.widgets import live_picture

# Strategies by name: words for the menu, and a function of the number of
# devices that returns the schedule, or a text that says why there is none.
PLANS = {
    'gather_broadcast': ('gather and broadcast', strategies.gather_broadcast),
    'cpu': ('gather and broadcast on CPU',
            lambda n: strategies.gather_broadcast(n, 'cpu')),
    'sharded': ('sharded', strategies.sharded),
    'running_sum': ('running sum', strategies.running_sum),
    'pipelined': ('running sum, pipelined', lambda n: strategies.pipelined(
        strategies.running_sum(n), n)),
    'ring': ('ring', strategies.ring),
    'bidirectional_ring': ('ring in both directions',
                           strategies.bidirectional_ring),
    'two_rings': ('two rings of 8 V100 GPUs', lambda n: (
        strategies.two_rings() if n == 8 else
        'The cables of 8 GPUs make two rings.\n\n'
        'Move the slider "devices" to 8.')),
    'tree': ('tree', strategies.tree),
    'double_tree': ('double tree', strategies.double_tree),
    'recursive_doubling': ('recursive doubling',
                           strategies.recursive_doubling),
    'halving_doubling': ('halving and doubling', strategies.halving_doubling),
    'hierarchical': ('hierarchical, 2 machines', lambda n: (
        strategies.hierarchical(2, n // 2) if n % 2 == 0 else
        'Two machines share the devices equally: take an even number.\n\n'
        f'Move the slider "devices" to {n - 1} or {n + 1}.')),
    'parameter_server': ('one parameter server', lambda n: (
        strategies.parameter_server(n, 1))),
    'parameter_servers': ('as many servers as workers', lambda n: (
        strategies.parameter_server(n, n)))}
STEPPED = range(2, 9)  # devices, where one steps through a plan


@cache
def _plan(name, num_devices):
    """The schedule, or a text that says why there is none."""
    return PLANS[name][1](num_devices)


def _last_round(plan, num_devices, **others):
    schedule = _plan(plan, num_devices)
    return None if isinstance(schedule, str) else len(schedule.rounds)


def draw_plan(plan: str, num_devices: int, number: int, sums: bool
              ) -> Drawing:
    """Draw `plan` after round `number`, or after its last round.

    sums: as in `explore_plans`. Where there is no such plan, the drawing says
    why.
    """
    name, schedule = PLANS[plan][0], _plan(plan, num_devices)
    if isinstance(schedule, str):
        drawing = Drawing(720, 200, schedule)
        drawing.text(360, 100, schedule.replace('\n\n', '\n'), 13)
        return drawing
    last = len(schedule.rounds)
    number = min(number, last)
    # A phone shows a picture of a few devices as a whole. The title has two
    # lines in all rounds, so that nothing below moves.
    return plot_holdings(
        schedule, number, f'{name}, {num_devices} devices:\n' + (
            f'after round {number} of {last}, '
            f'{in_words(schedule.rounds[number - 1])}' if number else
            f'before round 1 of {last}'), sums,
        460 if num_devices <= 4 else 720, True)


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
    live_picture(draw_plan, {
        'plan': menu([(PLANS[name][0], name) for name in names], plan,
                     'plan'),
        'num_devices': choose(STEPPED, num_devices, 'devices'),
        'number': steps(_last_round, number, 'round'),
        'sums': menu({'bars for who is in': False,
                      'sums of 1, 2, 3, …': True}, sums, 'boxes')})

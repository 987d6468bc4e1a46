"""Few messages or few bytes: which plan is best for which size?"""
import math
from functools import cache, partial
from itertools import combinations

import numpy as np

from d2lps.checks import boolean, checked, integer, number
from d2lps.collectives import simulate, strategies, topology
from d2lps.pictures.chart import DASHES, Chart
from d2lps.pictures.controls import checkbox, choose
from d2lps.pictures.drawing import FRAME, INK, Drawing
from d2lps.pictures.style import BLUE, GRAY, GREEN, ORANGE, PURPLE, RED
from d2lps.pictures.units import SHORT_TIMES, SIZES, with_unit
from d2lps.pictures.widgets import live_picture

# By name: the function of the number of devices; colour, style and width.
PLANS = {
    'ring': (strategies.ring, BLUE, '-', 4),
    'tree': (strategies.tree, GREEN, '--', 2),
    'recursive doubling': (strategies.recursive_doubling, RED, '-.', 2),
    'halving and doubling': (strategies.halving_doubling, ORANGE, '-', 2),
    'sharded': (strategies.sharded, PURPLE, ':', 2)}
BYTES = np.logspace(2, 9, 36)  # bytes


def _costs(schedule):
    """Rounds, and how often a device's bytes pass the busiest cable.

    In a round, the cable to or from the switch that has most to carry
    decides; a round begins when the one before has ended.
    """
    times, share = 0, schedule.chunk_bytes(1)
    for sends in schedule.rounds:
        times += max(np.bincount(ends, share[sends.chunk]).max()
                     for ends in (sends.src, sends.dst))
    return len(schedule.rounds), times


def _crossings(costs, latency, bandwidth):
    """[(bytes, seconds, names)] where two lines cross, within the picture."""
    found = []
    for (name, one), (other, two) in combinations(costs.items(), 2):
        if abs(one[1] - two[1]) > 1e-9:
            size = (two[0] - one[0]) * latency * bandwidth / (one[1] - two[1])
            if BYTES[0] < size < BYTES[-1]:
                found.append((size, one[0] * latency + one[1] * size /
                              bandwidth, f'{name} – {other}'))
    return sorted(found)


@cache
def _plan(name, num_devices):
    """The schedule, and its `_costs`."""
    plan = PLANS[name][0](num_devices)
    return plan, _costs(plan)


def _log_ticks(limits, units):
    """Powers of ten between two numbers, in words."""
    low, high = limits
    powers = range(math.ceil(math.log10(low) - 1e-9),
                   math.floor(math.log10(high) + 1e-9) + 1)
    step = math.ceil(len(powers) / 8)
    return {10.0 ** k: with_unit(1.0001 * 10.0 ** k, units)
            for k in powers[::step]}


def draw_latency(num_devices: int, megabytes: float, latency: float,
                 bandwidth: float, sharded: bool) -> Drawing:
    """Lines by formula, points at the chosen size by the simulator."""
    nbytes, latency, bandwidth = (  # bytes, seconds, bytes per second
        megabytes * 1e6, latency / 1e6, bandwidth * 1e9)
    links = topology.pcie_switch(num_devices, bandwidth, latency / 2)
    names = [name for name in PLANS if name != 'sharded' or sharded]
    costs = {name: _plan(name, num_devices)[1] for name in names}
    curves = {name: rounds * latency + times * BYTES / bandwidth
              for name, (rounds, times) in costs.items()}
    points = {name: simulate.time(_plan(name, num_devices)[0], links,
                                  nbytes).seconds for name in names}
    least = min(points.values()) * (1 + 1e-9)
    best = ' and '.join(name for name in names if points[name] <= least)
    lowest, highest = np.sort([*curves.values()], axis=None)[[0, -1]]
    title = (f'{with_unit(nbytes, SIZES)} on {num_devices} devices: best: '
             f'{best}, {with_unit(least, SHORT_TIMES)}')
    drawing = Drawing(720, 536, title)
    xlim, ylim = (BYTES[0], BYTES[-1]), (lowest / 2, highest * 2)
    chart = Chart(drawing, 0, 0, 720, 340, xlim, ylim, title=title,
                  xlabel='size on each device', ylabel='time',
                  xscale='log', yscale='log',
                  xticks=_log_ticks(xlim, SIZES),
                  yticks=_log_ticks(ylim, SHORT_TIMES))
    chart.rule(x=nbytes, color=GRAY, style='-')
    for name in names:
        _, color, style, width = PLANS[name]
        chart.curve(BYTES, curves[name], color, style, width)
    for name in names:
        chart.curve([nbytes], [points[name]], PLANS[name][1], 'o')
    _mark_crossings(chart, costs, latency, bandwidth)
    for row, (name, (rounds, times)) in enumerate(costs.items()):
        _, color, style, width = PLANS[name]
        y = 356 + 19 * row
        drawing.add(f'<path d="M12 {y}h34" stroke="{color}" stroke-width='
                    f'"{width}" stroke-dasharray="{DASHES[style]}"/>')
        drawing.text(54, y, f'{name}: {rounds} × latency + {times:.3g} × '
                     'size / bandwidth', 12, 'start')
    drawing.text(708, 356, 'lines: the formula', 12, 'end')
    drawing.text(708, 375, 'dots: simulated', 12, 'end')
    drawing.alt += ('. Lines for each plan show how long it takes for 100 '
                    'bytes to 1 GB on each device.')
    return drawing


def _mark_crossings(chart, costs, latency, bandwidth):
    """Circles where lines cross, and a list of them below the chart."""
    drawing = chart.drawing
    crossings = _crossings(costs, latency, bandwidth)
    for size, seconds, _ in crossings:
        if seconds <= 1.0001 * min(a * latency + b * size / bandwidth
                                   for a, b in costs.values()):
            chart.rule(x=size, color=FRAME, style=':')
            right = size < 1e7
            drawing.text(chart.x(size) + (4 if right else -4), chart.top + 9,
                         with_unit(size, SIZES), 12,
                         'start' if right else 'end', bold=True)
        drawing.add(f'<circle cx="{chart.x(size):.1f}" cy="'
                    f'{chart.y(seconds):.1f}" r="4" fill="none" '
                    f'stroke="{INK}" stroke-width="1.5"/>')
    if crossings:
        drawing.text(12, 456, 'Lines cross (circles) at', 12, 'start',
                     bold=True)
    for k, (size, _, names) in enumerate(crossings):
        drawing.text(12 + 356 * (k % 2), 475 + 17 * (k // 2),
                     f'{with_unit(size, SIZES)}: {names}', 12, 'start')


@checked(num_devices=partial(integer, least=2, most=64), sharded=boolean,
         megabytes=partial(number, least=1e-4, most=1000),
         latency=partial(number, most=1e6),
         bandwidth=partial(number, least=1e-3, most=1e4))
def explore_latency(num_devices: int = 8, megabytes: float = 0.1,
                    latency: float = 10, bandwidth: float = 16,
                    sharded: bool = False) -> None:
    """Move latency, bandwidth and devices; see which plan is best for what.

    The devices have a cable each to one switch. megabytes: of each device's
    array. latency: µs of a message from device to device. bandwidth: GB/s of
    a cable, each way. sharded: show this plan as well. Its devices send
    n - 1 messages at once, which the model charges one latency for.
    """
    live_picture(draw_latency, {
        'num_devices': choose([*range(2, 17), 24, 32, 48, 64], num_devices,
                              'devices'),
        'megabytes': choose([.0001, .001, .01, .03, .1, .3, 1, 3, 10, 30, 100,
                             1000], megabytes, 'MB'),
        'latency': choose([0, 1, 2, 5, 10, 20, 50, 100, 1000], latency,
                          'latency µs'),
        'bandwidth': choose([.1, 1, 2, 4, 10, 16, 32, 100], bandwidth,
                            'GB/s'),
        'sharded': checkbox(sharded, 'also sharded')})

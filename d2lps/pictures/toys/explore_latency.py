"""Few messages or few bytes: which plan is best for which size?"""
import math
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from d2lps.checks import boolean, checked
from d2lps.collectives import simulate, strategies, topology
from d2lps.figures import describe
from d2lps.pictures.controls import checkbox, choose
from d2lps.pictures.drawing import wrapped
from d2lps.pictures.rows import LETTERS, WIDE, new_figure
from d2lps.pictures.style import BLUE, GRAY, GREEN, ORANGE, PURPLE, RED
from d2lps.pictures.widgets import live_picture
from d2lps.units import SHORT_TIMES, SIZES, with_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    crossings = []
    for (name, (rounds, times)), (other, (rounds2, times2)) in combinations(
            costs.items(), 2):
        if abs(times - times2) > 1e-9:
            size = (rounds2 - rounds) * latency * bandwidth / (times - times2)
            if BYTES[0] < size < BYTES[-1]:
                crossings.append((size, rounds * latency + times * size /
                                  bandwidth, f'{name} – {other}'))
    return sorted(crossings)


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
    step = max(1, math.ceil(len(powers) / 8))
    return {10.0 ** k: with_unit(1.0001 * 10.0 ** k, units)
            for k in powers[::step]}


def draw_latency(num_devices: int, megabytes: float, latency: float,
                 bandwidth: float, sharded: bool) -> 'Figure':
    """Lines by formula, points at the chosen size by the simulator."""
    nbytes, latency, bandwidth = (  # bytes, seconds, bytes per second
        megabytes * 1e6, latency / 1e6, bandwidth * 1e9)
    links = topology.pcie_switch(num_devices, bandwidth, latency / 2)
    names = [name for name in PLANS if name != 'sharded' or sharded]
    costs = {name: _plan(name, num_devices)[1] for name in names}
    points = {name: simulate.timing(_plan(name, num_devices)[0], links,
                                    nbytes).seconds for name in names}
    least = min(points.values()) * (1 + 1e-9)
    best = ' and '.join(name for name in names if points[name] <= least)
    title = (f'{with_unit(nbytes, SIZES)} on {num_devices} devices: best: '
             f'{best}, {with_unit(least, SHORT_TIMES)}')
    figure = new_figure(WIDE, 5.7, layout=None)
    figure.suptitle('\n'.join(wrapped(title, LETTERS, 680, True)), x=0.01,
                    ha='left', va='top')
    ax = figure.add_axes((0.115, 0.44, 0.845, 0.48), xscale='log',
                         yscale='log', xlabel='size on each device',
                         ylabel='time', xlim=(BYTES[0], BYTES[-1]))
    ax.axvline(nbytes, color=GRAY, linewidth=1.5)
    for name, (rounds, times) in costs.items():
        _, color, style, width = PLANS[name]
        ax.plot(BYTES, rounds * latency + times * BYTES / bandwidth,
                color=color, linestyle=style, linewidth=width,
                label=f'{name}: {rounds} × latency + {times:.3g} × size / '
                'bandwidth')
    low, high = ax.dataLim.intervaly
    ax.set_ylim(low / 2, high * 2)
    for name in names:
        ax.plot(nbytes, points[name], 'o', color=PLANS[name][1])
    for axis, units in (ax.xaxis, SIZES), (ax.yaxis, SHORT_TIMES):
        ticks = _log_ticks(axis.get_view_interval(), units)
        axis.set_ticks([*ticks], [*ticks.values()])
    ax.minorticks_off()  # Matplotlib's own words would take long
    crossings = _crossings(costs, latency, bandwidth)
    _mark_crossings(ax, crossings, costs, latency, bandwidth)
    figure.legend(loc='upper left', bbox_to_anchor=(0, 0.36),
                  borderaxespad=0)
    figure.text(0.99, 0.345, 'lines: the formula\ndots: simulated',
                ha='right', va='top')
    describe(
        ax, 'Lines for each plan show how long it takes for 100 bytes to 1 GB '
        'on each device; circles show where they cross: ' + ('; '.join(
            f'{with_unit(size, SIZES)}, {names}'
            for size, _, names in crossings) or 'nowhere'))
    return figure


def _mark_crossings(ax, crossings, costs, latency, bandwidth):
    """Circles where lines cross, and a list of them below the chart."""
    ax.plot([size for size, *_ in crossings],
            [seconds for _, seconds, _ in crossings], 'o', color='gray',
            fillstyle='none', markersize=8, markeredgewidth=1.8)
    best = [size for size, seconds, _ in crossings
            if seconds <= 1.0001 * min(a * latency + b * size / bandwidth
                                       for a, b in costs.values())]
    for size in best:  # at most two, whose words go to both sides
        ax.axvline(size, color='gray', linestyle=':', linewidth=1.5)
        right = size == best[-1] and size < 4.5e8
        ax.annotate(with_unit(size, SIZES), (size, 1), (
            4 if right else -4, -2), ha='left' if right else 'right',
            va='top', xycoords=ax.get_xaxis_transform(),
            textcoords='offset points', weight='bold')
    if crossings:
        ax.figure.text(0.015, 0.155, 'Lines cross (circles) at', va='top',
                       weight='bold')
    for k, (size, _, names) in enumerate(crossings):
        ax.figure.text(0.015 + 0.5 * (k % 2), 0.12 - 0.032 * (k // 2),
                       f'{with_unit(size, SIZES)}: {names}', va='top', size=9)


@checked(sharded=boolean)
def explore_latency(sharded: bool = False) -> None:
    """Move latency, bandwidth and devices; see which plan is best for what.

    The devices have a cable each to one switch. The latency is that of a
    message from device to device, the bandwidth that of a cable, each way.
    sharded: show this plan as well. Its devices send n - 1 messages at once,
    which the model charges one latency for.
    """
    live_picture(draw_latency, {
        'num_devices': choose([*range(2, 17), 24, 32, 48, 64], 8,
                              'devices'),
        'megabytes': choose([.0001, .001, .01, .03, .1, .3, 1, 3, 10, 30, 100,
                             1000], 0.1, 'MB'),
        'latency': choose([0, 1, 2, 5, 10, 20, 50, 100, 1000], 10,
                          'latency µs'),
        'bandwidth': choose([.1, 1, 2, 4, 10, 16, 32, 100], 16, 'GB/s'),
        'sharded': checkbox(sharded, 'also sharded')})

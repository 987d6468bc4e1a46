"""Few messages or few bytes: which plan is best for which size?"""
from functools import partial
from itertools import combinations

import numpy as np
from matplotlib import pyplot as plt

from d2lps.checks import checked, flag, number, whole
from d2lps.collectives import simulate, strategies, topology
from d2lps_pictures.controls import check, choose
from d2lps_pictures.style import BLUE, GREEN, ORANGE, PURPLE, RED
from d2lps_pictures.units import SHORT_TIMES, SIZES, with_unit
from d2lps_pictures.widgets import live_picture

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


def _draw(num_devices, megabytes, latency, bandwidth, sharded):
    """Lines by formula, points at the chosen size by the simulator."""
    nbytes, latency, bandwidth = (  # bytes, seconds, bytes per second
        megabytes * 1e6, latency / 1e6, bandwidth * 1e9)
    fig, ax = plt.subplots(figsize=(9.5, 4.6))
    fig.subplots_adjust(0.08, 0.11, 0.62, 0.93)
    links = topology.pcie_switch(num_devices, bandwidth, latency / 2)
    plans = {name: make(num_devices) for name, (make, *_) in PLANS.items()
             if name != 'sharded' or sharded}
    costs = {name: _costs(plan) for name, plan in plans.items()}
    curves, points = {}, {}
    for name, (rounds, times) in costs.items():
        _, color, style, width = PLANS[name]
        curves[name] = rounds * latency + times * BYTES / bandwidth
        points[name] = simulate.time(plans[name], links, nbytes).seconds
        ax.plot(BYTES, curves[name], style, color=color, linewidth=width,
                label=f'{name}:\n{rounds} × latency + {times:.3g} × '
                      'size / bandwidth')
        ax.plot(nbytes, points[name], 'o', color=color, markersize=7,
                markeredgecolor='white')
    least = min(points.values()) * (1 + 1e-9)
    best = ' and '.join(name for name in points if points[name] <= least)
    lowest, highest = np.sort([*curves.values()], axis=None)[[0, -1]]
    crossings = _crossings(costs, latency, bandwidth)
    for size, seconds, names in crossings:
        ax.plot(size, seconds, 'ko', markersize=5, fillstyle='none')
        if seconds <= 1.0001 * min(a * latency + b * size / bandwidth
                                   for a, b in costs.values()):
            ax.axvline(size, color='0.5', linewidth=1, linestyle=':')
            ax.text(size, highest, f' {with_unit(size, SIZES)} ', va='top',
                    weight='bold', ha='left' if size < 1e7 else 'right')
    if crossings:
        ax.text(1.04, 0, 'Lines cross (circles) at\n' + '\n'.join(
            f'{with_unit(size, SIZES)}: {names}'
            for size, _, names in crossings), transform=ax.transAxes, size=9)
    ax.axvline(nbytes, color='0.85', linewidth=4, zorder=0)
    ax.set(xscale='log', yscale='log', xlim=BYTES[[0, -1]],
           ylim=(lowest / 2, highest * 2), xlabel='size on each device',
           title=f'{with_unit(nbytes, SIZES)} on {num_devices} devices: best: '
                 f'{best}, {with_unit(least, SHORT_TIMES)}')
    ax.minorticks_off()
    for axis, units in ((ax.xaxis, SIZES), (ax.yaxis, SHORT_TIMES)):
        axis.set_major_formatter(
            lambda x, _, units=units: with_unit(1.0001 * x, units))
    ax.grid(color='0.93')
    ax.spines[['top', 'right']].set_visible(False)
    ax.legend(loc='upper left', bbox_to_anchor=(1.02, 1), frameon=False,
              fontsize=9, title='lines: the formula; dots: simulated',
              title_fontsize=9, alignment='left')
    return ax


@checked(num_devices=partial(whole, least=2, most=64), sharded=flag,
         megabytes=partial(number, least=1e-4, most=1000),
         latency=partial(number, most=1e6),
         bandwidth=partial(number, least=1e-3, most=1e4))
def explore_latency(num_devices=8, megabytes=0.1, latency=10, bandwidth=16,
                    sharded=False):
    """Move latency, bandwidth and devices; see which plan is best for what.

    The devices have a cable each to one switch. megabytes: of each device's
    array. latency: µs of a message from device to device. bandwidth: GB/s of
    a cable, each way. sharded: show this plan as well. Its devices send
    n - 1 messages at once, which the model charges one latency for.
    """
    live_picture(_draw, {
        'num_devices': choose([*range(2, 17), 24, 32, 48, 64], num_devices,
                              'devices'),
        'megabytes': choose([.0001, .001, .01, .03, .1, .3, 1, 3, 10, 30, 100,
                             1000], megabytes, 'MB'),
        'latency': choose([0, 1, 2, 5, 10, 20, 50, 100, 1000], latency,
                          'latency µs'),
        'bandwidth': choose([.1, 1, 2, 4, 10, 16, 32, 100], bandwidth,
                            'GB/s'),
        'sharded': check(sharded, 'also sharded')})

"""Servers that die, or join, on a circle of keys."""
from functools import partial

import numpy as np
from matplotlib import pyplot as plt

from d2lps.checks import checked, list_of, one_of, whole
from d2lps_pictures.controls import choose, menu
from d2lps_pictures.style import CHUNK_COLORS
from d2lps_pictures.widgets import live_picture
from d2lps.recovery import chain, circle, position

SERVERS = list_of(partial(whole, least=0, most=1000), 'a list of numbers')
UP_TO_1000 = partial(whole, most=1000)
COLOR = np.resize(CHUNK_COLORS, 1001)  # of each server
EVENTS = {'nothing happens': lambda n: [*range(n)],
          'server 1 dies': lambda n: [0, *range(2, n)],
          'servers 1 and 2 die': lambda n: [0, *range(3, n)],
          'a server joins': lambda n: [*range(n + 1)]}


def _xy(key, radius):
    """Where a name is drawn; the circle begins at the top, clockwise."""
    angle = 2 * np.pi * np.array([position(name) for name in key])
    return radius * np.sin(angle), radius * np.cos(angle)


def _draw_circle(ax, servers, num_points, chains):
    names = [(f'server {server}, point {k}', server)
             for server in servers for k in range(num_points)]
    x, y = _xy([name for name, _ in names], 1)
    ax.add_patch(plt.Circle((0, 0), 1, fill=False, edgecolor='0.7'))
    ax.scatter(x, y, max(4, 60 - 2 * len(names)), marker='s',
               c=[COLOR[server] for _, server in names])
    for k, (_, server) in enumerate(names if num_points <= 4 else ()):
        ax.text(0.86 * x[k], 0.86 * y[k], server, color=COLOR[server],
                ha='center', va='center', weight='bold')
    for k in range(max(map(len, chains.values()), default=0)):
        ax.scatter(*_xy([f'key {key}' for key in chains], 1.13 + 0.1 * k), 22,
                   [COLOR[found[k]] for found in chains.values()])
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.45, 1.45), aspect='equal')
    ax.axis('off')


def _can_be_seen(before, after, num_points, **_):
    for name, servers in ('before', before), ('after', after):
        if len(servers) > 100 or len(servers) * num_points > 10_000:
            raise ValueError(f'{name} must be at most 100 servers, and their '
                             f'points at most 10,000; it was {len(servers)} '
                             f'servers of {num_points} points each')


@checked(_can_be_seen, before=SERVERS, after=SERVERS, replicas=whole,
         num_keys=UP_TO_1000, num_points=UP_TO_1000)
def plot_circle(before, after, replicas=1, num_keys=32, num_points=2):
    """The circle with the servers `before`, and with those `after`.

    A square is a point of a server, in its colour. Further out is a dot for
    each key, in the colour of the server that it belongs to, and beyond it
    one for each replica. On the right, an open circle marks keys that
    now belong to another server, and a cross those that are lost: all that
    had them died before anything could be copied. Returns both axes.
    """
    def chains(servers):
        places = circle(servers, num_points)
        return {key: chain(key, places, min(replicas, len(servers)))
                for key in range(num_keys)}

    was, now = chains(before), chains(after)
    lost = [key for key in was if not {*was[key]} & {*after}]
    kept = {key: now[key] for key in now if key not in lost}
    moved = [key for key in kept if was[key][0] != now[key][0]]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6))
    _draw_circle(left, before, num_points, was)
    _draw_circle(right, after, num_points, kept)
    right.scatter(*_xy([f'key {key}' for key in moved], 1.13), 70, 'none',
                  edgecolors='black')
    right.scatter(*_xy([f'key {key}' for key in lost], 1.13), 70, 'black',
                  'x')
    left.set_title(f'{len(before)} servers, {num_keys} keys')
    right.set_title(f'{len(after)} servers: {len(moved)} keys have moved, '
                    f'{len(lost)} are lost')
    figure.text(0.5, 0.02, 'square: a point of a server; dots: a key, and '
                'its replicas; open circle: moved; cross: lost', ha='center')
    figure.subplots_adjust(0, 0.05, 1, 0.93, 0)
    return left, right


@checked(event=one_of(*EVENTS), replicas=partial(whole, most=3),
         num_servers=partial(whole, least=4, most=16),
         num_points=partial(whole, most=64))
def explore_circle(event='server 1 dies', replicas=1, num_servers=4,
                   num_points=2):
    """Choose servers and replicas, lose a server, or let one join."""
    def draw(event, replicas, n, num_points):
        return plot_circle([*range(n)], EVENTS[event](n), replicas,
                           num_points=num_points)[0]

    live_picture(draw, dict(
        event=menu([*EVENTS], event, 'event'),
        replicas=choose([1, 2, 3], replicas, 'replicas'),
        n=choose([*range(4, 9)], num_servers, 'servers'),
        num_points=choose([1, 2, 4, 16, 64], num_points, 'points each')))

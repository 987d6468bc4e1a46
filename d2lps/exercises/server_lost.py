"""Going on after servers were lost: which keys need copies, from and to whom.

To chapter 17, notebooks/17-when-a-server-dies.ipynb. The student's function
gives the orders.
"""
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import index
from typing import Any, NamedTuple, TypeAlias

from d2lps.checks import shown
from d2lps.exercises.checking import Answer, Check, Notes, Picture, Wrong

# For each key: the servers that have a copy, and the number of its last push.
Copies: TypeAlias = dict[int, dict[int, int]]
Order: TypeAlias = Sequence[int]  # key, sender, receiver


class Death(NamedTuple):
    """What there was before, the orders, and what there is after them.

    wanted: how many copies each key should have. left: of the copies before,
    those on living servers. lost: what the student's function returned.
    """
    dead: Sequence[int]
    alive: list[int]
    wanted: int
    before: Copies
    left: Copies
    orders: Sequence[Order]
    lost: list | str
    after: Copies


def first_copies(keys: int, servers: int, replicas: int,
                 chance: random.Random) -> Copies:
    """{key: {server: push}}: each key on the servers with the fewest keys."""
    load, copies = [0] * servers, {}
    for key in range(keys):
        order = sorted(range(servers), key=lambda s: (load[s],
                                                      chance.random()))
        copies[key] = dict.fromkeys(sorted(order[:replicas]), 0)
        for server in copies[key]:
            load[server] += 1
    return copies


def push(copies: Copies, chance: random.Random) -> None:
    """A push of each key; some have not reached the whole chain."""
    for key, at in copies.items():
        newest = max(at.values()) + 1
        behind = chance.random() < 0.3 and chance.randrange(1, len(at) + 1)
        late = chance.sample([*at], behind)
        copies[key] = {server: newest + (server not in late) for server in at}


def story(go_on: Callable[..., tuple], keys: int, servers: int, replicas: int,
          deaths: Iterable[Sequence[int]], seed: int) -> Iterator[Death]:
    """Live through all deaths.

    go_on(copies, alive, replicas): the orders, and the lost keys. An order
    that cannot be obeyed changes nothing.
    """
    chance, alive = random.Random(seed), [*range(servers)]
    copies = first_copies(keys, servers, replicas, chance)
    for dead in deaths:
        push(copies, chance)
        alive = [server for server in alive if server not in dead]
        orders, lost = go_on(copies, alive, replicas)
        left, after = ({key: {server: at[server] for server in at
                              if server in alive}
                        for key, at in copies.items()} for _ in range(2))
        for key, sender, receiver in orders:
            if sender in after.get(key, ()) and receiver in alive:
                after[key][receiver] = after[key][sender]
        yield Death(dead, alive, min(replicas, len(alive)), copies, left,
                    orders, lost, after)
        copies = {key: at for key, at in after.items() if at}


def run(answer: Answer, **case: Any) -> Notes:
    """The orders after each death, and what was returned."""
    notes: list[tuple] = []

    def go_on(copies, alive, replicas):
        orders = []

        def copy(key, sender, receiver):
            orders.append((index(key), index(sender), index(receiver)))
        lost = answer({key: {**at} for key, at in copies.items()}, [*alive],
                      replicas, copy)
        notes.append((orders, [*lost] if isinstance(lost, (
            list, tuple, set)) else shown(lost)))
        return notes[-1]

    for _ in story(go_on, **case):
        pass
    return notes


def deaths_of(notes: Notes, **case: Any) -> Iterator[Death]:
    answers = iter(notes)
    return story(lambda *_: next(answers), **case)


def judge(wrong_in: Callable[[Death], str], notes: Notes,
          **case: Any) -> None:
    """Raise what `wrong_in` says of a death, the first that is not ''."""
    for death in deaths_of(notes, **case):
        said = wrong_in(death)
        if said:
            which = ' and '.join(map(str, death.dead))
            raise Wrong(f'after the death of {which}: {said}')


def wrong_order(death: Death) -> str:
    """The first order that is wrong or for nothing, or what is wrong in the
    end."""
    now = {key: {**at} for key, at in death.left.items()}
    for key, sender, receiver in death.orders:
        at = now.get(key, {})
        newest = max(at.values(), default='none')
        if at.get(sender) == newest != at.get(receiver) and (
                receiver in death.alive):
            at[receiver] = newest
            continue
        was = [f'server {server} ' + (
            f'had push {at[server]} of key {key}' if server in at else
            'was dead' if server not in death.alive else
            f'had no copy of key {key}') for server in (sender, receiver)]
        return (f'when copy({key}, {sender}, {receiver}) was called, '
                f'{" and ".join(was)}. The newest push on a living server '
                f'was {newest}. A copy goes from a living server with the '
                'newest push to a living server without it.')
    return wrong_count(death) or next(
        (f'server {server} still has push {at[server]} of key {key}, and '
         f'another server has push {max(at.values())}. A pull from this '
         'server would get an old value.'
         for key, at in now.items() for server in at
         if at[server] < max(at.values())), '')


def wrong_count(death: Death) -> str:
    """Are the lost keys named, and has each key as many copies as it can?"""
    if isinstance(death.lost, str):
        return (f'your function returned {death.lost}. Return the list of '
                'the lost keys, or [] if no key is lost.')
    right = [key for key, at in death.left.items() if not at]
    for key in [*death.left, *death.lost]:
        if death.lost.count(key) != right.count(key):
            was, at = (sorted(copies.get(key, ()))
                       for copies in (death.before, death.left))
            return (f'key {shown(key)} was on the servers {was}, and '
                    f'{at or "none"} of them live. Your list of lost keys '
                    f'has it {death.lost.count(key)} times, and '
                    f'{right.count(key)} is right.')
    return next((_copies(key, at, death) for key, at in death.after.items()
                 if at and len(at) != death.wanted), '')


def _copies(key, at, death):
    return (f'in the end, the copies of key {key} are on {sorted(at)}, and '
            f'the right number of copies is {death.wanted}.')


def load_of(copies: Copies, servers: Iterable[int]) -> list[int]:
    return [sum(server in at for at in copies.values()) for server in servers]


def wrong_load(death: Death) -> str:
    """Has a server far more keys than the mean, and than it had?"""
    was, load = (load_of(copies, death.alive)
                 for copies in (death.before, death.after))
    for key, at in death.after.items():
        if 0 < len(at) < death.wanted:
            return (f'{_copies(key, at, death)} The load is checked when each '
                    'key has all its copies.')
    most, worst = math.ceil(sum(load) / len(load)) + 1, max(load)
    if worst <= max(most, *was):
        return ''
    k, least = load.index(worst), load.index(min(load))
    return (f'server {death.alive[k]} has {worst} keys in the end, and at '
            f'most {most} are right. {worst - was[k]} of '
            f'{sum(load) - sum(was)} new copies went to it, so its link and '
            f'its memory are the bottleneck. Server {death.alive[least]} has '
            f'{min(load)} keys.')


def says_load(notes: Notes, keys: int, **case: Any) -> str:
    [death] = deaths_of(notes, keys=keys, **case)
    load = load_of(death.after, death.alive)
    return (f'With {keys} keys, the fullest of {len(load)} servers has '
            f'{max(load)} keys, and the mean is {sum(load) / len(load):g}.')


def picture(answer: Answer) -> Picture:
    """How many keys each server has before and after a death."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    from d2lps.pictures.style import ink_on
    [case], servers = CHECKS['load'].cases[:1], range(5)
    [death] = deaths_of(run(answer, **case), **case)
    had = load_of(death.before, servers)
    came = [sum(receiver == server and server not in death.before.get(key, ())
                for key, _, receiver in death.orders) for server in servers]
    names = [f'server {server}' + ', dead' * (server in death.dead)
             for server in servers]
    figure = new_figure(WIDE, 2.62)
    ax = figure.subplots()
    for label, left, numbers, color in (
            ('had a copy before', 0, had, BLUE),
            ('new copies', had, came, ORANGE)):
        bars = ax.barh(names, numbers, left=left, color=color, label=label)
        ax.bar_label(bars, [number or '' for number in numbers],
                     label_type='center', color=ink_on(color))
    for row, total in enumerate(map(sum, zip(had, came))):
        ax.annotate(str(total), (max(total, 31), row), (6, 0), va='center',
                    weight='bold', textcoords='offset points')
    ax.axvline(31, color='gray', linestyle='--', linewidth=1.5)
    ax.set(title=f'{sum(came)} new copies, and '
           f'{len(death.orders) - sum(came)} others; dashed: the target, at '
           'most 31', xlabel='keys')
    ax.invert_yaxis()
    ax.grid(False, axis='y')
    legend_below(ax)
    return figure


def _case(keys, servers, replicas, deaths, seed):
    return {'keys': keys, 'servers': servers, 'replicas': replicas,
            'deaths': deaths, 'seed': seed}


CHECKS = {
    'copies': Check([_case(8, 5, 2, [[2]], 1), _case(12, 6, 3, [[4]], 2),
                     _case(9, 4, 2, [[0, 3]], 2)], run,
                    partial(judge, wrong_order),
                    'each key has all its copies again, no copy was made for '
                    'nothing, and lost keys are in your list.'),
    'again': Check([_case(10, 5, 2, [[1], [4], [0], [3]], 4),
                    _case(10, 5, 2, [[0], [2, 1]], 5)], run,
                   partial(judge, wrong_count),
                   'it works after each death, down to the last server.'),
    'load': Check([_case(60, 5, 2, [[2]], 1), _case(50, 6, 3, [[0]], 2),
                   _case(60, 6, 2, [[1], [3]], 6)],
                  run, partial(judge, wrong_load),
                  'no server gets more keys than the mean plus one.',
                  says_load)}

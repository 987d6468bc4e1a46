"""Going on after servers were lost: which keys need copies, from and to whom.

To chapter 17, notebooks/17-when-a-server-dies.ipynb. The student's function
gives the orders.
"""
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import index
from typing import Any, NamedTuple, TypeAlias

from d2lps.exercises.charts import bar_chart
from d2lps.exercises.checking import Answer, Check, Differs, Picture, Wrong
from d2lps.explaining import brief, nothing_returned

# For each key: the servers that have a copy, and the number of its last push.
Copies: TypeAlias = dict[int, dict[int, int]]
Order: TypeAlias = Sequence[int]  # key, sender, receiver


class Death(NamedTuple):
    """The copies before some servers die, the orders, and the copies after.

    wanted: how many copies each key should have. left: of the copies before,
    those on living servers. lost: the list that the student's function
    returned, or words about what is no list.
    """
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
        yield Death(alive, min(replicas, len(alive)), copies, left, orders,
                    lost, after)
        copies = {key: at for key, at in after.items() if at}


def run(answer: Answer, **case: Any) -> list[tuple]:
    """The orders after each death, and what was returned."""
    notes: list[tuple] = []

    def go_on(copies, alive, replicas):
        orders = []

        def copy(key, sender, receiver):
            orders.append((index(key), index(sender), index(receiver)))
        lost = answer({key: {**at} for key, at in copies.items()}, [*alive],
                      replicas, copy)
        notes.append((orders, [*lost] if isinstance(
            lost, (list, tuple, set)) else nothing_returned(answer)
            if lost is None else f'you return {brief(lost)}; a list of the '
                                 'lost keys is right.'))
        return notes[-1]

    for _ in story(go_on, **case):
        pass
    return notes


def deaths_of(notes: list[tuple], **case: Any) -> Iterator[Death]:
    answers = iter(notes)
    return story(lambda *_: next(answers), **case)


def judge(judges: Sequence[Callable[[Death], None]], notes: list[tuple],
          **case: Any) -> None:
    """Each of `judges` raises `Wrong` if something is wrong after a death."""
    for death in deaths_of(notes, **case):
        for judge_death in judges:
            judge_death(death)


def judge_orders(death: Death) -> None:
    """Every order must bring the newest push where it is missing."""
    now = {key: {**at} for key, at in death.left.items()}
    for key, sender, receiver in death.orders:
        at = now.get(key, {})
        newest = max(at.values(), default=None)
        right = [server for server in death.alive if at.get(server) != newest
                 and (server in at or len(at) < death.wanted)]
        if at.get(sender) == newest is not None and receiver in right:
            at[receiver] = newest
            continue
        good = [server for server in at if at[server] == newest]
        server = receiver if sender in good else sender
        why = ('is dead' if server not in death.alive else
               f'has push {at[server]} of key {key}' if server in at else
               f'has no copy of key {key}' if server == sender else
               f'is not needed: {brief(sorted(at))} have key {key}')
        raise Differs(
            f'{_told(death, key)}you call copy({key}, {sender}, {receiver}); '
            + (f'a copy from {_any(good)} to {_any(right)} is right'
               if good and right else 'no more copies are right'), None,
            known={('why',): f'Server {server} {why}.'})
    for key, at in now.items():
        for server in at:
            if at[server] < max(at.values()):
                raise Wrong(f'{_told(death, key)}server {server} has push '
                            f'{at[server]} in the end; {max(at.values())} is '
                            'right.')


def _any(servers):
    return ' or '.join(map(str, servers))


def _told(death, key):
    """Words: what the student's function was told about a key."""
    return f'copies[{key}] = {death.before.get(key)}, alive = {death.alive}: '


def judge_count(death: Death, least: bool = False) -> None:
    """Each key that is left must have as many copies as it can.

    least: it may have more.
    """
    for key, at in death.after.items():
        if at and (len(at) < death.wanted or
                   len(at) > death.wanted and not least):
            calls = ' and '.join(f'copy{(*order,)}' for order in death.orders
                                 if order[0] == key)
            raise Differs(
                f'{_told(death, key)}in the end key {key} is on '
                f'{sorted(at)}; {death.wanted} servers are right', None,
                known={('why',): f'You call {calls}.' if calls else
                       f'You never copy key {key}.'})


def judge_lost(death: Death) -> None:
    """Each lost key once, and no other."""
    if isinstance(death.lost, str):
        raise Wrong(death.lost, anywhere=True)
    right = [key for key, at in death.left.items() if not at]
    for key in [*death.left, *death.lost]:
        if death.lost.count(key) != right.count(key):
            raise Wrong(f'{_told(death, key)}you return {brief(death.lost)}; '
                        f'{brief(right)} is right.')


def load_of(copies: Copies, servers: Iterable[int]) -> list[int]:
    return [sum(server in at for at in copies.values()) for server in servers]


def judge_load(death: Death) -> None:
    """No server has far more keys than the mean, and than it had."""
    was, load = (load_of(copies, death.alive)
                 for copies in (death.before, death.after))
    # The mean, rounded up, plus one.
    most, worst = 1 - -sum(load) // len(load), max(load)
    if worst > max(most, *was):
        k = load.index(worst)
        raise Wrong(
            f'with {len(death.after)} keys and alive = {death.alive}, server '
            f'{death.alive[k]} has {worst} keys in the end; at most {most} '
            f'are right. It got {worst - was[k]} of {sum(load) - sum(was)} '
            'new copies.')


def says_load(notes: list[tuple], keys: int, **case: Any) -> str:
    [death] = deaths_of(notes, keys=keys, **case)
    load = load_of(death.after, death.alive)
    return (f'With {keys} keys, the fullest of {len(load)} servers has '
            f'{max(load)} keys, and the mean is {sum(load) / len(load):g}.')


def picture(answer: Answer) -> Picture:
    """Numbers of keys of each server before and after a death."""
    import pandas as pd
    case, servers = CHECKS['load'].cases[0], range(5)
    [death] = deaths_of(run(answer, **case), **case)
    came = [sum(receiver == server and server not in death.before.get(key, ())
                for key, _, receiver in death.orders) for server in servers]
    return bar_chart(pd.DataFrame(
        {'had a copy before': load_of(death.before, servers),
         'new copies': came},
        [f'server {server}' + ', dead' * (server not in death.alive)
         for server in servers]), stacked=True, xlabel='keys',
        title=f'{sum(came)} new copies, and {len(death.orders) - sum(came)} '
              f'others; the target: at most 31 keys').figure


def _case(keys, servers, replicas, deaths, seed):
    return {'keys': keys, 'servers': servers, 'replicas': replicas,
            'deaths': deaths, 'seed': seed}


CASE = 'replicas = {replicas}'
CHECKS = {
    'copies': Check([_case(8, 5, 2, [[2]], 1), _case(12, 6, 3, [[4]], 2),
                     _case(9, 4, 2, [[0, 3]], 2),
                     _case(9, 6, 3, [[1, 4]], 2)], run,
                    partial(judge, [judge_orders, judge_lost, judge_count]),
                    'each key has all its copies again, no copy was made for '
                    'nothing, and lost keys are in your list.', case=CASE),
    'again': Check([_case(10, 5, 2, [[1], [4], [0], [3]], 4),
                    _case(10, 5, 2, [[0], [2, 1]], 5),
                    _case(9, 6, 3, [[1, 4], [0, 2]], 1)], run,
                   partial(judge, [judge_lost, judge_count]),
                   'it works after each death, down to the last server.',
                   case=CASE),
    'load': Check([_case(60, 5, 2, [[2]], 1), _case(50, 6, 3, [[0]], 2),
                   _case(60, 6, 2, [[1], [3]], 6)],
                  run, partial(judge, [
                      partial(judge_count, least=True), judge_load]),
                  'no server gets more keys than the mean plus one.',
                  says_load, CASE)}

"""Going on after servers were lost: which keys need copies, from and to whom.

To chapter 17, notebooks/17-when-a-server-dies.ipynb. The student's function
gives the orders.
"""
import math
import random
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any, TypeAlias

from d2lps.exercises.checking import Answer, Check, Notes, Picture, Wrong

# For each key: the servers that have a copy, and the number of its last push.
Copies: TypeAlias = dict[int, dict[int, int]]
Call: TypeAlias = Sequence[int]  # an order: key, sender, receiver


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


def story(calls_of: Callable[..., tuple], keys: int, servers: int,
          replicas: int, deaths: Iterable[Sequence[int]], seed: int,
          judge_death: Callable[..., Copies]) -> list[tuple]:
    """Live through all deaths; [(dead, alive, copies before, after), ...]

    calls_of(copies, alive, replicas): the orders, and the lost keys.
    judge_death(copies, alive, replicas, calls, lost): what there is then;
    raises `Wrong` if that is not as it must be.
    """
    chance, alive, told = random.Random(seed), [*range(servers)], []
    copies = first_copies(keys, servers, replicas, chance)
    for dead in deaths:
        push(copies, chance)
        alive = [server for server in alive if server not in dead]
        answer = calls_of(copies, alive, replicas)
        try:
            after = judge_death(copies, alive, replicas, *answer)
        except Wrong as error:
            which = ' and '.join(map(str, dead))
            raise Wrong(f'after the death of {which}: {error}') from None
        told.append((dead, alive, copies, after))
        copies = {key: at for key, at in after.items() if at}
    return told


def obeyed(answer: Answer, notes: list) -> Callable[..., tuple]:
    """The student's function as `story` wants it; all goes into `notes`."""
    def calls_of(copies, alive, replicas):
        calls = []

        def copy(key, sender, receiver):
            calls.append((index(key), index(sender), index(receiver)))
        lost = answer({key: {**at} for key, at in copies.items()}, [*alive],
                      replicas, copy)
        notes.append((calls, [*lost] if isinstance(lost, (list, tuple, set))
                      else f'{lost!r:.60}'))
        return notes[-1]
    return calls_of


def run(answer: Answer, **case: Any) -> Notes:
    notes: list[tuple] = []
    story(obeyed(answer, notes), **case, judge_death=after_calls)
    return notes


def after_calls(copies: Copies, alive: Sequence[int], replicas: int,
                calls: Iterable[Call], lost: Any) -> Copies:
    """What there is after the orders, as far as they can be done."""
    new = {key: {server: number for server, number in at.items()
                 if server in alive} for key, at in copies.items()}
    for key, sender, receiver in calls:
        if sender in new.get(key, ()) and receiver in alive:
            new[key][receiver] = new[key][sender]
    return new


def one_copy(new: Copies, alive: Sequence[int], key: int, sender: int,
             receiver: int) -> None:
    """Do what `copy(key, sender, receiver)` says, or say why not."""
    order = f'copy({key!r}, {sender!r}, {receiver!r})'
    if key not in new:
        raise Wrong(f'{order} was called, but there is no such key.')
    at, newest = new[key], max(new[key].values(), default=0)
    if sender not in alive:
        raise Wrong(f'{order} reads from server {sender!r}, which is dead '
                    'and cannot answer.' + ('' if at else
                    f' Key {key} is lost: no living server has it.'))
    if receiver not in alive:
        raise Wrong(f'{order} writes to server {receiver!r}, which is dead.')
    if sender not in at:
        raise Wrong(f'{order} was called, but server {sender} has no copy of '
                    f'key {key}; {sorted(at)} have one.')
    if at[sender] < newest:
        raise Wrong(f'{order} hands on an old value: server {sender} has '
                    f'push {at[sender]} of key {key}, and push {newest} has '
                    'reached a living server.')
    if at.get(receiver) == newest:
        raise Wrong(f'{order} moves a key for nothing: server {receiver} has '
                    'this value already. Two copies on one server die '
                    'together.')
    at[receiver] = newest


def judge_calls(copies: Copies, alive: Sequence[int], replicas: int,
                calls: Iterable[Call], lost: Any) -> Copies:
    """Can each order be obeyed, is it needed, and what has each server?"""
    new = after_calls(copies, alive, replicas, (), lost)
    for call in calls:
        one_copy(new, alive, *call)
    judge_count(copies, alive, replicas, calls, lost)
    for key, at in new.items():
        newest = max(at.values(), default=0)
        old = [server for server in at if at[server] < newest]
        if old:
            raise Wrong(f'server {old[0]} still has push {at[old[0]]} of key '
                        f'{key}, and another server has push {newest}. A '
                        'pull from this server would get an old value.')
    return new


def judge_count(copies: Copies, alive: Sequence[int], replicas: int,
                calls: Iterable[Call], lost: Any) -> Copies:
    """Has each key as many copies as it can, and are the lost ones named?"""
    if isinstance(lost, str):
        raise Wrong(f'your function returned {lost}. Return the list of the '
                    'lost keys, or [] if no key is lost.')
    before = after_calls(copies, alive, replicas, (), lost)
    new = after_calls(copies, alive, replicas, calls, lost)
    gone = [key for key in before if not before[key]]
    for key in gone:
        if key not in lost:
            raise Wrong(f'key {key} is lost, because all servers that had '
                        f'it, {sorted(copies[key])}, are dead; your list '
                        'does not name it.')
    for key in lost:
        if lost.count(key) > 1:
            raise Wrong(f'your list names key {key!r:.20} {lost.count(key)} '
                        'times. Once is wanted.')
        if key not in gone:
            has = [server for one, at in copies.items() if one == key
                   for server in at if server in alive]
            raise Wrong(f'your list says that key {key!r:.20} is lost; it is '
                        'not.' + f' Of the living servers, {has} had '
                                 'it.' * bool(has))
    wanted = min(replicas, len(alive))
    for key, at in new.items():
        if len(at) > wanted:
            raise Wrong(f'key {key} is on {len(at)} servers, {sorted(at)}, '
                        f'in the end; {wanted} are wanted. A copy was made '
                        'for nothing.')
        if at and len(at) < wanted:
            raise Wrong(f'key {key} has {len(at)} of {wanted} copies in the '
                        f'end, on {sorted(at)}. The next death can lose it.')
    return new


def judge(notes: Notes, judge_death: Callable[..., Copies] = judge_calls,
          **case: Any) -> list[tuple]:
    if len(notes) != len(case['deaths']):
        raise Wrong('your function did not end after each death.')
    notes = iter(notes)
    return story(lambda *_: next(notes), **case, judge_death=judge_death)


def judge_again(notes: Notes, **case: Any) -> None:
    judge(notes, judge_count, **case)


def load_of(copies: Copies, servers: Iterable[int]) -> list[int]:
    return [sum(server in at for at in copies.values()) for server in servers]


def most(after: Copies, alive: Sequence[int]) -> int:
    """The target: the mean number of keys on a server, rounded up, and 1."""
    return math.ceil(sum(map(len, after.values())) / len(alive)) + 1


def judge_load(notes: Notes, **case: Any) -> None:
    for _, alive, copies, after in judge(notes, after_calls, **case):
        for key, at in after.items():
            if at and len(at) < min(case['replicas'], len(alive)):
                raise Wrong(f'key {key} has {len(at)} of {case["replicas"]} '
                            'copies in the end. The load is checked when '
                            'each key has all its copies.')
        was, load = load_of(copies, alive), load_of(after, alive)
        target, worst = most(after, alive), max(load)
        if worst > max(target, *was):
            k = load.index(worst)
            new = sum(load) - sum(was)
            raise Wrong(f'server {alive[k]} has {worst} keys in the end and '
                        f'the target is at most {target}. {worst - was[k]} '
                        f'of {new} new copies went to it, so its link and '
                        'its memory are the bottleneck.')


def picture(answer: Answer, keys: int = 60, servers: int = 5,
            replicas: int = 2, dead: int = 2, seed: int = 1) -> Picture:
    """How many keys each server has before and after a death."""
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.drawing import wrapped
    from d2lps.pictures.rows import WIDE, legend_below, new_figure
    from d2lps.pictures.style import ink_on
    seen: list[tuple] = []
    notes: list[tuple] = []
    follow = obeyed(answer, notes)

    def calls_of(*world):
        seen.append(world)
        return follow(*world)
    said = ''
    try:
        story(calls_of, keys, servers, replicas, [[dead]], seed, judge_calls)
    except Wrong as error:
        if not notes:
            raise
        said = f'. Not yet: {error}'
    copies, alive, _ = seen[0]
    had = load_of(copies, range(servers))
    calls = notes[0][0]
    came = [sum(receiver == server and server not in copies.get(key, ())
                for key, _, receiver in calls) for server in range(servers)]
    names = [f'server {s}' + ('' if s in alive else ', dead')
             for s in range(servers)]
    most = math.ceil(keys * replicas / len(alive)) + 1
    title = wrapped(f'{sum(came)} new copies, and {len(calls) - sum(came)} '
                    f'others; dashed: the target, at most {most}{said}', 13,
                    560, bold=True)
    figure = new_figure(WIDE, 1.2 + 0.25 * servers + 0.17 * len(title))
    ax = figure.subplots()
    for label, left, numbers, color in (
            ('had a copy before', 0, had, BLUE),
            ('new copies', had, came, ORANGE)):
        bars = ax.barh(names, numbers, left=left, color=color, label=label)
        ax.bar_label(bars, [number or '' for number in numbers],
                     label_type='center', color=ink_on(color))
    for row, total in enumerate(map(sum, zip(had, came))):
        ax.annotate(str(total), (max(total, most), row), (6, 0), va='center',
                    weight='bold', textcoords='offset points')
    ax.axvline(most, color='gray', linestyle='--', linewidth=1.5)
    ax.set(title='\n'.join(title), xlabel='keys')
    ax.invert_yaxis()
    ax.grid(False, axis='y')
    legend_below(ax)
    return figure


def _case(keys, servers, replicas, deaths, seed):
    return {'keys': keys, 'servers': servers, 'replicas': replicas,
            'deaths': deaths, 'seed': seed}


CHECKS = {
    'copies': Check([_case(8, 5, 2, [[2]], 1), _case(12, 6, 3, [[4]], 2),
                     _case(9, 4, 2, [[0, 3]], 2)], run, judge,
                    'each key has all its copies again, no copy was made for '
                    'nothing, and lost keys are in your list.'),
    'again': Check([_case(10, 5, 2, [[1], [4], [0], [3]], 4),
                    _case(10, 5, 2, [[0], [2, 1]], 5)], run, judge_again,
                   'it works after each death, down to the last server.'),
    'load': Check([_case(60, 5, 2, [[2]], 1), _case(50, 6, 3, [[0]], 2),
                   _case(60, 6, 2, [[1], [3]], 6)],
                  run, judge_load,
                  'no server has more keys than the mean plus one: 31 of 60 '
                  'keys on four servers.')}

"""Exercise: a server that adds up rounds, whoever is fast or slow.

To chapter 8, notebooks/08-a-store-from-scratch.ipynb.
"""
import gc
import random
import sys
import tracemalloc
from collections import Counter
from math import isfinite
from typing import NamedTuple

import numpy as np

from d2lps_exercises.checking import Check, Wrong, without

SHAPE = 2,  # of a value, as in the chapter
JUNK = -7.0  # what a worker writes into an array that it uses again
WARM, ROUNDS, LARGE = 10, 30, 2_000  # rounds, and elements, for the memory


class Push(NamedTuple):
    """The push with this number, from 1, of a worker for a key."""
    key: str
    rank: int
    number: int
    value: float


class Pull(NamedTuple):
    """What a pull should find.

    before: all pushes until then. mine: how often this worker has pushed.
    right: the pushes that are to be summed, or None for "wait".
    """
    key: str
    rank: int
    before: list
    mine: int
    right: list | None


def calls_of(num_workers, calls=(), seed=0, keys=('w',), rounds=3,
             ahead=True, early=False):
    """What the workers call: (key, rank, value) to push, (key, rank) to pull.

    calls: such a list; without it, one is made up by chance. ahead: whether
    workers may be rounds ahead of others. early: whether there are pulls that
    must wait; otherwise each sum is pulled once by each.
    """
    if calls:
        return [tuple(call) for call in calls]
    chance, made, pushed = random.Random(seed), [], Counter()
    done = set()  # (key, rank, round) that is pulled
    order = []
    for _ in range(rounds):
        one = [(key, rank) for key in keys for rank in range(num_workers)]
        chance.shuffle(one)
        order += one
    if ahead:
        chance.shuffle(order)
    if early:
        made.append((keys[0], chance.randrange(num_workers)))
    for k, (key, rank) in enumerate(order):
        made.append((key, rank, 3 ** k))
        pushed[key, rank] += 1
        counts = [pushed[key, other] for other in range(num_workers)]
        for other in chance.sample(range(num_workers), num_workers):
            due = 0 < counts[other] == min(counts)
            due = due and (key, other, min(counts)) not in done
            if (due or early) and chance.random() < 0.6:
                made.append((key, other))
                done.add((key, other, min(counts)))
    return made + [(key, rank) for key in keys for rank in range(num_workers)
                   if early or (key, rank, rounds) not in done]


def pulls_of(num_workers, **order):
    """Of each pull what it should find, as a list of `Pull`."""
    pushes, pulls, pushed = [], [], Counter()
    for key, rank, *value in calls_of(num_workers, **order):
        if value:
            pushed[key, rank] += 1
            pushes.append(Push(key, rank, pushed[key, rank], value[0]))
            continue
        mine = pushed[key, rank]
        right = [push for push in pushes
                 if push.key == key and push.number == mine]
        pulls.append(Pull(key, rank, [*pushes], mine,
                          right if len(right) == num_workers else None))
    return pulls


def run(answer, num_workers, **order):
    """What each pull returned."""
    return _play(answer, num_workers, order)['pulled']


def _play(answer, num_workers, order, use_again=''):
    """Call a new server as workers would.

    use_again: which arrays a worker overwrites after the call, 'pushed' or
    'pulled'. Returns what was pulled, and what is in all arrays in the end.
    """
    server, pulled, given, taken = answer(num_workers), [], [], []
    for key, rank, *value in calls_of(num_workers, **order):
        with without(*_chapters(), pulls_of):
            if value:
                array = np.full(SHAPE, float(value[0]))
                server.push(key, rank, array)
            else:
                array = server.pull(key, rank)
        if value:
            given.append(array)
        else:
            pulled.append(_numbers(array))
            taken.append(array)
        if use_again == ('pushed' if value else 'pulled'):
            _overwrite(array)
    return {'pulled': pulled, 'given': [array.tolist() for array in given],
            'taken': [_numbers(array) for array in taken]}


def _chapters():
    """The chapter's own methods, if the student's code has loaded them."""
    module = sys.modules.get('d2lps.kvstore.server')
    return [] if module is None else [
        module.Server.push, module.Server.pull, module.Shard.update,
        module.total]


def _numbers(array):
    """What `pull` returned, as a list; None stays."""
    try:
        return None if array is None else np.asarray(array, float).tolist()
    except (TypeError, ValueError):
        raise Wrong(f'`pull` returned {array!r:.60}. An array is wanted, the '
                    'sum of a round, or None for "wait".') from None


def _overwrite(array):
    if isinstance(array, list):
        array[:] = [JUNK] * len(array)
    elif isinstance(array, np.ndarray):
        try:
            array[...] = JUNK
        except ValueError:
            raise Wrong('the array that `pull` returned is read-only. It is '
                        "the worker's own, who may change it.") from None


def judge(pulled, num_workers, **order):
    """The sums, of pulls that need not wait."""
    for pull, got in zip(pulls_of(num_workers, **order), pulled, strict=True):
        if pull.right is None:
            continue
        right = sum(push.value for push in pull.right)
        where = _story(pull)
        if got is None:
            raise Wrong(f'{where}gets None, not {right}: everybody has pushed '
                        f'{_times(pull.mine)} at least, so round {pull.mine} '
                        'is whole.')
        if np.shape(got) != SHAPE:
            raise Wrong(f'{where}gets {got!r:.60}. Arrays with '
                        f'{SHAPE[0]} numbers are pushed, so the sum is one '
                        'with as many.')
        for number in got:
            if number != right:
                raise Wrong(f'{where}gets {number:.10g}, not {right}. '
                            f'{_why(pull, number, num_workers)}')


def _story(pull):
    """Who has pushed what, and who pulls, in words."""
    pushes = [push for push in pull.before if push.key == pull.key]
    words = []
    for rank in sorted({push.rank for push in pushes}):
        values = [str(push.value) for push in pushes if push.rank == rank]
        words.append(f'worker {rank} has pushed {_and(values)}')
    text = ', '.join(words) or 'nobody has pushed'
    return (f'{text} for key {pull.key!r}. Worker {pull.rank} pulls this key '
            'and ')


def _times(many):
    return {1: 'once', 2: 'twice'}.get(many, f'{many} times')


def _and(words):
    return ' and '.join([', '.join(words[:-1])] * (len(words) > 1)
                        + words[-1:])


def parts_of(number, pushes, most=2):
    """Which pushes make this sum, each up to `most` times: {push: times}.

    They are found if each value is large enough beside all smaller ones; None
    if there are none.
    """
    found = {}
    for push in sorted(pushes, key=lambda push: -push.value):
        times = min(most, number // push.value) if isfinite(number) else 0
        if times >= 1:
            found[push] = int(times)
            number -= times * push.value
    return found if number == 0 else None


def _why(pull, number, num_workers):
    """What a wrong sum looks like."""
    parts = parts_of(number, pull.before)
    if number * num_workers == sum(push.value for push in pull.right):
        return 'That is the mean; the sum is wanted.'
    if not parts:
        return 'That is no sum of what was pushed.'
    for push, times in parts.items():
        if push.key != pull.key:
            return (f'In it is {push.value}, which was pushed for '
                    f'key {push.key!r}. Each key has rounds of its own.')
        if times > 1:
            return f'In it is {push.value}, of worker {push.rank}, twice.'
    numbers = {rank: [push.number for push in parts if push.rank == rank]
               for rank in range(num_workers)}
    several = [rank for rank in numbers if len(numbers[rank]) > 1]
    for rank, some in numbers.items():
        if not some:
            but = (f', and {len(numbers[several[0]])} of worker {several[0]}'
                   if several else '')
            return (f'No push of worker {rank} is in it{but}. When is a round '
                    'whole: after so many pushes, or when nobody is missing?')
    for rank in several:
        late = max(numbers[rank])
        if late > pull.mine:
            return (f'In it are {len(numbers[rank])} pushes of worker {rank}. '
                    f'Its push number {late} is for round {late}; this is '
                    f'round {pull.mine}.')
        return (f'In it are {len(numbers[rank])} pushes of worker {rank}. One '
                f'of them was in round {min(numbers[rank])} already. Does '
                'each round begin anew?')
    rank, [late] = next((rank, some) for rank, some in numbers.items()
                        if some != [pull.mine])
    if late > pull.mine:
        return (f'Of worker {rank}, its push number {late} is in it, and this '
                f'is round {pull.mine}. What happens to its push number '
                f'{pull.mine}, when the next one comes?')
    return (f'Of worker {rank}, its push number {late} is in it, and this is '
            f'round {pull.mine}.')


def judge_wait(pulled, num_workers, **order):
    """Who waits, whatever the sums are."""
    pulls = pulls_of(num_workers, **order)
    for k, (pull, got) in enumerate(zip(pulls, pulled, strict=True)):
        where = _story(pull)
        if pull.right is None and got is not None:
            raise Wrong(f'{where}gets {got!r:.60}, not None. '
                        f'{_not_whole(pull, num_workers)}')
        if pull.right is not None and got is None:
            again = [one for one, before in zip(pulls[:k], pulled)
                     if one[:2] == pull[:2] and one.mine == pull.mine
                     and before is not None]
            more = [push for push in pull.before if push.key == pull.key and
                    push.number > pull.mine]
            why = ''
            if again:
                why = (' It has pulled this sum before, and may do so as '
                       'often as it likes.')
            elif more:
                why = (f' Worker {more[0].rank} is a round ahead, which '
                       'concerns nobody else.')
            raise Wrong(f'{where}gets None. But everybody has pushed '
                        f'{_times(pull.mine)} at least, so its round is '
                        f'whole.{why}')


def _not_whole(pull, num_workers):
    """Why this worker has to wait."""
    if not pull.mine:
        return 'It has not pushed yet, so there is no sum for it.'
    pushed = Counter(push.rank for push in pull.before
                     if push.key == pull.key)
    late = min(range(num_workers), key=lambda rank: pushed[rank])
    return (f'It has last pushed in round {pull.mine}, where the push of '
            f'worker {late} is missing.')


def run_arrays(answer, num_workers, **order):
    """The same calls three times: with arrays that are left alone, with
    pushed ones that are used again, and with pulled ones that are."""
    return {use: _play(answer, num_workers, order, use)
            for use in ('', 'pushed', 'pulled')}


def judge_arrays(found, num_workers, **order):
    """Whether arrays are the workers' own, whatever the sums are."""
    pulls = pulls_of(num_workers, **order)
    plain = found['']
    if all(one is None for one in plain['pulled']):
        raise Wrong('`pull` always returns None. Is there a `return` for a '
                    'round that is whole?')
    pushes = pulls[-1].before
    for push, now in zip(pushes, plain['given'], strict=True):
        if now != [push.value] * SHAPE[0]:
            raise Wrong(f"worker {push.rank} has pushed an array with "
                        f"{push.value}, and the server has written "
                        f'{_first(now)} into it. It is the worker\'s own; the '
                        'server may only read it.')
    for k, pull in enumerate(pulls):
        at_once, later = plain['pulled'][k], plain['taken'][k]
        what = f'worker {pull.rank} pulls {_first(at_once)}'
        if later != at_once:
            raise Wrong(f'{what}. The server goes on, and then '
                        f'{_first(later)} is in the array that this worker '
                        'has. It should stay as it was pulled.')
        again = found['pushed']['pulled'][k]
        if again != at_once:
            raise Wrong(
                f'{what}. But if each worker writes {JUNK:g} into its array '
                f'after the push, the pull finds {_first(again)}. A worker '
                "uses its array again. Does the server keep the worker's "
                'array, or what was in it?')
        again = found['pulled']['pulled'][k]
        if again != at_once:
            raise Wrong(
                f'{what}. But if each worker writes {JUNK:g} into the array '
                f'that it has pulled, this pull finds {_first(again)}. Does '
                'everybody get the same array?')


def _first(value):
    """The first number, in words."""
    while isinstance(value, list) and value:
        value = value[0]
    return f'{value:.10g}' if isinstance(value, float) else str(value)


def run_memory(answer, num_workers, pulls, ahead=1, keys=1):
    """By how many arrays the memory grows in `ROUNDS` more rounds.

    pulls: who pulls after its rounds. ahead: how many rounds each worker
    pushes before the next one does.
    """
    traced = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        server, sizes, told = answer(num_workers), [], False
        for rounds in WARM, ROUNDS:
            for _ in range(rounds // ahead):
                told |= _rounds(server, num_workers, pulls, ahead, keys)
            sizes.append(tracemalloc.get_traced_memory()[0])
        if sizes[1] > sizes[0]:
            gc.collect()  # what nobody can reach is not kept
            sizes[1] = tracemalloc.get_traced_memory()[0]
        grown = (sizes[1] - sizes[0]) / np.ones(LARGE).nbytes
    finally:
        if not traced:
            tracemalloc.stop()
    return {'grown': grown, 'told': told}


def _rounds(server, num_workers, pulls, ahead, keys):
    """Rounds with large arrays; returns whether a sum was pulled."""
    told = False
    for key in range(keys):
        for rank in range(num_workers):
            for _ in range(ahead):
                server.push(f'w{key}', rank, np.ones(LARGE))
        for rank in pulls:
            told |= server.pull(f'w{key}', rank) is not None
    return told


def judge_memory(found, num_workers, keys=1, **case):
    if not found['told']:
        raise Wrong('all have pushed equally often, and each pull returns '
                    'None. What is kept counts when there is a sum.')
    grown, rounds = found['grown'], ROUNDS * keys
    if grown > 2 * keys:
        what = ''
        if abs(grown - rounds) < 0.1 * rounds:
            what = ': one for each round'
        elif grown > 0.9 * num_workers * rounds:
            what = ': one for each push'
        raise Wrong(f'{ROUNDS} more rounds, all of them whole, and the server '
                    f'keeps {grown:.0f} arrays more than before{what}. When '
                    'round 2 is whole, can anybody still ask for round 1?')


def picture(answer):
    """Which pushes go together, and which sums come out."""
    from d2lps_pictures import row_chart
    from d2lps_pictures.style import CHUNK_COLORS
    sums = _sums(answer)
    told = ', '.join(f'{number:g}' for _, number in sums) or 'nothing'
    names = [f'worker {rank}' for rank in range(3)]
    chart = row_chart(
        [*names, 'pulled'], len(SHOWN) + 0.5,
        f'9 pushes of 3 workers in a row for each. What is pulled: {told}.',
        title=f'What is pulled: {told}', xlabel='pushes, one after the other',
        xticks=[*range(1, len(SHOWN) + 1)], high=44)
    pushes = pulls_of(3, calls=[*SHOWN, ('w', 0)])[-1].before
    colors = {}
    for color, (_, number) in zip(CHUNK_COLORS, sums):
        for push in parts_of(number, pushes, most=1) or ():
            colors.setdefault(push, color)
    for k, push in enumerate(pushes, 1):
        _box(chart, k, push.rank, push.value, colors.get(push, '#e0e0e0'))
    for color, (k, number) in zip(CHUNK_COLORS, sums):
        _box(chart, k, 3, number, color)
    return chart.drawing


def _sums(answer):
    """Each new sum, after which push it is there: [(how many, number), ...]"""
    server, sums = answer(3), []
    for k, (key, rank, value) in enumerate(SHOWN, 1):
        server.push(key, rank, np.full(SHAPE, float(value)))
        for other in range(3):
            got = _numbers(server.pull(key, other))
            if got is None:
                continue
            number = float(np.ravel(got)[0])
            if number not in [before for _, before in sums]:
                sums.append((k, number))
    return sums


def _box(chart, k, row, number, color):
    chart.bar(k - 0.45, k + 0.45, row - 0.33, row + 0.33, color,
              f'{number:g}')


# Round 1 is 1, 10 and 100, round 2 is 2, 20 and 200, and round 3 4, 40, 400.
SHOWN = [('w', 0, 1), ('w', 0, 2), ('w', 1, 10), ('w', 2, 100), ('w', 2, 200),
         ('w', 2, 400), ('w', 1, 20), ('w', 1, 40), ('w', 0, 4)]
TARGET = [('w', 0, 2), ('w', 0, 3), ('w', 1, 20)]
CHECKS = {
    'rounds': Check(
        [{'num_workers': 2, 'calls': [*TARGET, ('w', 1)]},
         {'num_workers': 2, 'calls': [
             ('w', 0, 1), ('w', 1, 10), ('w', 0), ('w', 1), *TARGET,
             ('w', 1), ('w', 1, 30), ('w', 0), ('w', 1)]},
         {'num_workers': 3, 'seed': 1},
         {'num_workers': 2, 'seed': 2, 'keys': ['v', 'w']}],
        run, judge,
        'each sum has one push of every worker: 2 + 20 = 22.'),
    'wait': Check(
        [{'num_workers': 2, 'calls': [
            ('w', 0), ('w', 0, 2), ('w', 0), ('w', 1), ('w', 0, 3), ('w', 0),
            ('w', 1, 20), ('w', 0), ('w', 1), ('w', 1), ('w', 1, 30),
            ('w', 0), ('w', 1), ('w', 0)]},
         {'num_workers': 3, 'seed': 3, 'early': True},
         {'num_workers': 2, 'seed': 4, 'early': True, 'keys': ['v', 'w']}],
        run, judge_wait, 'who must wait is told so, and nobody else.'),
    'arrays': Check(
        [{'num_workers': 2, 'seed': 5, 'ahead': False},
         {'num_workers': 3, 'seed': 6, 'ahead': False}],
        run_arrays, judge_arrays,
        'workers may change their arrays after push and pull.'),
    'memory': Check(
        [{'num_workers': 3, 'pulls': [0, 1, 2]},
         {'num_workers': 2, 'pulls': [1]}],
        run_memory, judge_memory,
        'what the server keeps does not grow with the rounds.')}

"""Exercise: a server that adds up rounds, whoever is fast or slow.

To chapter 8, notebooks/08-a-store-from-scratch.ipynb.
"""
import gc
import itertools
import random
import sys
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, student_line)
from d2lps.figures import describe

FORM = np.array([1, 0.5])  # a push of 3 is the array [3, 1.5]
NEW_KEYS = (f'new {number}' for number in itertools.count())
JUNK = -7.0  # a worker writes this into an array that it uses again
# The check of memory: rounds before it, rounds of it, elements of an array.
WARM, ROUNDS, LARGE = 10, 30, 2_000


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


def calls_of(num_workers: int, calls: Sequence[Sequence] = (), seed: int = 0,
             keys: Sequence = ('w',), rounds: int = 3, ahead: bool = True,
             early: bool = False) -> list[tuple]:
    """What the workers call: (key, rank, value) to push, (key, rank) to pull.

    calls: such a list; without it, one is made up by chance. ahead: whether
    workers may be rounds ahead of others. early: whether there are pulls that
    must wait; otherwise each sum is pulled once by each.
    """
    if calls:
        return [tuple(call) for call in calls]
    chance = random.Random(seed)
    made: list[tuple] = []
    pushed: Counter = Counter()
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


def pulls_of(num_workers: int, **order: Any) -> list[Pull]:
    """Of each pull what it should find, as a list of `Pull`."""
    pushes: list[Push] = []
    pulls: list[Pull] = []
    pushed: Counter = Counter()
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


def run(answer: Answer, num_workers: int, **order: Any) -> Notes:
    """What each pull returned, and what if each key has its own server."""
    first, calls = _first_round(answer, num_workers), calls_of(
        num_workers, **order)
    pulled = _play(answer, num_workers, calls)['pulled']
    alone = {}
    for key in {call[0]: 0 for call in calls}:
        own = [call for call in calls if call[0] == key]
        alone[key] = iter(_play(answer, num_workers, own)['pulled'])
    return {'first': first, 'pulled': pulled, 'alone': [
        next(alone[call[0]]) for call in calls if len(call) == 2]}


def _first_round(answer, num_workers):
    """The sum of one push of each worker, from a server of its own.

    Raises `Wrong` if another server, which is new, has it too.
    """
    key = next(NEW_KEYS)
    try:
        server, other = answer(num_workers), answer(num_workers)
        for rank in range(num_workers):
            server.push(key, rank, FORM.copy())
        found = other.pull(key, 0), server.pull(key, 0)
    except Exception:  # the other calls will show what is wrong
        return 'stopped'
    if np.array_equal(found[0], num_workers * FORM):
        raise Wrong('each worker has pushed to one SyncServer. No worker has '
                    'pushed to a second SyncServer, which is new. But a pull '
                    'from the second one returns the sum. Are all dicts and '
                    'lists made in `__init__`?')
    return _numbers(found[1])


def _judge_first(first, num_workers):
    """Whether a sum is found in the simplest case."""
    if first is None:
        raise Wrong(f'each of {num_workers} workers has pushed once. Then '
                    'worker 0 pulls, and gets None. Does your server notice '
                    'that the round is complete, and is there a `return`?')


def _play(answer, num_workers, calls, use_again=''):
    """Call a new server as workers would.

    use_again: which arrays a worker overwrites after the call, 'pushed' or
    'pulled'. Returns what was pulled, and what is in all arrays in the end.
    """
    server, pulled, given, taken = answer(num_workers), [], [], []
    for k, (key, rank, *value) in enumerate(calls):
        array = value[0] * FORM if value else None
        try:
            with forbidding(*_chapters(), pulls_of):
                if value:
                    server.push(key, rank, array)
                else:
                    array = server.pull(key, rank)
        except (NotImplementedError, Wrong):
            raise
        except Exception as error:
            name = 'push' if value else 'pull'
            more = ', ...' if value else ''
            raise Wrong(
                f'{_pushed(key, calls[:k])}. Then `{name}({key!r}, {rank}'
                f'{more})` stops with {type(error).__name__}: {error}'
                f'{student_line(error)}') from None
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
        if isinstance(array, (bool, np.bool_)):
            raise TypeError
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
            raise Wrong('the array that `pull` returned is read-only. It '
                        'belongs to the worker, which may change '
                        'it.') from None


def judge(found: Notes, num_workers: int, **order: Any) -> None:
    """The sums, of pulls that need not wait."""
    _judge_first(found['first'], num_workers)
    _judge_keys(_judge_sums, found, num_workers, order)


def _judge_keys(judge_pulls, found, num_workers, order):
    """Judge; if something is wrong, say whether a key alone would be right."""
    pulls = pulls_of(num_workers, **order)
    try:
        judge_pulls(found['pulled'], pulls, num_workers)
    except Wrong as error:
        if len({pull.key for pull in pulls}) == 1:
            raise
        try:
            judge_pulls(found['alone'], pulls, num_workers)
        except Wrong:
            raise error from None
        raise Wrong(f'{error} If a server gets only the calls for one key, '
                    'all is right. What do the keys share in your '
                    'server?') from None


def _judge_sums(pulled, pulls, num_workers):
    for k, (pull, got) in enumerate(zip(pulls, pulled, strict=True)):
        if pull.right is None:
            continue
        right = sum(push.value for push in pull.right)
        story = _story(pull)
        if got is None:
            raise Wrong(f'{story}gets None, not {right}: every worker has '
                        f'pushed at least {_times(pull.mine)}, so round '
                        f'{pull.mine} is '
                        f'complete.{_pulled_before(pulls, pulled, k)}')
        if np.shape(got) != FORM.shape:
            raise Wrong(f'{story}gets {got!r:.60}. Arrays with {FORM.size} '
                        'numbers are pushed, so the sum has as many numbers.')
        if got[0] != right:
            raise Wrong(f'{story}gets {got[0]:.10g}, not {right}. '
                        f'{_why(pull, got[0], num_workers)}')
        if got[1] != right / 2:
            why = 'Are fractions lost, as in 1.5?'
            if got[1] == got[0]:
                why = 'Does your sum add the arrays number by number?'
            raise Wrong(f'{story}gets {got}, not {[right, right / 2]}. (The '
                        'second number of each pushed array is half of the '
                        f'first.) {why}')


def _pulled_before(pulls, pulled, k):
    """In words, who has pulled this sum before pull k; '' for nobody."""
    pull = pulls[k]
    ranks = [one.rank for one, before in zip(pulls[:k], pulled)
             if one.key == pull.key and one.mine == pull.mine
             and one.right is not None and before is not None]
    if pull.rank in ranks:
        return (' It has pulled this sum before, and can pull it again as '
                'often as it likes.')
    if ranks:
        return (f' Worker {ranks[0]} has pulled this sum already. Can other '
                'workers still pull it?')
    return ''


def _story(pull):
    """Who has pushed what, and who pulls, in words."""
    pushes = [push[:2] + (push.value,) for push in pull.before]
    return (f'{_pushed(pull.key, pushes)}. Worker {pull.rank} pulls this key '
            'and ')


def _pushed(key, calls):
    """Who has pushed what for this key, in words."""
    values = {}
    for one, rank, *value in calls:
        if value and one == key:
            values.setdefault(rank, []).append(str(value[0]))
    words = [f'worker {rank} has pushed {_and(values[rank])}'
             for rank in sorted(values)]
    return f'{", ".join(words) or "no worker has pushed"} for key {key!r}'


def _times(many):
    return {1: 'once', 2: 'twice'}.get(many, f'{many} times')


def _and(words):
    return ' and '.join([', '.join(words[:-1])] * (len(words) > 1)
                        + words[-1:])


def parts_of(number: float, pushes: Sequence[Push],
             most: int = 2) -> dict[Push, int] | None:
    """Which pushes make this sum, each up to `most` times: {push: times}.

    If there are several ways, the largest values are used first. None if
    there is none.
    """
    pushes = sorted(pushes, key=lambda push: -push.value)
    if not pushes or number == 0:
        return {} if number == 0 else None
    if not 0 < number <= most * sum(push.value for push in pushes):
        return None
    push, *others = pushes
    for times in range(most, -1, -1):
        parts = parts_of(number - times * push.value, others, most)
        if parts is not None:
            return {**({push: times} if times else {}), **parts}
    return None


def _why(pull, number, num_workers):
    """What a wrong sum looks like."""
    parts = (parts_of(number, pull.before, most=1)
             or parts_of(number, pull.before))
    if number * num_workers == sum(push.value for push in pull.right):
        return 'That is the mean; the sum is wanted.'
    if not parts:
        return 'That is not a sum of the pushed values.'
    for push, times in parts.items():
        if push.key != pull.key:
            return (f'The sum has {push.value}, which was pushed for key '
                    f'{push.key!r}. Each key has rounds of its own.')
        if times > 1:
            return f'The sum has {push.value}, of worker {push.rank}, twice.'
    numbers = {rank: [push.number for push in parts if push.rank == rank]
               for rank in range(num_workers)}
    several = [rank for rank in numbers if len(numbers[rank]) > 1]
    for rank, some in numbers.items():
        if not some:
            but = (f', but {len(numbers[several[0]])} pushes of worker '
                   f'{several[0]} are'
                   if several else '')
            return (f'No push of worker {rank} is in it{but}. When is a '
                    'round complete: after a number of pushes, or when every '
                    'worker has pushed?')
    for rank in several:
        late = max(numbers[rank])
        if late > pull.mine:
            return (f'It has {len(numbers[rank])} pushes of worker '
                    f'{rank}. Its push number {late} is for round {late}, '
                    f'but this is round {pull.mine}.')
        return (f'It has {len(numbers[rank])} pushes of worker {rank}. '
                f'One of them was in round {min(numbers[rank])} already. '
                'Does each round begin with an empty sum?')
    rank, [late] = next((rank, some) for rank, some in numbers.items()
                        if some != [pull.mine])
    if late > pull.mine:
        return (f'The sum has push number {late} of worker {rank}, but this '
                f'is round {pull.mine}. What happens to push number '
                f'{pull.mine} when the next push comes? If it stays, which '
                'of the two does your server take first?')
    lost = 'Do you keep every push until its round is complete?'
    if all(some == [late] for some in numbers.values()):
        return (f'That is the sum of round {late}, but round {pull.mine} is '
                f'complete, too. {lost}')
    return (f'The sum has push number {late} of worker {rank}, but this is '
            f'round {pull.mine}. {lost}')


def judge_wait(found: Notes, num_workers: int, **order: Any) -> None:
    """Who waits, whatever the sums are."""
    _judge_first(found['first'], num_workers)
    _judge_keys(_judge_waits, found, num_workers, order)


def _judge_waits(pulled, pulls, num_workers):
    for k, (pull, got) in enumerate(zip(pulls, pulled, strict=True)):
        story = _story(pull)
        if pull.right is None and got is not None:
            raise Wrong(f'{story}gets {got!r:.60}, not None. '
                        f'{_not_whole(pull, num_workers)}')
        if pull.right is not None and got is None:
            more = [push for push in pull.before if push.key == pull.key and
                    push.number > pull.mine]
            why = _pulled_before(pulls, pulled, k)
            if more and not why:
                why = (f' Worker {more[0].rank} is a round ahead, but this '
                       'must not stop other workers.')
            raise Wrong(f'{story}gets None. But every worker has pushed at '
                        f'least {_times(pull.mine)}, so its round is '
                        f'complete.{why}')


def _not_whole(pull, num_workers):
    """Why this worker has to wait."""
    if not pull.mine:
        return 'It has not pushed yet, so there is no sum for it.'
    pushed = Counter(push.rank for push in pull.before
                     if push.key == pull.key)
    late = min(range(num_workers), key=lambda rank: pushed[rank])
    return (f'It has last pushed in round {pull.mine}, where the push of '
            f'worker {late} is missing.')


def run_arrays(answer: Answer, num_workers: int, **order: Any) -> Notes:
    """The same calls three times: with arrays that are left alone, with
    pushed ones that are used again, and with pulled ones that are."""
    first, calls = _first_round(answer, num_workers), calls_of(
        num_workers, **order)
    return {'first': first, **{
        use: _play(answer, num_workers, calls, use)
        for use in ('', 'pushed', 'pulled')}}


def judge_arrays(found: Notes, num_workers: int, **order: Any) -> None:
    """Whether arrays are the workers' own, whatever the sums are."""
    _judge_first(found['first'], num_workers)
    pulls = pulls_of(num_workers, **order)
    plain = found['']
    if all(one is None for one in plain['pulled']):
        raise Wrong('`pull` always returns None. Is there a `return` for a '
                    'complete round?')
    pushes = pulls[-1].before
    for push, now in zip(pushes, plain['given'], strict=True):
        if now != (push.value * FORM).tolist():
            raise Wrong(f'worker {push.rank} has pushed '
                        f'{(push.value * FORM).tolist()}, and now the array '
                        f'has {now}. The array belongs to the worker; the '
                        'server may only read it.')
    for k, pull in enumerate(pulls):
        at_once, later = plain['pulled'][k], plain['taken'][k]
        what = f'worker {pull.rank} pulls {_first(at_once)}'
        if later != at_once:
            raise Wrong(f'{what}. After more calls, {_first(later)} is in '
                        'the array that this worker has. A pulled array '
                        'should not change.')
        again = found['pushed']['pulled'][k]
        if again != at_once:
            raise Wrong(
                f'{what}. But if each worker writes {JUNK:g} into its array '
                f'after the push, the pull finds {_first(again)}. A worker '
                "uses its array again. Does the server keep the worker's "
                'array, or a copy of its numbers?')
        again = found['pulled']['pulled'][k]
        if again != at_once:
            raise Wrong(
                f'{what}. But if each worker writes {JUNK:g} into the array '
                f'that it has pulled, this pull finds {_first(again)}. Do '
                'all workers get the same array?')


def _first(value):
    """The first number, in words."""
    while isinstance(value, list) and value:
        value = value[0]
    return f'{value:.10g}' if isinstance(value, float) else str(value)


def run_memory(answer: Answer, num_workers: int, pulls: Sequence[int],
               ahead: int = 1, keys: int = 1) -> Notes:
    """By how many arrays the memory grows in `ROUNDS` more rounds.

    pulls: the ranks that pull after each batch of rounds. ahead: how many
    rounds each worker pushes before the next one does.
    """
    first, chance = _first_round(answer, num_workers), (
        np.random.default_rng(0))
    traced = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        server, sizes, told = answer(num_workers), [], False
        for rounds in WARM, ROUNDS:
            for _ in range(rounds // ahead):
                told |= _rounds(server, num_workers, pulls, ahead, keys,
                                chance)
            sizes.append(tracemalloc.get_traced_memory()[0])
        array = np.ones(LARGE).nbytes
        if sizes[1] - sizes[0] > array:
            gc.collect()  # an unreachable array is not kept
            sizes[1] = tracemalloc.get_traced_memory()[0]
        grown = (sizes[1] - sizes[0]) / array
    finally:
        if not traced:
            tracemalloc.stop()
    told |= server.pull('w0', 0) is not None
    return {'first': first, 'grown': grown, 'told': told}


def _rounds(server, num_workers, pulls, ahead, keys, chance):
    """Rounds with large arrays, of which none is like another; returns
    whether a sum was pulled."""
    told = False
    for key in range(keys):
        for rank in range(num_workers):
            for _ in range(ahead):
                server.push(f'w{key}', rank, chance.random(LARGE))
        for rank in pulls:
            told |= server.pull(f'w{key}', rank) is not None
    return told


def judge_memory(found: Notes, num_workers: int, pulls: Sequence[int],
                 keys: int = 1, **case: Any) -> None:
    """Whether what is kept grows, if there is a sum in the end."""
    _judge_first(found['first'], num_workers)
    if not found['told']:
        raise Wrong('all workers have pushed equally often, and in the end a '
                    'pull returns None. The memory is checked when there is '
                    'a sum.')
    grown, rounds = found['grown'], ROUNDS * keys
    if grown > 2 * keys:
        what = ''
        if abs(grown - rounds) < 0.1 * rounds:
            what = ': one for each round'
        elif grown > 0.9 * num_workers * rounds:
            what = ': one for each push'
        why = ' When round 2 is complete, can a worker still ask for round 1?'
        if not pulls:
            why += (' No worker has pulled in these rounds. When does your '
                    'server compute the sums?')
        raise Wrong(f'after {ROUNDS} more complete rounds, the server keeps '
                    f'{grown:.0f} arrays more than before{what}.{why}')


def picture(answer: Answer) -> Picture:
    """Which pushes go together, and which sums come out."""
    from d2lps.pictures.rows import WIDE, new_figure, row_axes
    from d2lps.pictures.style import CHUNK_COLORS
    sums = _sums(answer)
    told = ', '.join(f'{number:g}' for _, number in sums) or 'nothing'
    names = [f'worker {rank}' for rank in range(3)]
    figure = new_figure(WIDE, 2.5)
    ax = row_axes([*names, 'pulled'], len(SHOWN) + 0.5, begin=0.5,
                  ax=figure.subplots(), title=f'What is pulled: {told}',
                  xlabel='pushes, one after the other')
    ax.set_xticks(range(1, len(SHOWN) + 1))
    describe(ax, '9 pushes of 3 workers in a row for each. What is pulled: '
                 f'{told}.')
    pushes = pulls_of(3, calls=[*SHOWN, ('w', 0)])[-1].before
    colors: dict[Push, str] = {}
    for color, (_, number) in zip(CHUNK_COLORS, sums):
        for push in parts_of(number, pushes, most=1) or ():
            colors.setdefault(push, color)
    for k, push in enumerate(pushes, 1):
        _box(ax, k, push.rank, push.value, colors.get(push, '#e0e0e0'))
    for color, (k, number) in zip(CHUNK_COLORS, sums):
        _box(ax, k, 3, number, color)
    return figure


def _sums(answer):
    """Each new sum, after which push it is there: [(how many, number), ...]"""
    server, sums = answer(3), []
    for k, (key, rank, value) in enumerate(SHOWN, 1):
        server.push(key, rank, value * FORM)
        for other in range(3):
            got = _numbers(server.pull(key, other))
            if got is None:
                continue
            number = float(np.ravel(got)[0])
            if number not in [before for _, before in sums]:
                sums.append((k, number))
    return sums


def _box(ax, k, row, number, color):
    from d2lps.pictures.rows import draw_bars, name_bar
    ends = k - 0.45, k + 0.45
    draw_bars(ax, [(*ends, row)], color)
    name_bar(ax, *ends, row, f'{number:g}', color)


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
        run, judge_wait, 'the right workers must wait.'),
    'arrays': Check(
        [{'num_workers': 2, 'seed': 5, 'ahead': False},
         {'num_workers': 3, 'seed': 6, 'ahead': False}],
        run_arrays, judge_arrays,
        'workers can change their arrays after push and pull.'),
    'memory': Check(
        [{'num_workers': 3, 'pulls': [0, 1, 2]},
         {'num_workers': 2, 'pulls': [1]}, {'num_workers': 2, 'pulls': []}],
        run_memory, judge_memory,
        'the memory of the server does not grow with the rounds.')}

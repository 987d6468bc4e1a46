"""Exercise: a server that adds up rounds, whoever is fast or slow.

To chapter 8, notebooks/08-a-store-from-scratch.ipynb.
"""
import gc
import itertools
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, student_line)
from d2lps.figures import describe

MARK = 0.5  # each push has it at a place of its own in its array
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
    """before: all pushes until then. round: of this worker's last push.

    right: the pushes for this round. missing: the workers without such a
    push; if there are any, this worker must wait.
    """
    key: str
    rank: int
    before: list[Push]
    round: int
    right: list[Push]
    missing: list[int]


def pushes_of(words: str) -> list[Push]:
    """'w0 w0 w1': worker 0 pushes twice for key 'w', then worker 1 once.

    Worker 0 pushes 2, 3, 4, worker 1 pushes 20, 30, 40, and so on.
    """
    made: list[Push] = []
    for word in words.split():
        key, rank = word[0], int(word[1:])
        mine = [push for push in made if push.rank == rank]
        number = 1 + sum(push.key == key for push in mine)
        made.append(Push(key, rank, number, (len(mine) + 2) * 10 ** rank))
    return made


def calls_of(num_workers: int, pushes: Sequence[Push],
             early: bool = False) -> list[Push | Pull]:
    """The pushes, and the pulls between them.

    early: at first and after each push, all workers pull all keys. Otherwise
    a sum is pulled as soon as it is there, by each worker that may have it.
    """
    keys = dict.fromkeys(push.key for push in pushes)
    calls: list[Push | Pull] = []
    for k, push in enumerate([None, *pushes]):
        calls += [push] if push else []
        pulls = [_pull(num_workers, pushes[:k], key, rank)
                 for key in keys for rank in range(num_workers)]
        calls += [pull for pull in pulls if early or (
            push in pull.right and not pull.missing)]
    return calls


def _pull(num_workers, before, key, rank):
    """By the exercise's rule. A test says that the chapter's is the same."""
    mine = sum(push[:2] == (key, rank) for push in before)
    right = sorted(push for push in before if push[::2] == (key, mine))
    missing = {*range(num_workers)} - {push.rank for push in right}
    return Pull(key, rank, before, mine, right, sorted(missing))


def pulls_of(*order: Any) -> list[Pull]:
    """Those of `calls_of`."""
    return [call for call in calls_of(*order) if isinstance(call, Pull)]


def arrays_of(pushes: Sequence[Push]) -> np.ndarray:
    """What is pushed: the value, and `MARK` at a place of its own."""
    return np.column_stack([[push.value for push in pushes],
                            MARK * np.eye(len(pushes))])


def worlds(words: str) -> list[tuple[str, list[list[Push]]]]:
    """The pushes, and simpler ones: [(in words, those of each server), ...]
    """
    pushes = pushes_of(words)
    keys = dict.fromkeys(push.key for push in pushes)
    return [('', [pushes]),
            ('if each key has a server of its own', [
                [push for push in pushes if push.key == key]
                for key in keys]),
            ('if all push for round 1 before one pushes for round 2, and so '
             'on', [sorted(pushes, key=lambda push: push.number)])]


def run(answer: Answer, num_workers: int, pushes: str,
        early: bool = False) -> Notes:
    """What each pull returned, of each server in each of `worlds`."""
    _new_server_is_empty(answer, num_workers)
    return [[_play(answer, num_workers, some, early)['pulled']
             for some in servers] for _, servers in worlds(pushes)]


def _new_server_is_empty(answer, num_workers):
    """Raise `Wrong` if a server has what was pushed to another one."""
    key = next(NEW_KEYS)
    try:
        server, other = answer(num_workers), answer(num_workers)
        for rank in range(num_workers):
            server.push(key, rank, np.ones(2))
        found = other.pull(key, 0)
    except Exception:  # the other calls will show what is wrong
        return
    if np.array_equal(found, np.full(2, num_workers)):
        raise Wrong('each worker has pushed to one SyncServer. No worker has '
                    'pushed to a second SyncServer, which is new. But a pull '
                    'from the second one returns the sum. A dict or list '
                    'that is not made in `__init__` belongs to both.')


def _play(answer, num_workers, pushes, early=False, use_again=''):
    """Call a new server as workers would.

    use_again: which arrays a worker overwrites after the call, 'pushed' or
    'pulled'. Returns what was pulled, and what is in all arrays in the end.
    """
    given, pulled, taken = arrays_of(pushes), [], []
    calls, before = calls_of(num_workers, pushes, early), 0
    name = f'SyncServer({num_workers})'
    try:
        with forbidding(*_chapters(), calls_of, pulls_of, _pull):
            server = answer(num_workers)
            for call in calls:
                key, rank = call[:2]
                if isinstance(call, Push):
                    name = f'push({key!r}, {rank}, ...)'
                    server.push(key, rank, given[before])
                    if use_again == 'pushed':
                        given[before] = JUNK
                    before += 1
                    continue
                name = f'pull({key!r}, {rank})'
                taken.append(server.pull(key, rank))
                pulled.append(_numbers(taken[-1]))
                if use_again == 'pulled':
                    _overwrite(taken[-1])
    except (NotImplementedError, Wrong):
        raise
    except Exception as error:
        raise Wrong(f'{_pushed(pushes[:before])}. Then `{name}` stops with '
                    f'{type(error).__name__}: {error}{student_line(error)}'
                    ) from None
    return {'pulled': pulled, 'given': given,
            'taken': [_numbers(got) for got in taken]}


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
        raise Wrong(f'`pull` returned {shown(array)}. An array is wanted, '
                    'the sum of a round, or None for "wait".') from None


def _overwrite(array):
    try:
        array[:] = [JUNK] * len(array) if isinstance(array, list) else JUNK
    except (TypeError, IndexError):  # None, or something wrong
        pass
    except ValueError:
        raise Wrong('the array that `pull` returned is read-only. It belongs '
                    'to the worker, which may change it.') from None


def judge(judge_pull: Callable, notes: Notes, num_workers: int,
          pushes: str, early: bool = False) -> None:
    """If a pull is wrong, say in which simpler world all is right, too."""
    said: list[str] = []
    for taken, (words, servers) in zip(notes, worlds(pushes), strict=True):
        try:
            for pulled, some in zip(taken, servers, strict=True):
                pulls = pulls_of(num_workers, some, early)
                for k, _ in enumerate(zip(pulls, pulled, strict=True)):
                    judge_pull(pulls[:k + 1], pulled, arrays_of(some))
        except Wrong as error:
            said.append(str(error))
            continue
        if said:
            raise Wrong(f'{said[0]} But {words}, all your results are right.')
        return
    raise Wrong(said[0])


def judge_wait(pulls: list[Pull], pulled: list, _: Any = None) -> None:
    """Judge the last of these pulls, whatever its sum is."""
    pull, got = pulls[-1], pulled[len(pulls) - 1]
    if pull.missing and got is not None:
        why = (f'Its last push is for round {pull.round}, where the push of '
               f'worker {pull.missing[0]} is missing.' if pull.round else
               'It has not pushed for this key yet.')
        raise Wrong(f'{_story(pull)} gets {_first(got)}, and None is right. '
                    f'{why}')
    if not pull.missing and got is None:
        raise Wrong(f'{_story(pull)} gets None, and {_sum_of(pull)} is '
                    f'right: every worker has pushed for round {pull.round}.'
                    f'{_who_got_it(pulls, pulled)}')


def _who_got_it(pulls, pulled):
    """A fact about other pulls, if the last one of these got None."""
    if all(got is None for got in pulled):
        return ' Each pull of this check returned None.'
    for pull, got in zip(pulls[:-1], pulled):
        if pull[::3] == pulls[-1][::3] and got is not None:
            return (f' Worker {pull.rank} has pulled this sum before. Each '
                    'worker can pull it, as often as it likes.')
    return ''


def judge_sum(pulls: list[Pull], pulled: list, arrays: np.ndarray) -> None:
    """Judge the last of these pulls, which need not wait."""
    judge_wait(pulls, pulled)
    pull, got = pulls[-1], pulled[len(pulls) - 1]
    if np.shape(got) != arrays[0].shape:
        raise Wrong(f'{_story(pull)} gets {shown(got)}. Arrays of '
                    f'{arrays[0].size} numbers are pushed, so their sum has '
                    'as many numbers.')
    parts = arrays[[pull.before.index(push) for push in pull.right]]
    for k, right in enumerate(parts.sum(axis=0)):
        if got[k] != right and not k:
            raise Wrong(f'{_story(pull)} gets {got[0]:.10g}, and '
                        f'{_sum_of(pull)} is right: push {pull.round} of '
                        f'every worker. {_hint(pull, np.array(got), arrays)}')
        if got[k] != right:
            words = ' + '.join(f'{part:g}' for part in parts[:, k])
            raise Wrong(f'{_story(pull)} gets an array `a`. `a[0]` is right, '
                        f'{_sum_of(pull)}. But `a[{k}]` is {got[k]:.10g}, '
                        f'and {words} = {right:g} is right.')


def _hint(pull, got, arrays):
    """Which pushes are in a wrong sum: their marks tell."""
    if got[0] * len(pull.right) == sum(push.value for push in pull.right):
        return 'Yours is the mean of these pushes; the sum is wanted.'
    times = got[1:] / MARK
    if not np.isin(times, range(4)).all() or times @ arrays[:, 0] != got[0]:
        return 'Yours is not a sum of the pushed arrays.'
    inside = [push for push, often in zip(pull.before, times)
              for _ in range(int(often))]
    words, foreign = [], []
    for right in pull.right:
        mine = [push for push in inside if push.rank == right.rank]
        if mine != [right]:
            values = ' and '.join(f'{push.value:g}' for push in mine)
            words.append(f'{values or "no push"} of worker {right.rank}')
            foreign += [push for push in mine if push != right]
    text = f'Your sum has {", ".join(words)}.'
    for push in foreign[:1]:
        text += f' {push.value:g} is push {push.number} of worker {push.rank}'
        text += (f', so it belongs to round {push.number}.'
                 if push.key == pull.key else
                 f' for key {push.key!r}. Each key has rounds of its own.')
    return text


def _sum_of(pull):
    values = [push.value for push in pull.right]
    return f'{" + ".join(map(str, values))} = {sum(values)}'


def _story(pull):
    """Who has pushed what, and who pulls, in words."""
    return (f'{_pushed(pull.before)}. Worker {pull.rank} pulls key '
            f'{pull.key!r} and')


def _pushed(pushes):
    """Who has pushed what, key by key, in words."""
    values = {}
    for push in sorted(pushes, key=lambda push: (str(push.key), push.rank)):
        values.setdefault((push.key, push.rank), []).append(str(push.value))
    return ', '.join(
        f'worker {rank} has pushed {", then ".join(some)} for key {key!r}'
        for (key, rank), some in values.items()) or 'no worker has pushed'


def _first(value):
    """The first number, in words."""
    while isinstance(value, list) and value:
        value = value[0]
    return f'{value:.10g}' if isinstance(value, float) else str(value)


def run_arrays(answer: Answer, num_workers: int, pushes: str) -> Notes:
    """The same calls three times: with arrays that are left alone, with
    pushed ones that are used again, and with pulled ones that are."""
    _new_server_is_empty(answer, num_workers)
    return {use: _play(answer, num_workers, pushes_of(pushes), use_again=use)
            for use in ('', 'pushed', 'pulled')}


def judge_arrays(notes: Notes, num_workers: int, pushes: str) -> None:
    """Whether arrays are the workers' own, whatever the sums are."""
    made, plain = pushes_of(pushes), notes['']
    if all(got is None for got in plain['pulled']):
        raise Wrong('all workers have pushed, and each pull of this check '
                    'returned None. The arrays are checked when there are '
                    'sums.')
    for push, was, now in zip(made, arrays_of(made).tolist(), plain['given'],
                              strict=True):
        if now != was:
            raise Wrong(f'worker {push.rank} has pushed {was}, and now the '
                        f'array has {now}. It belongs to the worker; the '
                        'server may only read it.')
    for k, pull in enumerate(pulls_of(num_workers, made)):
        at_once = plain['pulled'][k]
        for again, what in (
                (plain['taken'][k], 'After more calls, {} is in this array. '
                 'A pulled array should not change.'),
                (notes['pushed']['pulled'][k],
                 f'But if each worker writes {JUNK:g} into the array that it '
                 'has pushed, this pull finds {}. The array belongs to the '
                 'worker, so the server needs a copy of its numbers.'),
                (notes['pulled']['pulled'][k],
                 f'But if each worker writes {JUNK:g} into the array that it '
                 'has pulled, this pull finds {}. The array belongs to the '
                 'worker, so each pull needs an array of its own.')):
            if again != at_once:
                raise Wrong(f'worker {pull.rank} pulls {_first(at_once)}. '
                            f'{what.format(_first(again))}')


def run_memory(answer: Answer, num_workers: int, pulls: Sequence[int],
               ahead: int = 1, keys: int = 1) -> Notes:
    """By how many arrays the memory grows in `ROUNDS` more rounds.

    pulls: the ranks that pull after each batch of rounds. ahead: how many
    rounds each worker pushes before the next one does.
    """
    _new_server_is_empty(answer, num_workers)
    chance, traced = np.random.default_rng(0), tracemalloc.is_tracing()
    server = answer(num_workers)

    def play(rounds):
        for key in [f'w{key}' for key in range(keys)] * (rounds // ahead):
            for rank in range(num_workers):
                for _ in range(ahead):
                    server.push(key, rank, chance.random(LARGE))
            for rank in pulls:
                server.pull(key, rank)

    tracemalloc.start()
    try:
        play(WARM)
        before = tracemalloc.get_traced_memory()[0]
        play(ROUNDS)
        gc.collect()  # an unreachable array is not kept
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        if not traced:
            tracemalloc.stop()
    for rank in range(num_workers):
        server.push('w0', rank, np.ones(LARGE))
    return {'grown': grown / np.ones(LARGE).nbytes,
            'told': server.pull('w0', 0) is not None}


def judge_memory(notes: Notes, num_workers: int, pulls: Sequence[int],
                 keys: int = 1, **case: Any) -> None:
    """Whether what is kept grows, if there is a sum in the end."""
    if not notes['told']:
        raise Wrong('all workers have pushed equally often, and in the end a '
                    'pull returns None. The memory is checked when there is '
                    'a sum.')
    grown, rounds = notes['grown'], ROUNDS * keys
    if grown > 2 * keys:
        raise Wrong(f'after {rounds} more complete rounds, the server keeps '
                    f'{grown:.0f} arrays more than before, about '
                    f'{grown / rounds:.2g} for each round; at most '
                    f'{2 * keys} more are allowed. When round 2 is '
                    'complete, no worker can ask for round 1 any more.'
                    + ' No worker pulls here, so a push must make the sum of '
                    'its round.' * (not pulls))


def picture(answer: Answer) -> Picture:
    """Which pushes go together, and which sums come out."""
    from d2lps.pictures.rows import (WIDE, draw_bars, name_bar, new_figure,
                                     row_axes)
    from d2lps.pictures.style import CHUNK_COLORS
    pushes = pushes_of('w0 w0 w1 w2 w2 w2 w1 w1 w0')
    sums: dict[float, tuple] = {}  # after which push, and the array
    pulled = _play(answer, 3, pushes, early=True)['pulled']
    for pull, got in zip(pulls_of(3, pushes, True), pulled):
        if got is not None and np.size(got):
            got = np.ravel(got)
            sums.setdefault(got[0], (len(pull.before), got))
    told = ', '.join(f'{number:g}' for number in sums) or 'nothing'
    ax = row_axes([*(f'worker {rank}' for rank in range(3)), 'pulled'],
                  len(pushes) + 0.5, begin=0.5,
                  ax=new_figure(WIDE, 2.5).subplots(),
                  title=f'What is pulled: {told}',
                  xlabel='pushes, one after the other')
    ax.set_xticks(range(1, len(pushes) + 1))
    describe(ax, '9 pushes of 3 workers in a row for each. What is pulled: '
                 f'{told}.')

    def draw(k, row, number, color):
        draw_bars(ax, [(k - 0.45, k + 0.45, row)], color)
        name_bar(ax, k - 0.45, k + 0.45, row, f'{number:g}', color)

    colored = [*zip(CHUNK_COLORS, sums.values())]
    for k, push in enumerate(pushes, 1):
        draw(k, push.rank, push.value, next((
            color for color, (_, got) in colored
            if len(got) > k and got[k]), '#e0e0e0'))
    for color, (k, got) in colored:
        draw(k, 3, got[0], color)
    return ax.figure


CHECKS = {
    'rounds': Check(
        [{'num_workers': 2, 'pushes': 'w0 w0 w1'},
         {'num_workers': 2, 'pushes': 'w0 w1 w0 w0 w1 w1'},
         {'num_workers': 3, 'pushes': 'w1 w2 w2 w1 w1 w0 w2 w0 w0'},
         {'num_workers': 2, 'pushes': 'w1 w1 v1 v1 w0 w0 w0 v0 v1 w1 v0 v0'}],
        run, partial(judge, judge_sum),
        'each sum has one push of every worker: 2 + 20 = 22.'),
    'wait': Check(
        [{'num_workers': 2, 'pushes': 'w0 w0 w1 w1'},
         {'num_workers': 3, 'pushes': 'w0 w1 w2 w0 w2 w1 w2 w0 w1'},
         {'num_workers': 2, 'pushes': 'w1 v0 w0 w1 v1 v0 w1 w0 w0 v0 v1 v1'}],
        partial(run, early=True), partial(judge, judge_wait, early=True),
        'the right workers must wait.'),
    'arrays': Check(
        [{'num_workers': 2, 'pushes': 'w0 w1 w0 w1 w0 w1'},
         {'num_workers': 3, 'pushes': 'w1 w2 w0 w1 w0 w2 w1 w2 w0'}],
        run_arrays, judge_arrays,
        'workers can change their arrays after push and pull.'),
    'memory': Check(
        [{'num_workers': 3, 'pulls': [0, 1, 2]},
         {'num_workers': 2, 'pulls': [1]}, {'num_workers': 2, 'pulls': []}],
        run_memory, judge_memory,
        'the memory of the server does not grow with the rounds.')}

"""Exercise: a server that adds one push of each worker, fast or slow.

To chapter 8, notebooks/08-a-store-from-scratch.ipynb.
"""
import gc
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypedDict

import numpy as np

from d2lps.exercises.charts import draw_named, row_chart
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      without)
from d2lps.explaining import brief, nothing_returned, returns
from d2lps.missing import NotInstalled

MARK = 0.5  # each push has it at a place of its own in its array
JUNK = -7.0  # a worker writes this into an array that it uses again
# The check of memory: updates before it, updates in it, elements of an array.
WARM, UPDATES, LARGE = 10, 30, 2_000


class Push(NamedTuple):
    """The push with this number, from 1, of a worker for a key."""
    key: str
    rank: int
    number: int
    value: float


class Pull(NamedTuple):
    """before: all pushes until then. update: number of this worker's
    last push.

    right: the pushes for this update. missing: the workers without such a
    push; if there are any, this worker must wait.
    """
    key: str
    rank: int
    before: list[Push]
    update: int
    right: list[Push]
    missing: list[int]


def pushes_of(text: str) -> list[Push]:
    """'w0 w0 w1': worker 0 pushes twice for key 'w', then worker 1 once.

    Worker 0 pushes 2, 3, 4, worker 1 pushes 20, 30, 40, and so on.
    """
    made: list[Push] = []
    for word in text.split():
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
    """A pull by the exercise's rule; a test says that it is the chapter's."""
    mine = sum(push[:2] == (key, rank) for push in before)
    right = sorted(push for push in before if push[::2] == (key, mine))
    missing = {*range(num_workers)} - {push.rank for push in right}
    return Pull(key, rank, before, mine, right, sorted(missing))


def pulls_of(num_workers: int, pushes: Sequence[Push], early: bool = False
             ) -> list[Pull]:
    return [call for call in calls_of(num_workers, pushes, early)
            if isinstance(call, Pull)]


def arrays_of(pushes: Sequence[Push]) -> np.ndarray:
    """Arrays to push: the value, and `MARK` at a place of its own."""
    return np.column_stack([[push.value for push in pushes],
                            MARK * np.eye(len(pushes))])


def run(answer: Answer, num_workers: int, pushes: str,
        early: bool = False) -> list:
    """The results of all pulls, a list."""
    pulled = _play(answer, num_workers, pushes_of(pushes), early)['pulled']
    pull = vars(answer).get('pull')
    if not any(pulled) and pull and not returns(pull):
        raise Wrong(nothing_returned(pull), anywhere=True)
    if not early:
        _judge_zeros(answer, num_workers)
    return pulled


def _judge_zeros(answer, num_workers):
    """A sum of zeros is a sum, too."""
    server = answer(num_workers)
    for rank in range(num_workers):
        server.push('w', rank, np.zeros(2))
    if server.pull('w', 0) is None:
        raise Wrong('each worker has pushed [0, 0], and a pull returns None; '
                    '[0, 0] is right.', anywhere=True)


def _play(answer, num_workers, pushes, early=False, use_again=''):
    """Call a new server as workers would.

    use_again: which arrays a worker overwrites after the call, 'pushed' or
    'pulled'. Returns what was pulled, and what is in the pushed arrays now.
    """
    without(answer, *_lesson())
    given, pulled, before = arrays_of(pushes), [], 0
    server = answer(num_workers)
    for call in calls_of(num_workers, pushes, early):
        if isinstance(call, Push):
            server.push(call.key, call.rank, given[before])
            if use_again == 'pushed':
                given[before] = JUNK
            before += 1
            continue
        got = server.pull(call.key, call.rank)
        pulled.append(_numbers(got))
        if use_again == 'pulled' and np.ndim(got):
            got[:] = [JUNK] * len(got)
    return {'pulled': pulled, 'given': given}


def _lesson():
    """The chapter's classes; none without MXNet, which they need."""
    try:
        from d2lps.kvstore.server import Server, Shard
    except NotInstalled:
        return ()
    return Server, Shard


def _numbers(array):
    """The result of `pull` as a list; None stays."""
    if array is None:
        return None
    numbers = np.asarray(array)
    if numbers.dtype.kind not in 'iuf' or not numbers.size:
        raise Wrong(f'`pull` returned {brief(array)}; an array, the sum of '
                    'an update, or None for "wait" is right.')
    return numbers.tolist()


def judge(sums: bool, pulled: list, num_workers: int, pushes: str,
          early: bool = False) -> None:
    """The first pull that is wrong.

    sums: whether the values of sums count, too.
    """
    made = pushes_of(pushes)
    arrays = arrays_of(made)
    for pull, got in zip(pulls_of(num_workers, made, early), pulled,
                         strict=True):
        right = None if pull.missing else arrays[
            [made.index(push) for push in pull.right]].sum(axis=0).tolist()
        if got == right or not sums and (got is None) == (right is None):
            continue
        start = (f'after {_named(pull.before)}, worker {pull.rank} pulls '
                 f'{pull.key} and gets')
        if got is None:
            raise Wrong(f'{start} None; {_sum_of(pull)} is right.'
                        + ' Each pull returned None.' * (
                            not any(pulled) and len(pulled) > 1))
        if right is None:
            raise Wrong(f'{start} {brief(np.ravel(got)[0])}; None is right. '
                        + (f'Worker {pull.missing[0]} has not pushed for '
                           f'update {pull.update} of {pull.key}.'
                           if pull.update else
                           f'Worker {pull.rank} has not pushed {pull.key}.'))
        if np.shape(got) != np.shape(right):
            raise Differs(f'{start} {brief(got)}; the sum of arrays of '
                          f'{len(right)} numbers is right', got, right)
        raise Differs(
            f'{start} {brief(got[0])}; {_sum_of(pull)} is right'
            if got[0] != right[0] else
            f'{start} {brief(got)}; {brief(right)} is right',
            got, right, values={'num_workers': num_workers},
            place=_place(pull, np.array(got), arrays), summed='num_workers')


def _place(pull, got, arrays):
    """A push that is wrong in a sum, and one that it lacks: by the marks."""
    times = got[1:] / MARK
    if not np.isin(times, range(4)).all() or times @ arrays[:, 0] != got[0]:
        return ''  # it is no sum of pushed arrays
    inside = Counter({push: int(often)
                      for push, often in zip(pull.before, times) if often})
    more, less = (sorted(many - few) for many, few in (
        (inside, Counter(pull.right)), (Counter(pull.right), inside)))
    parts = []
    if more:
        of = f' of update {more[0].number}' if more[0] not in pull.right else (
            ' a second time')
        parts.append(f'also has {_values(more)}' + (
            f' for key {more[0].key}' if more[0].key != pull.key else of))
    if less:
        parts.append(f'lacks {_values(less)}')
    return f'Yours {", and ".join(parts)}.' if parts else ''


def _values(pushes):
    return ' and '.join(f'{push.value} of worker {push.rank}'
                        for push in pushes)


def _sum_of(pull):
    values = [push.value for push in pull.right]
    return f'{" + ".join(map(str, values))} = {sum(values)}'


def _named(pushes):
    """Pushes as in a case: 'w0 w0 w1'."""
    return ' '.join(f'{push.key}{push.rank}' for push in pushes) or 'no push'


def run_arrays(answer: Answer, num_workers: int,
               pushes: str) -> dict[str, dict]:
    """The same calls three times: with arrays that are left alone, with
    pushed ones that are used again, and with pulled ones that are."""
    return {use: _play(answer, num_workers, pushes_of(pushes), use_again=use)
            for use in ('', 'pushed', 'pulled')}


def judge_arrays(notes: dict[str, dict], num_workers: int,
                 pushes: str) -> None:
    """The arrays are the workers' own, whatever the sums are."""
    made, plain = pushes_of(pushes), notes['']
    if not any(plain['pulled']):
        raise Wrong('each pull returned None. The arrays are checked when '
                    'there are sums.')
    for push, was, now in zip(made, arrays_of(made).tolist(), plain['given'],
                              strict=True):
        if now != was:
            raise Wrong(f'worker {push.rank} has pushed {was[0]:g}, and later '
                        f'its array has {now[0]:g}. The server may only read '
                        'it.')
    for use, wanted in (('pushed', 'The server needs a copy.'),
                        ('pulled', 'Each pull needs a copy.')):
        for pull, was, now in zip(pulls_of(num_workers, made),
                                  plain['pulled'], notes[use]['pulled'],
                                  strict=True):
            if now != was:
                first = 'None' if now is None else f'{np.ravel(now)[0]:g}'
                raise Wrong(
                    f'worker {pull.rank} pulls {np.ravel(was)[0]:g}. If '
                    f'workers write {JUNK:g} into arrays that they have '
                    f'{use}, it pulls {first}. {wanted}')


class Memory(TypedDict):
    """Arrays that are kept more, and whether the last pull had a sum."""
    grown: float
    told: bool


def run_memory(answer: Answer, num_workers: int, pulls: Sequence[int]
               ) -> Memory:
    """The number of arrays by which memory grows in `UPDATES` more updates.

    pulls: the ranks that pull after each update.
    """
    chance, server = np.random.default_rng(0), answer(num_workers)

    def play(updates):
        for _ in range(updates):
            for rank in range(num_workers):
                server.push('w', rank, chance.random(LARGE))
            for rank in pulls:
                server.pull('w', rank)

    gc.freeze()  # so that collect() looks at the new objects only
    tracemalloc.start()
    try:
        play(WARM)
        before = tracemalloc.get_traced_memory()[0]
        play(UPDATES)
        gc.collect()  # an unreachable array is not kept
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    for rank in range(num_workers):
        server.push('w', rank, np.ones(LARGE))
    return {'grown': grown / np.ones(LARGE).nbytes,
            'told': server.pull('w', 0) is not None}


def judge_memory(notes: Memory, num_workers: int, pulls: Sequence[int]
                 ) -> None:
    """The memory does not grow, and there is a sum in the end."""
    if not notes['told']:
        raise Wrong('in the end a pull returns None. The memory is checked '
                    'when there is a sum.')
    if notes['grown'] > 2:
        raise Wrong(f'after {UPDATES} more updates the server keeps '
                    f'about {notes["grown"]:.0f} more arrays; 2 are right at '
                    'most. After update 2, nobody can ask for '
                    'the sum of update 1.'
                    + ' No worker pulls here.' * (not pulls))


def picture(answer: Answer) -> Picture:
    """The pushes of each worker, in the colours of their sums."""
    from d2lps.pictures import GRAY
    from d2lps.pictures.style import CHUNK_COLORS
    pushes = pushes_of('w0 w0 w1 w2 w2 w2 w1 w1 w0')
    sums: dict[float, tuple] = {}  # after which push, and the array
    pulled = _play(answer, 3, pushes, early=True)['pulled']
    for pull, got in zip(pulls_of(3, pushes, True), pulled):
        if got is not None:
            got = np.ravel(got)
            sums.setdefault(got[0], (len(pull.before), got))
    title = 'What is pulled: ' + (
        ', '.join(f'{number:g}' for number in sums) or 'nothing')
    ax = row_chart([*(f'worker {rank}' for rank in range(3)), 'pulled'],
                   len(pushes) + 0.5, f'{title}. 9 pushes of 3 workers, in a '
                   'row for each worker.', begin=0.5, title=title,
                   xlabel='pushes, one after the other')
    ax.set_xticks(range(1, len(pushes) + 1))

    def draw(place, row, number, color):
        draw_named(ax, [(place - 0.45, place + 0.45, row, f'{number:g}')],
                   color)

    colored = [*zip(CHUNK_COLORS, sums.values())]
    for place, push in enumerate(pushes, 1):
        draw(place, push.rank, push.value, next((
            color for color, (_, got) in colored
            if len(got) > place and got[place]), GRAY))
    for color, (place, got) in colored:
        draw(place, 3, got[0], color)
    return ax.figure


CHECKS = {
    'sums': Check(
        [{'num_workers': 2, 'pushes': 'w0 w0 w1'},
         {'num_workers': 2, 'pushes': 'w0 v1 w1 v0'},
         {'num_workers': 2, 'pushes': 'w0 w1 w0 w0 w1 w1'},
         {'num_workers': 3, 'pushes': 'w1 w2 w2 w1 w1 w0 w2 w0 w0'},
         {'num_workers': 2, 'pushes': 'w1 w1 v1 v1 w0 w0 w0 v0 v1 w1 v0 v0'}],
        run, partial(judge, True),
        'each sum has one push of every worker: 2 + 20 = 22.', case=''),
    'wait': Check(
        [{'num_workers': 2, 'pushes': 'w0 w0 w1 w1'},
         {'num_workers': 3, 'pushes': 'w0 w1 w2 w0 w2 w1 w2 w0 w1'},
         {'num_workers': 2, 'pushes': 'w1 v0 w0 w1 v1 v0 w1 w0 w0 v0 v1 v1'}],
        partial(run, early=True), partial(judge, False, early=True),
        'the right workers must wait.', case=''),
    'arrays': Check(
        [{'num_workers': 2, 'pushes': 'w0 w1 w0 w1 w0 w1'},
         {'num_workers': 3, 'pushes': 'w1 w2 w0 w1 w0 w2 w1 w2 w0'}],
        run_arrays, judge_arrays,
        'workers can change their arrays after push and pull.', case=''),
    'memory': Check(
        [{'num_workers': 3, 'pulls': [0, 1, 2]},
         {'num_workers': 2, 'pulls': [1]}, {'num_workers': 2, 'pulls': []}],
        run_memory, judge_memory,
        'the memory of the server does not grow with the updates.')}

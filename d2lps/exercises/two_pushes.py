"""Exercise: a server that adds up rounds, whoever is fast or slow.

To chapter 8, notebooks/08-a-store-from-scratch.ipynb.
"""
import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from d2lps.checks import shown
from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      forbidding, student_line)
from d2lps.figures import describe
from d2lps.missing import NotInstalled

MARK = 0.5  # each push has it at a place of its own in its array
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


def pulls_of(num_workers: int, pushes: Sequence[Push], early: bool = False
             ) -> list[Pull]:
    return [call for call in calls_of(num_workers, pushes, early)
            if isinstance(call, Pull)]


def arrays_of(pushes: Sequence[Push]) -> np.ndarray:
    """What is pushed: the value, and `MARK` at a place of its own."""
    return np.column_stack([[push.value for push in pushes],
                            MARK * np.eye(len(pushes))])


def of_each_key(pushes: Sequence[Push]) -> list[list[Push]]:
    return [[push for push in pushes if push.key == key]
            for key in dict.fromkeys(push.key for push in pushes)]


def run(answer: Answer, num_workers: int, pushes: str,
        early: bool = False) -> Notes:
    """What each pull returned; also of servers for one key each."""
    _two_servers(answer, num_workers, early)
    made = pushes_of(pushes)
    return [_play(answer, num_workers, some, early)['pulled']
            for some in (made, *of_each_key(made))]


def _two_servers(answer, num_workers, early):
    """Raise `Wrong` if a new server has what was pushed to another one, or
    if (not early) it takes a sum of zeros for no sum."""
    key = object()  # no server has had it before
    try:
        server, other = answer(num_workers), answer(num_workers)
        for rank in range(num_workers):
            server.push(key, rank, np.ones(2))
        ones, new = server.pull(key, 0), other.pull(key, 0)
        for rank in range(num_workers):
            other.push(key, rank, np.zeros(2))
        zeros = other.pull(key, 0)
    except Exception:  # the other calls will show what is wrong
        return
    if np.array_equal(new, np.full(2, num_workers)):
        raise Wrong('each worker has pushed to one SyncServer. A pull from a '
                    'second one, which is new, returns the sum. A dict or '
                    'list that is not made in `__init__` belongs to both.')
    if ones is not None and zeros is None and not early:
        raise Wrong('each worker has pushed [0, 0], and a pull returns None. '
                    '[0, 0] is right: it is a sum, too.')


def _play(answer, num_workers, pushes, early=False, use_again=''):
    """Call a new server as workers would.

    use_again: which arrays a worker overwrites after the call, 'pushed' or
    'pulled'. Returns what was pulled, and what is in the pushed arrays now.
    """
    given, pulled, before = arrays_of(pushes), [], 0
    calls, name = calls_of(num_workers, pushes, early), 'SyncServer(...)'
    try:
        with forbidding(*_ours(), calls_of, _pull):
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
                got = server.pull(key, rank)
                pulled.append(_numbers(got))
                if use_again == 'pulled' and np.ndim(got):
                    name += f'[:] = {JUNK:g}'
                    got[:] = [JUNK] * len(got)
    except (NotImplementedError, Wrong):
        raise
    except Exception as error:
        raise Wrong(f'{_pushed(pushes[:before])}. Then `{name}` stops with '
                    f'{type(error).__name__}: {error}{student_line(error)}'
                    ) from None
    return {'pulled': pulled, 'given': given}


def _ours():
    """The functions of our server; none without MXNet, which it needs."""
    try:
        from d2lps.kvstore.server import Server, Shard
    except NotInstalled:
        return ()
    return Server.push, Shard.update


def _numbers(array):
    """What `pull` returned, as a list; None stays."""
    if array is None:
        return None
    numbers = np.asarray(array)
    if numbers.dtype.kind not in 'iuf' or not numbers.size:
        raise Wrong(f'`pull` returned {shown(array)}. An array is wanted, '
                    'the sum of a round, or None for "wait".')
    return numbers.tolist()


def judge(wrong_in: Callable[..., str], notes: Notes, num_workers: int,
          pushes: str, early: bool = False) -> None:
    made = pushes_of(pushes)
    said, *apart = [
        _first_wrong(wrong_in, pulls_of(num_workers, some, early), pulled,
                     arrays_of(some))
        for some, pulled in zip((made, *of_each_key(made)), notes,
                                strict=True)]
    if said and not any(apart):
        said += (' But if each key has a server of its own, all your results '
                 'are right.')
    if said:
        raise Wrong(said)


def _first_wrong(wrong_in, pulls, pulled, arrays):
    """What `wrong_in` says of a pull, the first that is not ''."""
    for k, (pull, got) in enumerate(zip(pulls, pulled, strict=True)):
        said = wrong_in(pull, got, arrays)
        if said and not any(pulled):
            return f'{said} Each pull of this check returned None.'
        for other, sum_of_other in zip(pulls[:k], pulled):
            if said and got is None and sum_of_other is not None and (
                    (other.key, other.round) == (pull.key, pull.round)):
                return (f'{said} Worker {other.rank} has pulled this sum '
                        'before. Each worker can pull it, as often as it '
                        'likes.')
        if said:
            return said
    return ''


def wrong_wait(pull: Pull, got: list | None, _: np.ndarray) -> str:
    """Whatever the sum is."""
    if pull.missing and got is not None:
        return (f'{_story(pull)} gets {_first(got)}, and None is right. ' + (
            f'Its last push is for round {pull.round}, where the push of '
            f'worker {pull.missing[0]} is missing.' if pull.round else
            'It has not pushed for this key yet.'))
    return '' if pull.missing or got is not None else (
        f'{_story(pull)} gets None, and {_sum_of(pull)} is right: every '
        f'worker has pushed for round {pull.round}.')


def wrong_sum(pull: Pull, got: list | None, arrays: np.ndarray) -> str:
    """The sum of a pull that need not wait."""
    if got is None:
        return wrong_wait(pull, got, arrays)
    if np.shape(got) != arrays[0].shape:
        return (f'{_story(pull)} gets {shown(got)}. Arrays of '
                f'{arrays[0].size} numbers are pushed, so their sum has as '
                'many numbers.')
    parts = arrays[[pull.before.index(push) for push in pull.right]]
    right = parts.sum(axis=0)
    if got[0] != right[0]:
        return (f'{_story(pull)} gets {got[0]:.10g}, and {_sum_of(pull)} is '
                f'right: push {pull.round} of every worker. '
                f'{_hint(pull, np.array(got), arrays)}')
    for k in np.flatnonzero(got != right):
        words = ' + '.join(f'{part:g}' for part in parts[:, k])
        return (f'{_story(pull)} gets an array `a`. `a[0]` is right, '
                f'{_sum_of(pull)}. But `a[{k}]` is {got[k]:.10g}, and '
                f'{words} = {right[k]:g} is right.')
    return ''


def _hint(pull, got, arrays):
    """A push that is wrong in a sum, and one that it lacks: by the marks."""
    times = got[1:] / MARK
    if not np.isin(times, range(4)).all() or times @ arrays[:, 0] != got[0]:
        return 'Yours is not a sum of the pushed arrays.'
    inside = Counter({push: int(often)
                      for push, often in zip(pull.before, times)})
    text = ''
    for push in [*inside - Counter(pull.right)][:1]:
        text = f'Your sum also has {push.value} of worker {push.rank}'
        text += (
            f' for key {push.key!r}. Each key has rounds of its own.'
            if push.key != pull.key else
            ' a second time.' if push in pull.right else
            f'. This is push {push.number} of worker {push.rank}, so it '
            f'belongs to round {push.number}.')
    for push in [*Counter(pull.right) - inside][:1]:
        text += f' Your sum lacks {push.value} of worker {push.rank}.'
    return text.strip()


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
    for push in sorted(pushes):
        values.setdefault((push.key, push.rank), []).append(str(push.value))
    return ', '.join(
        f'worker {rank} has pushed {", then ".join(some)} for key {key!r}'
        for (key, rank), some in values.items()) or 'no worker has pushed'


def _first(got):
    """The first number, in words."""
    return 'None' if got is None else f'{np.ravel(got)[0]:.10g}'


def run_arrays(answer: Answer, num_workers: int, pushes: str) -> Notes:
    """The same calls three times: with arrays that are left alone, with
    pushed ones that are used again, and with pulled ones that are."""
    return {use: _play(answer, num_workers, pushes_of(pushes), use_again=use)
            for use in ('', 'pushed', 'pulled')}


def judge_arrays(notes: Notes, num_workers: int, pushes: str) -> None:
    """Whether arrays are the workers' own, whatever the sums are."""
    made, plain = pushes_of(pushes), notes['']
    if not any(plain['pulled']):
        raise Wrong('all workers have pushed, and each pull of this check '
                    'returned None. The arrays are checked when there are '
                    'sums.')
    for push, was, now in zip(made, arrays_of(made).tolist(), plain['given'],
                              strict=True):
        if now != was:
            raise Wrong(f'worker {push.rank} has pushed {was}, and now the '
                        f'array has {now}. It belongs to the worker; the '
                        'server may only read it.')
    for use, wanted in (
            ('pushed', 'the server needs a copy of its numbers.'),
            ('pulled', 'each pull needs an array of its own.')):
        for pull, was, now in zip(
                pulls_of(num_workers, made), plain['pulled'],
                notes[use]['pulled'], strict=True):
            if now != was:
                raise Wrong(
                    f'worker {pull.rank} pulls {_first(was)}. But if each '
                    f'worker writes {JUNK:g} into the array that it has '
                    f'{use}, this pull finds {_first(now)}. The array '
                    f'belongs to the worker, so {wanted}')


def run_memory(answer: Answer, num_workers: int, pulls: Sequence[int]
               ) -> Notes:
    """By how many arrays the memory grows in `ROUNDS` more rounds.

    pulls: the ranks that pull after each round.
    """
    chance, server = np.random.default_rng(0), answer(num_workers)

    def play(rounds):
        for _ in range(rounds):
            for rank in range(num_workers):
                server.push('w', rank, chance.random(LARGE))
            for rank in pulls:
                server.pull('w', rank)

    tracemalloc.start()
    try:
        play(WARM)
        before = tracemalloc.get_traced_memory()[0]
        play(ROUNDS)
        gc.collect()  # an unreachable array is not kept
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    for rank in range(num_workers):
        server.push('w', rank, np.ones(LARGE))
    return {'grown': grown / np.ones(LARGE).nbytes,
            'told': server.pull('w', 0) is not None}


def judge_memory(notes: Notes, num_workers: int, pulls: Sequence[int]
                 ) -> None:
    """Whether what is kept grows, if there is a sum in the end."""
    if not notes['told']:
        raise Wrong('all workers have pushed equally often, and in the end a '
                    'pull returns None. The memory is checked when there is '
                    'a sum.')
    grown = notes['grown']
    if grown > 2:
        raise Wrong(f'after {ROUNDS} more complete rounds, the server keeps '
                    f'{grown:.0f} arrays more than before, about '
                    f'{grown / ROUNDS:.2g} for each round; at most 2 more '
                    'are allowed. When round 2 is complete, no worker can '
                    'ask for round 1 any more.'
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
        if got is not None:
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
        run, partial(judge, wrong_sum),
        'each sum has one push of every worker: 2 + 20 = 22.'),
    'wait': Check(
        [{'num_workers': 2, 'pushes': 'w0 w0 w1 w1'},
         {'num_workers': 3, 'pushes': 'w0 w1 w2 w0 w2 w1 w2 w0 w1'},
         {'num_workers': 2, 'pushes': 'w1 v0 w0 w1 v1 v0 w1 w0 w0 v0 v1 v1'}],
        partial(run, early=True), partial(judge, wrong_wait, early=True),
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

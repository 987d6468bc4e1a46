"""Exercise: the learning rate is chosen on one set and tested on another.

To chapter 1, notebooks/01-data-parallelism.ipynb.
"""
from collections import Counter
from collections.abc import Sequence
from itertools import islice, product, takewhile
from typing import Any, NamedTuple, TypedDict

import numpy as np

from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      returned)
from d2lps.explaining import Facts, brief
from d2lps.units import several

SETS = 'validation', 'test'


class Model(NamedTuple):
    """The result of `train`."""
    num_devices: int
    lr: float


class Choices(TypedDict):
    """All calls that a student's function made, and its result.

    trained: (num_devices, batch_size, lr). looks: (num_devices, lr, name of
    the set, accuracy). returned: in a message. numbers: two lists, or None.
    """
    trained: list[tuple]
    looks: list[tuple]
    returned: str
    numbers: Any


def _world(seed, lrs, counts, equal=(), step=0.08):
    """Made accuracies, validation and test: a row a count, a column a rate.

    step: the accuracy that a rate loses to the next better one, about.
    equal: columns of rates whose validation accuracies are equal, the best.
    With several rates, another than the best of them is best on the test set.
    """
    random = np.random.default_rng(seed)
    best = random.integers(0, len(lrs), len(counts))
    distance = abs(np.argsort(np.argsort(lrs)) - best[:, None])
    validation = 0.93 - step * (distance - random.random(distance.shape) / 9)
    if equal:
        validation[:, equal] = 0.95
    validation = validation.round(4)
    test = (validation - 0.02 - 0.02 * random.random(
        validation.shape)).round(4)
    for row, (seen, unseen) in enumerate(zip(validation, test)):
        others = np.flatnonzero(seen < seen.max())
        if len(others):
            unseen[random.choice(others)] = round(unseen.max() + 0.013, 4)
    return {'validation': validation, 'test': test}


def run(answer: Answer, lrs: Sequence[float], counts: Sequence[int], b: int,
        **more: Any) -> Choices:
    """All calls of `train` and `evaluate`, in order, and the result."""
    accuracies = _world(lrs=lrs, counts=counts, **more)
    trained, looks = list[tuple](), list[tuple]()

    def train(num_devices, batch_size, lr):
        # A float32 is not quite the rate that it was made of.
        near = [rate for rate in lrs if _near(rate, lr)]
        if num_devices not in counts or not near:
            raise Wrong(f'you call train({brief(num_devices)}, '
                        f'{brief(batch_size)}, {brief(lr)}); the counts are '
                        f'{counts}, and the rates {lrs}.', anywhere=True)
        trained.append((int(num_devices), float(batch_size), near[0]))
        return Model(int(num_devices), near[0])

    def evaluate(model, name):
        if not isinstance(model, Model):
            raise Wrong(f'you evaluate {brief(model)}; a model that `train` '
                        'returned is right.', anywhere=True)
        if name not in SETS:
            raise Wrong(f'you evaluate on the set {brief(name)}; '
                        "'validation' or 'test' is right.", anywhere=True)
        n, lr = model
        accuracy = float(accuracies[name][counts.index(n), lrs.index(lr)])
        looks.append((n, lr, name, accuracy))
        return accuracy

    result = returned(answer, train, evaluate, [*lrs], [*counts], b)
    return {'trained': trained, 'looks': looks, 'returned': brief(result),
            'numbers': _numbers(result)}


def _near(value, other):
    return np.isclose(value, other, 1e-6, 0)


def _numbers(result):
    """Rates and accuracies, if these are numbers; else None."""
    try:
        numbers = np.array([[*part] if np.iterable(part) else part
                            for part in result])
    except (TypeError, ValueError):
        return None
    return numbers if numbers.dtype.kind in 'fiu' else None


def judge_runs(notes: Choices, lrs: Sequence[float], counts: Sequence[int],
               b: int, **_: Any) -> None:
    """Each pair once, with b images on each device."""
    for n, size, lr in notes['trained']:
        if size != n * b:
            raise Differs(f'you call train({n}, {size:g}, {lr}); '
                          f'train({n}, {n * b}, {lr}) is right', size, n * b,
                          values={'num_devices': n, 'b': b})
    runs = Counter((n, lr) for n, _, lr in notes['trained'])
    for n, lr in product(counts, lrs):
        if runs[n, lr] != 1:
            raise Differs(
                f'you call train({n}, {n * b}, {lr}) {runs[n, lr]} times; '
                'once is right', None, place=(
                    f'You train {len(notes["trained"])} times; there are '
                    f'{len(counts) * len(lrs)} pairs of a count and a rate.'))


def judge_sets(notes: Choices, lrs: Sequence[float], counts: Sequence[int],
               **_: Any) -> None:
    """The test set is looked at once a count, when the rate is chosen."""
    tested = Counter(n for n, _, name, _ in notes['looks'] if name == 'test')
    for n in counts:
        where = f'for {several(n, "device")} you use the test set'
        if tested[n] != 1:
            raise Differs(f'{where} {tested[n]} times; once is right', None,
                          known=_facts(notes, lrs, n, [*tested]))
        looks = [(name, lr) for count, lr, name, _ in notes['looks']
                 if count == n]
        before = {lr for _, lr in takewhile(lambda look: look[0] != 'test',
                                            looks)}
        if before != {*lrs}:
            raise Differs(f'{where} after {len(before)} validation '
                          f'accuracies; after {len(lrs)}, of each rate, is '
                          'right', None)


def _facts(notes, lrs, n, tested):
    """About too few or too many uses of the test set with n devices."""
    seen = [accuracy for count, _, name, accuracy in notes['looks']
            if count == n and name == 'validation']
    rates = {lr for count, lr, name, _ in notes['looks']
             if count == n and name == 'test'}
    told = [value for value in np.ravel(notes['numbers'] or [])
            if any(_near(value, accuracy) for accuracy in seen)]
    return {(k,): fact for k, (fact, is_so) in enumerate((
        ('You return a validation accuracy.', told and not rates),
        (f'You use it only for {several(tested[0], "device")}.'
         if tested else '', not rates and len(tested) == 1),
        ("You never call evaluate(…, 'validation').", not seen and rates),
        ('You use it for each rate, not for the chosen one alone.',
         rates == {*lrs}))) if is_so}


def judge_rates(notes: Choices, lrs: Sequence[float], counts: Sequence[int],
                b: int, **more: Any) -> None:
    """The rate that is best in validation, and its accuracy on the test."""
    world = _world(lrs=lrs, counts=counts, **more)
    best = [min(lr for lr, accuracy in zip(lrs, seen)
                if accuracy == seen.max()) for seen in world['validation']]
    right = [best, [float(unseen[lrs.index(lr)])
                    for lr, unseen in zip(best, world['test'])]]
    numbers = notes['numbers']
    if np.shape(numbers) != (2, len(counts)):
        raise Differs(f'you return {notes["returned"]}; two lists, each with '
                      f'{several(len(counts), "number")}, are right', numbers,
                      right, 1e-6, values={})
    rows = [*zip(counts, world['validation'], world['test'], *right, *numbers)]
    wrong = [_facts_on(rate, lrs, seen, unseen)
             for _, seen, unseen, wanted, _, rate, _ in rows
             if not _near(rate, wanted)]
    known: Facts = {(fact,): fact for fact in wrong[0]
                    if all(fact in others for others in wrong)
                    } if wrong else {}
    for n, seen, _, wanted, truth, rate, number in rows:
        where = f'for {several(n, "device")}'
        if not _near(rate, wanted):
            raise Differs(
                f'{where} you choose {rate:g}; {wanted} is right, with a '
                f'validation accuracy of {seen.max():.4g}', numbers, right,
                1e-6, {}, known, '' if _near(rate, lrs).any() else
                f'{rate:g} is not in `lrs`.')
        if not _near(number, truth):
            raise Differs(
                f'{where} and rate {wanted} you return {number:.4g}; '
                f'{truth:.4g} is right', numbers, right, 1e-6, {}, {
                    (name, lr == wanted, count == n): (
                        f'Yours is the {name} accuracy of rate {lr}, with '
                        f'{several(count, "device")}.')
                    for count, lr, name, accuracy in notes['looks']
                    if _near(number, accuracy)})


def _facts_on(rate, lrs, seen, unseen):
    """Facts about a rate that was chosen for a count: sentences."""
    return [fact for lr, mine, tested in zip(lrs, seen, unseen)
            if _near(rate, lr) for fact, is_so in (
                ('Yours has the same; the smallest is wanted.',
                 mine == seen.max()),
                ('Yours is the best rate on the test set.',
                 tested == unseen.max()),
                ('Yours has the lowest validation accuracy.',
                 mine == seen.min())) if is_so]


def picture(answer: Answer) -> Picture:
    """Train small networks; draw what the student looked at."""
    import d2lps
    from d2lps.pictures import BLUE, ORANGE
    from d2lps.pictures.rows import legend_below, new_figure
    lrs, counts = [0.05, 0.1, 0.2, 0.4], [1, 2]
    looks: dict[int, dict] = {n: {} for n in counts}
    held_out = d2lps.load_data(32)[1]
    sets = {name: d2lps.Batches(held_out.images[first::2],
                                held_out.labels[first::2], 256)
            for first, name in enumerate(SETS)}

    def train(num_devices, batch_size, lr):
        train_iter, _ = d2lps.load_data(int(batch_size))
        places = d2lps.devices(int(num_devices))
        start = d2lps.init_params('xavier', 0)
        copies = [d2lps.get_params(start, device) for device in places]
        for X, y in islice(train_iter, -(-2400 // int(batch_size))):
            d2lps.train_batch(X, y, copies, places, float(lr))
        return num_devices, lr, copies, places

    def evaluate(model, name):
        n, lr, *trained = model
        accuracy = d2lps.evaluate_accuracy(sets[name], *trained)
        if name == 'validation':
            looks[n][lr] = accuracy
        return accuracy

    points = _numbers(answer(train, evaluate, [*lrs], [*counts], 32))
    if np.shape(points) != (2, len(counts)):
        raise Wrong('your function does not return two lists of 2 numbers.')
    ax = new_figure(5.4, 3.5).subplots()
    for n, style, color in zip(counts, ('o-', 's--'), (BLUE, ORANGE)):
        if looks[n]:
            ax.semilogx(*zip(*sorted(looks[n].items())), style, color=color,
                        label=f'validation, {several(n, "device")}')
    for n, (rate, number), color in zip(counts, zip(*points), (BLUE, ORANGE)):
        ax.plot(rate, number, '*', color=color, markersize=14,
                markeredgecolor='gray',
                label=f'test, {several(n, "device")}: {number:.3f}')
    ax.set(xlabel='learning rate', ylabel='accuracy', ylim=(0, 1),
           title='Stars: the chosen rates on the test set')
    ax.set_xticks(lrs, map(str, lrs))
    ax.minorticks_off()
    legend_below(ax, columns=2)
    return ax.figure


PLAIN = {'lrs': [0.05, 0.1, 0.2, 0.4], 'counts': [1, 2, 4], 'b': 128,
         'seed': 4}
MIXED = {'lrs': [0.4, 0.1, 0.2], 'counts': [2, 1], 'b': 64, 'seed': 5}
EQUAL = {**MIXED, 'seed': 6, 'equal': [0, 1]}
SORTED = {**MIXED, 'seed': 7, 'lrs': [0.1, 0.2, 0.4], 'equal': [0, 2]}
CHECKS = {
    'runs': Check([PLAIN, MIXED], run, judge_runs,
                  'each pair was trained once, with b images on each device.',
                  case='b = {b}'),
    'sets': Check([PLAIN, MIXED], run, judge_sets,
                  'the test set is used once for each count, after the rate '
                  'is chosen.', case=''),
    'rates': Check([PLAIN, MIXED, EQUAL, SORTED], run, judge_rates,
                   'each rate is the best on the validation set, and its '
                   'accuracy is right.', case='lrs = {lrs}')}

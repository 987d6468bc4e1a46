"""Exercise: the learning rate is chosen on one set and tested on another.

To chapter 1, notebooks/01-data-parallelism.ipynb.
"""
from collections import Counter
from collections.abc import Sequence
from itertools import islice, product
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np

from d2lps.exercises.checking import Answer, Check, Notes, Picture, Wrong
from d2lps.exercises.images import devices

SETS = 'validation', 'test'


class Model(NamedTuple):
    """What `train` returns."""
    num_devices: int
    lr: float


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
        **more: Any) -> Notes:
    """What was trained, what was looked at, in order; what came back."""
    accuracies = _world(lrs=lrs, counts=counts, **more)
    trained, looks = list[tuple](), list[tuple]()

    def train(num_devices, batch_size, lr):
        # A float32 is not quite the rate that it was made of.
        near = [one for one in lrs if _near(one, lr)]
        if num_devices not in counts or not near:
            raise Wrong(f'train was called with {num_devices} devices and a '
                        f'learning rate of {lr}. The counts are {counts}, '
                        f'the rates {lrs}.')
        trained.append((int(num_devices), float(batch_size), near[0]))
        return Model(int(num_devices), near[0])

    def evaluate(model, name):
        if not isinstance(model, Model) or name not in SETS:
            raise Wrong(f'evaluate was called with {short(model)} and '
                        f'{short(name)}. It takes a model that train '
                        "returned, and 'validation' or 'test'.")
        n, lr = model
        accuracy = float(accuracies[name][counts.index(n), lrs.index(lr)])
        looks.append((n, lr, name, accuracy))
        return accuracy

    returned = answer(train, evaluate, [*lrs], [*counts], b)
    return {'trained': trained, 'looks': looks,
            'returned': short(returned), 'lists': _two_lists(returned)}


def _near(one, other):
    return bool(np.isclose(one, other, 1e-6, 0))


def _two_lists(returned):
    """Rates and accuracies, if these are numbers; else None."""
    try:
        lists = np.array([[*part] for part in returned])
    except (TypeError, ValueError):
        return None
    return lists if len(lists) == 2 and lists.dtype.kind in 'fiu' else None


def judge_runs(notes: Notes, lrs: Sequence[float], counts: Sequence[int],
               b: int, **_: Any) -> None:
    """Each pair once, with b images on each device."""
    for n, size, _lr in notes['trained']:
        if size != n * b:
            raise Wrong(f'you trained {devices(n)} with minibatches of '
                        f'{size:g}: {size / n:g} images on each device. {b} '
                        f'images on each device are wanted, so {n * b} in '
                        'the minibatch.')
    runs = Counter((n, lr) for n, _, lr in notes['trained'])
    for n, lr in product(counts, lrs):
        if runs[n, lr] != 1:
            keep = (' Keep the model that a run returns, because real runs '
                    'take minutes.' if runs[n, lr] else '')
            raise Wrong(f'the run with count {n} and learning rate {lr} was '
                        f'made {runs[n, lr]} times. Each run is wanted once, '
                        f'{len(counts) * len(lrs)} in all; you made '
                        f'{len(notes["trained"])}.{keep}')


def judge_sets(notes: Notes, lrs: Sequence[float], counts: Sequence[int],
               **_: Any) -> None:
    """The test set is looked at once a count, when the rate is chosen."""
    for n in counts:
        looks = [(name, lr) for count, lr, name, _ in notes['looks']
                 if count == n]
        tests = [lr for name, lr in looks if name == 'test']
        known = {lr for name, lr in looks if name == 'validation'}
        if not tests:
            raise Wrong(f'for {devices(n)} you asked for {len(known)} '
                        'validation accuracies, and for none on the test '
                        'set. The validation accuracy of the best of many '
                        'rates is partly luck, so it is too high to report.')
        if len(tests) > 1:
            raise Wrong(f'for {devices(n)} you asked {len(tests)} times for '
                        'a test accuracy, and for the validation accuracy of '
                        f'{len(known)} rates. Only one test accuracy is '
                        'allowed: that of the chosen rate. A set that helps '
                        'to choose the rate can no longer show how good the '
                        'rate is on new images.')
        before = {lr for name, lr in looks[:looks.index(('test', tests[0]))]}
        if before != {*lrs}:
            raise Wrong(f'for {devices(n)} you used the test set when you '
                        'knew the validation accuracy of only '
                        f'{len(before)} of {len(lrs)} rates. Use the test '
                        'set last, when the rate is chosen.')


def judge_rates(notes: Notes, lrs: Sequence[float], counts: Sequence[int],
                b: int, **more: Any) -> None:
    """The rate that is best in validation, and its accuracy on the test."""
    if np.shape(notes['lists']) != (2, len(counts)):
        raise Wrong(f'your function returned {notes["returned"]}. Two lists '
                    'are wanted, of rates and of test accuracies, each with '
                    f'a number for every count of {counts}.')
    world = _world(lrs=lrs, counts=counts, **more)
    for n, seen, unseen, rate, number in zip(
            counts, world['validation'], world['test'], *notes['lists']):
        wanted = min(lr for lr, accuracy in zip(lrs, seen)
                     if accuracy == seen.max())
        if not _near(rate, wanted):
            raise Wrong(f'for {devices(n)} you chose {rate:g}, and {wanted} '
                        'is right, with a validation accuracy of '
                        f'{seen.max():.4g}.{_about(rate, lrs, seen, unseen)}')
        truth = unseen[lrs.index(wanted)]
        if not _near(number, truth):
            whose = [f' Yours is what evaluate returned for {devices(count)}, '
                     f'rate {lr}, {name!r}.' for count, lr, name, accuracy
                     in notes['looks'] if _near(number, accuracy)]
            raise Wrong(f'for {devices(n)} you return an accuracy of '
                        f'{number:.4g}, but the model with rate {wanted} has '
                        f'{truth:.4g} on the test set.{(*whose, "")[0]}')


def _about(rate, lrs, seen, unseen):
    """Words about a wrong rate: what it has on the two sets."""
    for lr, mine, tested in zip(lrs, seen, unseen):
        if not _near(lr, rate):
            continue
        if mine == seen.max():
            return ' Yours has the same; of equals the smallest is wanted.'
        best = (', the highest of all rates. The test set must not choose.'
                if tested == unseen.max() else '.')
        return f' Yours has {mine:.4g}, and {tested:.4g} on the test set{best}'
    return f' The rates are {lrs}.'


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

    points = _two_lists(answer(train, evaluate, [*lrs], [*counts], 32))
    if points is None:
        raise Wrong('there is nothing to draw: your function did not return '
                    'two lists of numbers.')
    figure = new_figure(5.4, 3.5)
    ax = figure.subplots()
    for n, style, color in zip(counts, ('o-', 's--'), (BLUE, ORANGE)):
        if looks[n]:
            ax.semilogx(*zip(*sorted(looks[n].items())), style, color=color,
                        label=f'validation, {devices(n)}')
    for n, (rate, number), color in zip(counts, zip(*points), (BLUE, ORANGE)):
        ax.plot(rate, number, '*', color=color, markersize=14,
                markeredgecolor='gray',
                label=f'test, {devices(n)}: {number:.3f}')
    ax.set(xlabel='learning rate', ylabel='accuracy', ylim=(0, 1),
           title='Stars: the chosen rates on the test set')
    ax.set_xticks(lrs, map(str, lrs))
    ax.minorticks_off()
    legend_below(ax, columns=2)
    return figure


PLAIN = {'lrs': [0.05, 0.1, 0.2, 0.4], 'counts': [1, 2, 4], 'b': 128,
         'seed': 4}
MIXED = {'lrs': [0.4, 0.1, 0.2], 'counts': [2, 1], 'b': 64, 'seed': 5}
EQUAL = {**MIXED, 'seed': 6, 'equal': [0, 1]}
SORTED = {**MIXED, 'seed': 7, 'lrs': [0.1, 0.2, 0.4], 'equal': [0, 2]}
CHECKS = {
    'runs': Check([PLAIN, MIXED], run, judge_runs,
                  'each pair was trained once, with b images on each device.'),
    'sets': Check([PLAIN, MIXED], run, judge_sets,
                  'the test set is used once for each count, after the rate '
                  'is chosen.'),
    'rates': Check([PLAIN, MIXED, EQUAL, SORTED], run, judge_rates,
                   'each rate is the best on the validation set, and its '
                   'accuracy is right.')}

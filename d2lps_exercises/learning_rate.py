"""Exercise: accuracy against the learning rate, for more and more devices.

To chapter 1, notebooks/01-data-parallelism.ipynb.
"""
from itertools import islice
from reprlib import repr as short

import numpy as np

from d2lps_exercises.checking import Check, Wrong


def _world(seed, lrs, counts, lost=(), equal=(), step=0.1, useless=()):
    """Made accuracies, a row a count: up to a best rate, then down.

    lost: [row, column] of runs that return nan. equal: the columns of rates
    that are equally good, and better than others. step: the accuracy that a
    rate loses to the next better one, about. useless: [row, column] of runs
    that learned nothing, and got nothing right.
    """
    random = np.random.default_rng(seed)
    best = random.integers(0, len(lrs), len(counts))
    distance = abs(np.argsort(np.argsort(lrs)) - best[:, None])
    table = 0.9 - step * (distance - random.random(distance.shape) / 10)
    if equal:
        table = table.round(1)
        table[:, equal] = 0.95
    for row, column in lost:
        table[row, column] = np.nan
    for row, column in useless:
        table[row, column] = 0.0
    return table


def run(answer, lrs, counts, b, **more):
    """The runs that were asked for, in order; and what came back."""
    accuracies, runs = _world(lrs=lrs, counts=counts, **more), []

    def train(num_devices, batch_size, lr):
        runs.append([int(num_devices), float(batch_size), float(lr)])
        if num_devices not in counts or lr not in lrs:
            raise Wrong(f'train was called with {num_devices} devices and a '
                        f'learning rate of {lr}. The counts are {counts}, '
                        f'the rates {lrs}.')
        return float(accuracies[counts.index(num_devices), lrs.index(lr)])

    returned = answer(train, [*lrs], [*counts], b)
    try:
        table, best = returned
        table, best = np.array(table), np.array(best)
        if {table.dtype.kind, best.dtype.kind} <= {'f', 'i', 'u'}:
            return {'runs': runs, 'table': table, 'best': best.tolist()}
        return {'runs': runs, 'returned': short(returned)}
    except (TypeError, ValueError):
        return {'runs': runs, 'returned': short(returned)}


def judge_runs(notes, lrs, counts, b, **_):
    """Each pair once, with b images on each device."""
    seen = {}
    for n, size, lr in notes['runs']:
        if size != n * b:
            devices = f'{n} device' + 's' * (n > 1)
            raise Wrong(f'you trained {devices} with minibatches of '
                        f'{size:g}: {size / n:g} images on each device. '
                        f'{b} on each are wanted, so {n * b}.')
        seen[n, lr] = seen.get((n, lr), 0) + 1
    wanted = [(n, lr) for n in counts for lr in lrs]
    for n, lr in wanted:
        if (n, lr) not in seen:
            raise Wrong(f'the run with count {n} and learning rate {lr} is '
                        'left out.')
        if seen[n, lr] > 1:
            raise Wrong(
                f'the run with count {n} and learning rate {lr} was made '
                f'{seen[n, lr]} times; you made {len(notes["runs"])} runs, '
                f'and {len(wanted)} are enough. Keep what a run returns: '
                'real ones take minutes.')


def judge_best(notes, lrs, counts, b, **more):
    """The table, and of each row the best rate."""
    if 'returned' in notes:
        raise Wrong(f'your function returned {notes["returned"]}. A table, a '
                    'list of lists, and a list of learning rates are wanted, '
                    'such as ([[0.7, 0.9]], [0.2]).')
    truth, (rows, columns) = _world(lrs=lrs, counts=counts, **more), (
        len(counts), len(lrs))
    table, best = np.array(notes['table'], float), notes['best']
    if table.shape != truth.shape:
        way = ('One row for each count is wanted, not for each rate.'
               if table.shape == (columns, rows) else
               f'{rows} x {columns} are wanted, a row for each count.')
        raise Wrong(f'your table has the shape {table.shape}. {way}')
    for row, column in np.argwhere(~np.isclose(table, truth, equal_nan=True)):
        raise Wrong(f'row {row}, column {column} of your table is '
                    f'{table[row, column]:.4g}. The run with count '
                    f'{counts[row]} and learning rate {lrs[column]} returned '
                    f'{truth[row, column]:.4g}.'
                    f'{_mixed_up(table, truth, row, column, lrs)}')
    if np.shape(best) != (rows,):
        raise Wrong(f'best rates for {rows} counts are wanted, and yours are '
                    f'{short(best)}. For each count, look along its row.')
    for n, row, mine in zip(counts, truth, best):
        top = np.nanmax(row)
        right = min(lr for lr, a in zip(lrs, row) if a == top)
        # A float32 is not quite the rate that it was made of.
        near = [lr for lr in lrs if np.isclose(lr, mine, 1e-6, 0)]
        if right in near:
            continue
        if not near:
            raise Wrong(f'the best learning rate for count {n} is none of '
                        f'{lrs}; it is {mine:g}. Return the rate, not its '
                        'place in the list or the accuracy.')
        got = row[lrs.index(near[0])]
        if np.isnan(got):
            raise Wrong(f'for count {n} you chose {mine:g}, and that run '
                        'returned nan: its loss was no longer a number. nan '
                        'is neither larger nor smaller than any number; '
                        'such a run must not win.')
        if got == top:
            raise Wrong(f'for count {n} you chose {mine:g}. A smaller rate '
                        f'reached the same {top:.4g}; of equals the smallest '
                        'is wanted.')
        raise Wrong(f'for count {n} you chose {mine:g}, with an accuracy of '
                    f'{got:.4g}. Another rate in its row reached {top:.4g}.')


def _mixed_up(table, truth, row, column, lrs):
    """Where a number of the table may come from that is not its own."""
    if np.isin(table[row, column], truth[row]):
        return f' Columns have the order of lrs, {lrs}.'
    if np.isin(table[row, column], truth[:, column]):
        return (' That is what another count returned: are two rows the same '
                'list, or in another order?')
    return ''


def picture(answer):
    """Train small networks and draw the student's table."""
    import d2lps
    from d2lps_pictures import BLUE, ORANGE, plot_curves
    lrs, counts = [0.05, 0.1, 0.2, 0.4], [1, 2]

    def train(num_devices, batch_size, lr):
        train_iter, test_iter = d2lps.load_data(int(batch_size))
        devices = d2lps.devices(int(num_devices))
        start = d2lps.init_params('xavier', 0)
        copies = [d2lps.get_params(start, device) for device in devices]
        for X, y in islice(train_iter, -(-2400 // int(batch_size))):
            losses = d2lps.train_batch(X, y, copies, devices, float(lr))
        if not all(np.isfinite(part.asnumpy()).all() for part in losses):
            return float('nan')
        return d2lps.evaluate_accuracy(test_iter, copies, devices)
    table, best = answer(train, lrs, counts, 32)
    curves = {f'{n} device{"s" * (n > 1)}, minibatch {32 * n}: best {lr}':
              (lrs[:len(row)], row[:len(lrs)])
              for n, row, lr in zip(counts, table, best)}
    return plot_curves(curves, 'learning rate', 'test accuracy',
                       xscale='log', xlim=(0.04, 0.5), ylim=(0, 1),
                       xticks=lrs, styles=['o-', 's--'],
                       colors=[BLUE, ORANGE])


PLAIN = {'lrs': [0.05, 0.1, 0.2, 0.4], 'counts': [1, 2, 4], 'b': 128,
         'seed': 4}
LOST = {**PLAIN, 'seed': 2, 'lost': [[0, 3], [2, 0]]}
EQUAL = {'lrs': [0.4, 0.1, 0.2], 'counts': [1, 2], 'b': 64, 'seed': 5,
         'equal': [0, 1]}
SORTED = {**EQUAL, 'lrs': [0.1, 0.2, 0.4], 'equal': [0, 2]}
CHECKS = {
    'runs': Check([PLAIN, EQUAL, LOST], run, judge_runs,
                  'each pair was trained once, with b images on each device.'),
    'best': Check([PLAIN, LOST, EQUAL, SORTED], run, judge_best,
                  'the table is right, and the best rates are.')}

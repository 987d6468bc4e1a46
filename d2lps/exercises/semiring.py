"""Matrix products with other pairs than sum and product.

To chapter 7, notebooks/07-more-than-sums.ipynb. The student writes a product
whose work is spread over devices.
"""
from copy import deepcopy

import numpy as np

from d2lps.checks import shown
from d2lps.collectives import Schedule, strategies
from d2lps.exercises.checking import Answer, Check, Notes, Picture, Wrong

# Each has plus, times and the zero of plus.
SEMIRINGS: dict[str, tuple[np.ufunc, np.ufunc, float]] = {
    'numbers': (np.add, np.multiply, 0.0),
    'shortest way': (np.minimum, np.add, np.inf),
    'widest way': (np.maximum, np.minimum, 0.0),
    'log-probability': (np.logaddexp, np.add, -np.inf),
    # No semiring, but such a product: the order counts in times.
    'largest difference': (np.maximum, np.subtract, -np.inf)}
ROADS = [(0, 1, 7), (1, 2, 4), (2, 3, 6), (3, 4, 3), (4, 5, 8), (5, 6, 2),
         (6, 7, 5), (7, 0, 9), (1, 5, 12)]  # the chapter's


def _matrices(semiring, inner, seed, whole):
    """A (3, inner) and B (inner, 4); some numbers are the semiring's zero.

    whole: both are of type int64, and none is that zero.
    """
    if semiring == 'numbers':  # here a sum shows whose parts are in it
        return (8.0 ** np.arange(1, inner + 1) + np.zeros((3, 1)),
                np.ones((inner, 4)))
    random, zero = np.random.default_rng(seed), SEMIRINGS[semiring][2]
    if whole:
        return [random.integers(1, 900, shape)
                for shape in ((3, inner), (inner, 4))]
    zeros = 0 if semiring == 'largest difference' else 0.2
    return [np.where(random.random(shape) < zeros, zero, random.integers(
        1, 900, shape)) for shape in ((3, inner), (inner, 4))]


def run(answer: Answer, semiring: str, n: int, inner: int, seed: int = 0,
        whole: bool = False) -> Notes:
    """What the student's function gave plan.run, and what it returned.

    alone: what it returns for the same matrices and one device.
    """
    plan, parts, kinds, ends = strategies.ring(n), [], [], []

    def run(arrays, op=np.add):
        before = deepcopy(arrays)
        kinds.extend(sorted({np.asarray(part).dtype.name for part in before}))
        Schedule.run(plan, arrays, op)
        parts.append(before)
        ends.append(deepcopy(arrays[0]))

    plan.run = run  # type: ignore[method-assign]  # of this plan alone
    A, B = _matrices(semiring, inner, seed, whole)
    C = answer(A, B, *SEMIRINGS[semiring], plan)
    if np.shape(C) != (3, 4):
        raise Wrong('the product must be an array of shape (3, 4); your '
                    f'function returned {shown(C)}.')
    again = _matrices(semiring, inner, seed, whole)
    changed = not all(map(np.array_equal, (A, B), again))
    try:
        alone = np.array(answer(*again, *SEMIRINGS[semiring],
                                strategies.ring(1)), float)
    except Exception:  # no hint, then
        alone = np.zeros(0)
    return {'parts': parts, 'result': C, 'kinds': kinds, 'changed': changed,
            'ends': ends, 'alone': alone}


def judge(notes: Notes, semiring: str, n: int, inner: int, seed: int = 0,
          whole: bool = False) -> None:
    plus, times, zero = SEMIRINGS[semiring]
    A, B = (matrix.astype(float)
            for matrix in _matrices(semiring, inner, seed, whole))
    C = plus.reduce(times(A[:, :, None], B), axis=1)
    if notes['changed'] and semiring != 'numbers':  # it costs one part only
        raise Wrong('your function has changed A or B. They belong to the '
                    'caller. Make a copy, and change the copy.')
    if len(notes['parts']) != 1:
        raise Wrong(f'plan.run was called {len(notes["parts"])} times. It '
                    'takes one call, with the part of each device.')
    parts = np.array(notes['parts'][0], float)
    if parts.shape != (n, 3, 4):
        raise Wrong('each device needs a part as large as the product.')
    if semiring == 'numbers' and notes['kinds'] == ['float64']:
        _judge_shares(parts[:, 0, 0], n, inner)
    for found, words in (
            (plus.reduce(parts), 'the parts of the devices, put together '
                                 f'with {plus.__name__}, give'),
            (np.array(notes['ends'][0], float),
             'the parts are right, but plan.run makes'),
            (np.array(notes['result'], float),
             'plan.run makes the right product, but your function returned')):
        for i, j in np.argwhere(~np.isclose(found, C, 1e-9)):
            swapped = plus.reduce(times(B, A[:, :, None]), axis=1)
            raise Wrong(f'{words} {found[i, j]:.12g} in row {i}, column {j}. '
                        f'{C[i, j]:.12g} is right. '
                        f'{_hint(notes, parts, C, found, swapped, zero)}')


def _hint(notes, parts, C, found, swapped, zero):
    """What can be seen of a wrong product.

    swapped: the right one with times(b, a) in place of times(a, b).
    """
    if notes['kinds'] != ['float64']:
        return (f'The parts are of type {" and ".join(notes["kinds"])}. The '
                'numbers fit only in float64.')
    for device, part in enumerate(parts):
        if zero != 0 and (part == 0).all():
            return (f'The part of device {device} is 0 everywhere. A part '
                    f'that has no k must be {zero} everywhere.')
    if zero != 0 and np.array_equal(found, parts.sum(axis=0)):
        return 'This is the sum of the parts.'
    if np.array_equal(found, swapped):
        return 'With times(b, a) in place of times(a, b) this is right.'
    alone = np.array(notes['alone'], float)
    right = alone.shape == C.shape and np.allclose(alone, C, 1e-9)
    return ('With one device your product is '
            f'{"right" if right else "not right, either"}.')


def _judge_shares(parts, n, inner):
    """Raise `Wrong` unless each k is in one part, and the work is shared.

    parts: one number of each. Its digits, to the base 8, count what is in it.
    """
    counts = parts[:, None] // 8.0 ** np.arange(inner + 1) % 8
    for device in np.flatnonzero(counts[:, 0]):
        raise Wrong(f'the part of device {device} holds '
                    f'{counts[device, 0]:g} before the first k is added. 0 is '
                    'right.')
    for k, count in enumerate(counts[:, 1:].T):
        where = ' and '.join(map(str, count.nonzero()[0]))
        if count.sum() != 1:
            raise Wrong(f'column {k} of A and row {k} of B, of 0 to '
                        f'{inner - 1}, are ' + (
                            f'counted {count.sum():.0f} times, by device '
                            f'{where}.' if where else
                            'left out: they are in no part.'))
    most, target = counts[:, 1:].sum(axis=1), -(-inner // n)
    if most.max() > target:
        raise Wrong(f'the parts are right, but device {most.argmax()} does '
                    f'{most.max():.0f} of the {inner} columns of A. The '
                    f'target is at most {target}, so that all devices work.')


def picture(answer: Answer) -> Picture:
    """Shortest ways between eight towns, after one product and after two."""
    from d2lps.pictures import Row
    plus, times, zero = SEMIRINGS['shortest way']
    D = np.where(np.eye(8), 0, zero)
    for i, j, length in ROADS:
        D[i, j] = D[j, i] = length
    drawings, right = [], D
    for roads in 2, 4:
        D = answer(D.copy(), D.copy(), plus, times, zero, strategies.ring(4))
        if np.shape(D) != (8, 8):
            raise Wrong(f'your function returned {shown(D)}, no product.')
        D = np.array(D, float)
        right = plus.reduce(times(right[:, :, None], right), axis=1)
        drawings.append(_draw(D, right != D, roads))
    return Row(*drawings)


def _draw(D, wrong, roads):
    """A table of ways between towns; what is wrong is bold and grey."""
    from d2lps.pictures import Drawing
    towns, count = 'ABCDEFGH', int(wrong.sum())
    drawing = Drawing(352, 330, f'Shortest ways of up to {roads} roads '
                      f'between eight towns; {count} of 64 are wrong.')
    drawing.text(4, 15, f'ways of up to {roads} roads'
                 + ' (bold, grey: wrong)' * bool(count), 13, 'start',
                 bold=True)
    for k, town in enumerate(towns):
        drawing.text(54 + 38 * k, 40, town, 12)
        drawing.text(20, 66 + 34 * k, town, 12)
    for (i, j), length in np.ndenumerate(D):
        drawing.box(36 + 38 * j, 50 + 34 * i, 36, 32, '',
                    '#d0d0d0' if wrong[i, j] else 'white', stroke='#ddd')
        drawing.text(54 + 38 * j, 66 + 34 * i, f'{length:.3g}', 12,
                     bold=bool(wrong[i, j]))
    return drawing


CHECKS = {
    'shares': Check([{'semiring': 'numbers', 'n': n, 'inner': inner}
                     for n, inner in ((3, 6), (4, 7), (1, 4))],
                    run, judge,
                    'each k is in one part, and no device has too many.'),
    'product': Check([{'semiring': name, 'n': n, 'inner': inner}
                      for name, n, inner in (
                          ('shortest way', 4, 10), ('widest way', 4, 3),
                          ('log-probability', 4, 3),
                          ('largest difference', 3, 5))] + [
                              {'semiring': 'shortest way', 'n': 2, 'inner': 2,
                               'whole': True}], run, judge,
                     'the products with four other pairs are right.')}

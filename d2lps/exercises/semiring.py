"""Matrix products with other pairs than sum and product.

To chapter 7, notebooks/07-more-than-sums.ipynb. The student writes a product
whose work is spread over devices.
"""
from copy import deepcopy
from typing import Any, TypedDict

import numpy as np

from d2lps.collectives import Schedule, strategies
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      returned, unchanged)
from d2lps.explaining import brief

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


class Product(TypedDict):
    """The parts that plan.run got, their types, its sums, and the result."""
    parts: list
    kinds: list[str]
    ends: list
    result: Any


def run(answer: Answer, semiring: str, n: int, inner: int, seed: int = 0,
        whole: bool = False) -> Product:
    """The parts that the student's function gave plan.run, and its result."""
    plan, parts, kinds = strategies.ring(n), [], set[str]()
    ends = []

    def run(arrays, op=np.add):
        kinds.update(np.asarray(part).dtype.name for part in arrays)
        parts.append(deepcopy(arrays))
        Schedule.run(plan, arrays, op)
        ends.append(np.array(arrays[0]))

    plan.run = run  # type: ignore[method-assign]  # of this plan alone
    A, B = _matrices(semiring, inner, seed, whole)
    # A student who changes A or B loses one part only.
    with unchanged(**{} if semiring == 'numbers' else {'A': A, 'B': B}):
        C = returned(answer, A, B, *SEMIRINGS[semiring], plan)
    return {'parts': parts, 'kinds': sorted(kinds), 'result': C,
            'ends': ends}


def judge(notes: Product, semiring: str, n: int, inner: int, seed: int = 0,
          whole: bool = False) -> None:
    plus, times, zero = SEMIRINGS[semiring]
    A, B = (matrix.astype(float)
            for matrix in _matrices(semiring, inner, seed, whole))
    right = plus.reduce(times(A[:, :, None], B), axis=1)
    result = notes['result']
    if np.shape(result) != (3, 4):
        raise Differs(f'you return {brief(result)}; an array of shape (3, 4) '
                      'is right', result, right)
    if len(notes['parts']) != 1:
        raise Wrong(f'you call plan.run {len(notes["parts"])} times; one call '
                    'with the part of each device is right.')
    parts = np.array(notes['parts'][0], float)
    if parts.shape != (n, 3, 4):
        raise Wrong('each device needs a part as large as the product.')
    if semiring == 'numbers' and notes['kinds'] == ['float64']:
        _judge_shares(parts[:, 0, 0], n, inner)
    for mine, label in (
            (plus.reduce(parts), f'{plus.__name__} of all parts is'),
            (np.array(notes['ends'][0], float),
             'the parts are right, but plan.run makes'),
            (np.array(result, float), 'plan.run is right, but you return')):
        for i, j in np.argwhere(~np.isclose(mine, right, 1e-9)):
            raise Differs(
                f'in row {i}, column {j}, {label} {mine[i, j]:.12g}; '
                f'{right[i, j]:.12g} is right', mine, right, 1e-9, known={
                    key: said for key, said, fits in _facts(
                        notes, parts, mine, right, zero, times, plus, A, B)
                    if fits})


def _facts(notes, parts, mine, right, zero, times, plus, A, B):
    """(key, words, whether it is so): what a wrong product can be."""
    kinds = notes['kinds']
    with_zeros = plus.reduce([right, *np.zeros_like(parts)])
    yield (('type',), f'The parts are {" and ".join(kinds)}: fractions and '
           'infinity need float64.', kinds != ['float64'])
    yield (('zero',), f'Each part begins with 0. Begin with `zero`, here '
           f'{zero}.', zero and np.allclose(mine, with_zeros))
    yield (('added',), f'That is their sum: give `plus`, here '
           f'{plus.__name__}, to plan.run.', np.array_equal(
               mine, parts.sum(axis=0)) and not np.array_equal(
                   mine, plus.reduce(parts)))
    yield (('swapped',), 'You compute times(b, a); times(a, b) is right, with '
           'a of A.', np.array_equal(
               mine, plus.reduce(times(B, A[:, :, None]), axis=1)))


def _judge_shares(parts, n, inner):
    """Raise `Wrong` unless each k is in one part, and the work is shared.

    parts: one number of each. Its digits, to the base 8, count what is in it.
    """
    counts = parts[:, None] // 8.0 ** np.arange(inner + 1) % 8
    for device in np.flatnonzero(counts[:, 0]):
        begin = counts[device, 0] if np.isfinite(parts[device]) else (
            parts[device])
        raise Wrong(f'the part of device {device} begins with {begin:g}; 0 is '
                    'right.')
    often = counts[:, 1:].sum(axis=0)
    for many in sorted({*often} - {1}):
        which = np.flatnonzero(often == many)
        raise Wrong(
            f'of the columns 0 to {inner - 1} of A, {brief(which)} are ' + (
                'in no part.' if not many else f'counted {many:.0f} times.'))
    most, target = counts[:, 1:].sum(axis=1), -(-inner // n)
    if most.max() > target:
        raise Wrong(f'device {most.argmax()} does {most.max():.0f} of the '
                    f'{inner} columns of A; at most {target} is right, so '
                    'that all devices work.')


def picture(answer: Answer) -> Picture:
    """Shortest ways between eight towns, after one product and after two."""
    from d2lps.pictures import Row
    plus, times, zero = SEMIRINGS['shortest way']
    D = np.where(np.eye(8), 0, zero)
    for i, j, length in ROADS:
        D[i, j] = D[j, i] = length
    drawings, right = [], D
    for roads in 2, 4:
        D = returned(answer, D.copy(), D.copy(), plus, times, zero,
                     strategies.ring(4))
        if np.shape(D) != (8, 8):
            raise Wrong(f'you return {brief(D)}; an array of shape (8, 8) is '
                        'right.')
        D = np.array(D, float)
        right = plus.reduce(times(right[:, :, None], right), axis=1)
        drawings.append(_draw(D, right != D, roads))
    return Row(*drawings)


def _draw(D, wrong, roads):
    """A table of ways between towns; the wrong ones are bold and grey."""
    from d2lps.figures import describe
    from d2lps.pictures.rows import HALF, new_figure
    towns = [*'ABCDEFGH']
    ax = new_figure(HALF, 3.3).subplots()
    ax.axis('off')
    ax.set_title(f'ways of up to {roads} roads'
                 + ' (bold, grey: wrong)' * bool(wrong.any()))
    table = ax.table([[f'{length:.3g}' for length in row] for row in D],
                     np.where(wrong, '#d0d0d0', 'white').tolist(),
                     rowLabels=towns, colLabels=towns, cellLoc='center',
                     bbox=[0.06, 0, 0.94, 1])
    for i, j in np.argwhere(wrong):
        table[i + 1, j].set_text_props(weight='bold')
    describe(ax, f'Shortest ways of up to {roads} roads between eight towns; '
                 f'{wrong.sum()} of 64 are wrong.')
    return ax.figure


CHECKS = {
    'shares': Check([{'semiring': 'numbers', 'n': n, 'inner': inner}
                     for n, inner in ((3, 6), (4, 7), (1, 4))],
                    run, judge,
                    'each k is in one part, and no device has too many.',
                    case='n = {n}'),
    'product': Check([{'semiring': name, 'n': n, 'inner': inner}
                      for name, n, inner in (
                          ('shortest way', 4, 10), ('widest way', 4, 3),
                          ('log-probability', 4, 3),
                          ('largest difference', 3, 5))] + [
                              {'semiring': 'shortest way', 'n': 2, 'inner': 2,
                               'whole': True}], run, judge,
                     'the products with four other pairs are right.',
                     case='{semiring}, n = {n}')}

"""Each fact about a wrong answer: where it is true, and where it misleads."""
import linecache

import numpy as np
import pytest

from d2lps.explaining import (Kept, brief, explain, nothing_returned,
                              returns, same, source_facts)


def hint(*faults, **about):
    """faults: (got, wanted) or (got, wanted, case) of each failing case."""
    got, wanted, case = zip(*((*fault, {})[:3] for fault in faults))
    return explain(got, wanted, case, **about)


def function(source, name='f'):
    """A function whose source can be read, as in a notebook."""
    place = f'<test {hash(source)}>'
    linecache.cache[place] = (len(source), None, source.splitlines(True),
                              place)
    names = {}
    exec(compile(source, place, 'exec'), names)
    return names[name]


# name: (a case in which it is a fact, a case in which it is none, words)
FACTS = {
    'a factor, by the name of a value':
        ([(8, 1, {'gpus': 8}), (12, 3, {'gpus': 4})],
         [(8, 1, {'gpus': 8}), (8, 1, {'gpus': 4})],
         '8 times too large, and `gpus` is 8.'),
    'a factor without a name, if two values have it':
        ([(8, 1, {'gpus': 8, 'k': 8})], [(8, 1), (9, 1)],
         'Yours is 8 times too large.'),
    'a factor of a list':
        ([([1, 2], [3, 6])], [([1, 2], [3, 7])], '3 times too small'),
    'one too large': ([(5, 4), (3, 2)], [(5, 4), (3, 3.5)], '1 too large.'),
    'each number one too small':
        ([([0, 1], [1, 2])], [([0, 1], [1, 3])], 'Each number is 1 too small'),
    'too large by a value':
        ([(7, 3, {'n': 4}), (9, 4, {'n': 5})],
         [(7, 3, {'n': 4}), (9, 3, {'n': 5})], '4 too large, and `n` is 4.'),
    'a factor that is no whole number':
        ([(3.0, 2.0, {'rate': 1.5}), (6.0, 4.0, {'rate': 1.5})],
         [(3.0, 2.0, {'rate': 1.5}), (6.0, 4.1, {'rate': 1.5})],
         '1.5 times too large, and `rate` is 1.5.'),
    'the sign': ([(-2.5, 2.5)], [(-2.5, 2.6)], 'Its sign is wrong.'),
    'the inverse': ([(0.25, 4), (0.3, 1 / 0.3)], [(0.25, 4), (0.3, 3)],
                    '1 divided by your result'),
    'the opposite order':
        ([([1, 2, 3], [3, 2, 1])], [([1, 2, 3], [3, 1, 2])],
         'in the opposite order'),
    'one place too early':
        ([([2, 3, 1], [1, 2, 3])], [([2, 3, 1], [3, 2, 1])],
         'one place too early'),
    'results in another order':
        ([([2, 3, 1], [1, 2, 3])], [([2, 3, 1], [1, 2, 4])],
         'one place too early'),
    'three results in another order':
        ([([1, 3, 2], [1, 2, 3]), ([4, 6, 5], [4, 5, 6])],
         [([1, 3, 2], [1, 2, 3]), ([6, 5, 4], [4, 5, 6])],
         'another order: first, third, second.'),
    'a value below 1 too often':
        ([(0.2, 2, {'lr': 0.1}), (0.6, 3, {'lr': 0.2})],
         [(0.2, 2, {'lr': 0.1}), (0.6, 3, {'lr': 0.1})],
         'the right one times `lr`, 0.1.'),
    'rounded': ([(2.57, 2.5678)], [(2.56, 2.5678)], 'rounded to 2 digits'),
    'swapped pairs':
        ([([[1, 0, 5], [2, 1, 6]], [[0, 1, 5], [1, 2, 6]])],
         [([[1, 0, 5], [2, 1, 6]], [[0, 1, 5], [2, 1, 6]])], 'are swapped'),
    'an end that is the last element':
        ([([[0, 4], [5, 9]], [[0, 5], [5, 10]])],
         [([[0, 4], [5, 9]], [[0, 5], [5, 9]])],
         'The last number of each group is 1 too small.'),
    'the last ones are missing':
        ([([1, 2, 3], [1, 2, 3, 4, 5], {'n': 3})], [([1, 2, 4], [1, 2, 3, 4])],
         'The last 2 of 5 are missing. 5 is no multiple of `n`, 3.'),
    'the first one is missing':
        ([([2, 3], [1, 2, 3])], [([3, 2], [1, 2, 3])],
         'The first of 3 is missing.'),
    'too many at the end':
        ([([1, 2, 3], [1, 2])], [([1, 3, 2], [1, 2])], '1 too many follow'),
    'a list too many': ([([5], 5)], [([5], 6)], 'inside one list too many'),
    'a list too few': ([(5, [5])], [(5, [6])], 'Put yours into a list'),
    'one of two results':
        ([((1, 9), 9), ((2, 8), 8)], [((1, 9), 9), ((2, 8), 7)],
         'The second of your 2 results alone is right.'),
    'a part of the result':
        ([(4, [3, 4])], [(5, [3, 4])], 'the second of the 2 wanted results'),
    'lists in place of one list':
        ([([[1], [2, 3]], [1, 2, 3])], [([[1], [2, 4]], [1, 2, 3])],
         'belong into one list'),
    'rows and columns':
        ([([[1, 2, 3], [4, 5, 6]], [[1, 4], [2, 5], [3, 6]])],
         [([[1, 2, 3], [4, 5, 6]], [[1, 4], [5, 2], [3, 6]])],
         'Rows and columns are interchanged.'),
    'another shape':
        ([([[1, 2], [3, 4]], [1, 2, 3, 4])], [([[1, 2], [3, 4]], [1, 2, 3])],
         'belong into one list'),
    'a text': ([('4', 4)], [('4', 5)], 'a text, not a number')}


@pytest.mark.parametrize('true, false, words', FACTS.values(), ids=FACTS)
def test_a_fact_is_told_where_it_is_true_and_only_there(true, false, words):
    assert words in hint(*true)
    assert words not in hint(*false)


def test_a_value_explains_what_is_missing_only_if_it_divides_so():
    short = [1, 2, 3], [1, 2, 3, 4, 5]
    assert hint((*short, {'n': 4})) == 'The last 2 of 5 are missing.'


def test_a_fact_must_fit_all_failing_cases():
    assert hint((8, 1, {'n': 8}), (3, 1, {'n': 4})) == ''
    assert hint((8, 1, {'n': 8}), ([8], 1, {'n': 8})) == ''


@pytest.mark.parametrize('unit, got, wanted, words', [
    ('seconds', 20.0, 0.02, 'in milliseconds; seconds are wanted'),
    ('milliseconds', 0.01, 10.0, 'in seconds'), ('share', 41.5, 0.415,
                                                 'percent'),
    ('bytes', 32, 4, 'in bits'), ('bytes per second', 12.5, 12.5e6,
                                  'in megabytes per second')])
def test_another_unit_is_named_if_the_unit_of_the_result_is_known(
        unit, got, wanted, words):
    assert words in hint((got, wanted), unit=unit)
    assert words not in hint((got, wanted))
    assert words not in hint((got, wanted), (got, wanted * 1.1), unit=unit)


def test_the_mean_is_told_only_where_something_is_summed():
    of_four = 2.5, 10, {'num_workers': 4, 'n': 3}
    assert 'the mean; the sum is wanted' in hint(of_four, summed='num_workers')
    assert hint(of_four) == ('Yours is 4 times too small, and `num_workers` '
                             'is 4.')
    assert 'mean' not in hint(of_four, summed='n')
    assert hint((10, 2.5, {'n': 4}), averaged='n') == (
        'Yours is the sum; the mean is wanted.')


def test_a_size_that_is_wrong_in_one_case_of_several_is_chance():
    assert hint((5, 20, {'ready': 4})) == (
        'Yours is 4 times too small, and `ready` is 4.')
    assert hint((5, 20, {'ready': 4}), others=2) == ''
    assert '4 times' in hint((5, 20), (6, 24), others=2)
    assert 'rounded to a whole number' in hint((5, 5.3), (6, 5.8))
    assert 'rounded' not in hint((5, 5.3))
    assert 'in milliseconds' in hint((20.0, 0.02), unit='seconds', others=2)


def test_facts_of_the_caller_come_first_and_must_fit_all_cases_too():
    known = {('forward',): 'Only the forward pass is counted.'}
    two = (1, 3), (2, 6)
    assert hint(*two, known=[known, known]) == known['forward',]
    assert hint(*two, known=[known, {}]) == 'Yours is 3 times too small.'


def test_with_many_right_results_a_judge_tells():
    def right(changed, k):
        return changed % 7 == 0

    assert hint((13, None), (20, None), right=right) == (
        'Yours is 1 too small.')
    assert hint((14.5, None), right=lambda *_: 1 / 0) == ''


def test_a_very_large_result_is_not_tried_in_all_ways():
    many = [*range(30_000)]
    assert hint((many[::-1], many)) == ''


LOOP = 'def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n'


def test_a_return_in_a_loop_is_read_in_the_source():
    early = function(LOOP + '        return total\n')
    late = function(LOOP + '    return total\n')
    found = function('def f(xs):\n    for x in xs:\n        if x < 0:\n'
                     '            continue\n        return x\n')
    assert 'inside the loop' in hint((1, 3), source=source_facts(early))
    assert hint((1, 3), source=source_facts(late)) == (
        'Yours is 3 times too small.')
    search = function('def f(xs):\n    for x in xs:\n        if x > 3:\n'
                      '            return x\n')
    assert source_facts(found) == source_facts(search) == {}


@pytest.mark.parametrize('line, cuts', [
    ('a // b', '//'), ('int(a / b)', 'int'), ('round(a / b)', 'round')])
def test_digits_that_are_cut_off(line, cuts):
    facts = source_facts(function(f'def f(a, b):\n    return {line}\n'))
    assert hint((0, 0.5), (2, 2.25), source=facts) == (
        f'`{cuts}` cuts off the digits after the point.')
    assert 'cuts' not in hint((0, 0.5), (1, 2.25), source=facts)
    assert 'cuts' not in hint((0, 0.5), (2, 2.25))  # nothing cuts


def test_an_array_of_whole_numbers_cuts_digits_off():
    assert hint(([0, 1], [0.75, 1.5]), source={'dtype': 'int64'}) == (
        '`int64` cuts off the digits after the point.')
    assert hint(([0, 1], [0.75, 1.5]), source={'dtype': 'float64'}) == ''


def test_the_methods_of_a_class_are_read_one_by_one():
    kept = function('class Kept:\n    def best(self, xs):\n        for x in '
                    'xs:\n            return x // 2\n', 'Kept')
    assert source_facts(kept) == {'loop': True, 'cuts': '//'}


@pytest.mark.parametrize('body, words', [
    ('    x + 1', 'It has no `return` with a value.'),
    ('    print(x)', 'It prints its result: return it.'),
    ('    return [x].sort()', '`[x].sort` returns nothing, it works in place'),
    ('    if x > 9:\n        return x', 'Not each of its ways has a'),
    ('    def g():\n        return 1\n    g()', 'It has no `return`')])
def test_why_nothing_was_returned(body, words):
    f = function(f'def f(x):\n{body}\n')
    assert words in nothing_returned(f)
    assert returns(f) == ('no `return`' not in words and 'prints' not in words)


def test_without_a_source_nothing_is_guessed():
    assert nothing_returned(print) == '`print` returned None.'
    assert returns(print) and source_facts(print) == {}


def test_a_list_that_grows_from_call_to_call_is_named():
    f = function('rounds = []\ndef f(n, found=[]):\n    found.append(n)\n')
    g = function('rounds = []\ndef g(n):\n    rounds.append(n)\n', 'g')
    h = function('sizes = [1, 2]\ndef h(n):\n    return sizes[0]\n', 'h')
    for made, name in (f, 'found'), (g, 'rounds'), (h, ''):
        kept = Kept(made)
        made(1)
        assert kept.grown() == (name, False)
    gate = function('class Gate:\n    pushed = []\n    def push(self, k):\n'
                    '        self.pushed.append(k)\n', 'Gate')
    kept = Kept(gate)
    gate().push(1)
    assert kept.grown() == ('pushed', True)
    kept = Kept(f)  # it has the number of the first call in its list
    f(1)
    assert kept.grown() == ('found', True)


@pytest.mark.parametrize('got, wanted, equal', [
    (1.0005, 1.0, True), (1.01, 1.0, False), (1, 1.0, True), (True, 1, False),
    ([1, (2, 3)], [1, [2, 3]], True), (np.ones(3), [1, 1, 1], True),
    ([1e-9, 5.0], [0.0, 5.0], True), (None, None, True), (None, 0, False),
    (float('inf'), float('inf'), True), (range(3), [0, 1, 2], True),
    ({'a': 1}, {'a': 1.0}, True), ({'a': 1}, {'b': 1}, False),
    ('ring', 'ring', True), ([1], 1, False), ([[1], [2, 3]], [1.0, 2], False)])
def test_which_results_are_the_same(got, wanted, equal):
    assert same(got, wanted) == equal


@pytest.mark.parametrize('value, words', [
    (16992, '16,992'), (0.1 + 0.2, '0.3'), (None, 'None'), ([1, 2], '[1, 2]'),
    ([*range(9)], '[0, 1, 2, 3, 4, … 4 more]'),
    (np.zeros((3, 4)), 'numbers of shape (3, 4)'), ('ring', "'ring'")])
def test_a_value_is_shown_in_a_few_words(value, words):
    assert brief(value) == words


def test_a_number_with_very_many_digits_is_cut():
    assert len(brief((10 ** 400, 1))) < 60

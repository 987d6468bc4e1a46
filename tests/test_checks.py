"""Bad arguments are met with an error that names them."""
import math
from functools import partial

import numpy as np
import pandas
import pytest
from d2lps import checks

NO_NUMBERS = [None, 'two', np.True_, [2], 1j, np.ones(2)]


@pytest.mark.parametrize('value', [3, np.int64(3), np.uint8(3), np.array(3)])
def test_whole_numbers_become_ints(value):
    assert checks.integer('n', value) == 3
    assert type(checks.integer('n', value)) is int


@pytest.mark.parametrize('value', [*NO_NUMBERS, 0, -1, 2.0, math.nan,
                                   math.inf, np.float32(2)])
def test_what_is_no_count_is_refused(value):
    with pytest.raises(ValueError, match='n must be a whole number of at le'):
        checks.integer('n', value)


def test_a_count_has_limits():
    assert checks.integer('n', 0, least=0) == 0
    assert checks.integer('n', 9, most=9) == 9
    with pytest.raises(ValueError, match='n must be .* from 1 to 9.* was 10'):
        checks.integer('n', 10, most=9)
    with pytest.raises(ValueError, match='from 0 to 0, for example n=0; it'):
        checks.integer('n', 1, least=0, most=0)


@pytest.mark.parametrize('check', [checks.number, checks.positive])
def test_numbers_become_python_numbers(check):
    assert type(check('x', np.float32(.5))) is float
    assert check('x', np.int64(2)) == check('x', 2) == 2


@pytest.mark.parametrize('check', [checks.number, checks.positive])
@pytest.mark.parametrize('value', [*NO_NUMBERS, -1, math.nan, math.inf,
                                   -math.inf, np.float32('nan')])
def test_what_is_no_number_is_refused(check, value):
    with pytest.raises(ValueError, match='x must be a .*number.*; it was'):
        check('x', value)


def test_the_example_in_an_error_is_one_that_would_work():
    with pytest.raises(ValueError, match='at least 5, such as 5; it was 3'):
        checks.number('x', 3, least=5)
    with pytest.raises(ValueError, match='to 0.5 such as 0.5; it was 1'):
        checks.positive('x', 1, most=0.5)


def test_zero_is_a_number_and_not_positive():
    assert checks.number('x', 0) == 0
    with pytest.raises(ValueError, match='x must be a positive number'):
        checks.positive('x', 0.0)


def test_flags_texts_functions_and_choices():
    assert checks.boolean('f', np.True_) is True
    for value in (None, 1, 0, 'yes'):
        with pytest.raises(ValueError, match='f must be True or False'):
            checks.boolean('f', value)
    for value in (None, 1, '', ['a']):
        with pytest.raises(ValueError, match='t must be a text'):
            checks.text('t', value)
    with pytest.raises(ValueError, match='g must be a function'):
        checks.function('g', 3)
    choice = checks.one_of('sync', 1)
    assert choice('c', 'sync') == 'sync' and choice('c', 1) == 1
    for value in (None, True, 'sink', np.ones(3)):
        with pytest.raises(ValueError, match="c must be 'sync' or 1; it was"):
            choice('c', value)


def test_of_many_choices_an_error_names_three():
    choice = checks.one_of(*(f'model {k}' for k in range(80)), 'small')
    assert choice('m', 'model 7') == 'model 7'
    for value, words in (('smal', "such as 'small'; it was 'smal'"),
                         ('modell 7', "such as 'model 7', 'model"),
                         (7, "'model 0', 'model 1' or 'model 2'; it was 7")):
        with pytest.raises(ValueError, match='m must be one of 81 val') as e:
            choice('m', value)
        assert words in str(e.value) and len(str(e.value)) < 99


def test_lists_name_the_entry_that_is_wrong():
    check = checks.list_of(checks.integer, 'a list of counts')
    assert check('n', (1, np.int64(2))) == [1, 2]
    with pytest.raises(ValueError, match=r'n\[1\] must be a whole number'):
        check('n', [1, 2.5])
    for value in (None, 'ab', 3, {1: 2}, []):
        with pytest.raises(ValueError, match='n .*must be a list of counts'):
            check('n', value)


def test_either_of_two_checks_will_do():
    check = checks.either(checks.integer, checks.one_of('all'),
                          must="a count or 'all'")
    assert check('n', 3) == 3 and check('n', 'all') == 'all'
    with pytest.raises(ValueError, match="n must be a count or 'all'"):
        check('n', 'none')


def increasing(first, last, step):
    if first > last:
        raise ValueError(f'first must not be above last; it was {first!r}')


@checks.checked(increasing, first=checks.integer, last=checks.integer,
                step=partial(checks.positive, example=0.5))
def steps(first, last=9, step=None):
    """Steps."""
    return first, last, step


def test_arguments_are_checked_before_a_call():
    assert steps(np.int64(2)) == (2, 9, None)
    assert steps(2, step=.5, last=3) == (2, 3, .5)
    with pytest.raises(ValueError, match='last must be a whole number'):
        steps(1, None)
    with pytest.raises(ValueError, match='such as 0.5; it was -1'):
        steps(1, step=-1)
    with pytest.raises(ValueError, match='first must not be above last'):
        steps(10)


def test_a_checked_function_looks_like_itself():
    assert steps.__name__ == 'steps' and steps.__doc__ == 'Steps.'
    with pytest.raises(TypeError, match=r"steps\(\) missing 1 required"):
        steps()
    with pytest.raises(TypeError, match='unexpected keyword argument'):
        steps(1, lost=2)


def test_a_check_for_no_argument_is_noticed_at_once():
    with pytest.raises(TypeError, match='increasing has no arguments'):
        checks.checked(size=checks.integer)(increasing)


def test_arrays_are_not_printed_in_errors():
    with pytest.raises(ValueError, match=r'numpy array of shape \(1000,\)'):
        checks.integer('n', np.ones(1000))


MATRIX = np.array([[1, 2]]).view(np.matrix)


class Tensor:
    """As another package's: it has a shape, and no dtype of NumPy's."""
    shape, ndim, dtype = (2, 3), 2, 'torch.float32'


class Unreadable:
    @property
    def shape(self):
        raise RuntimeError('it was deleted')

    def __repr__(self):
        raise RuntimeError('it was deleted')


@pytest.mark.parametrize('value, words', [
    (pandas.DataFrame({'a': [1, 2]}), r'pandas DataFrame of shape \(2, 1\)'),
    (Tensor(), r'Tensor of shape \(2, 3\), dtype torch.float32'),
    (np.zeros(2, object), r'numpy array of shape \(2,\), dtype object'),
    (Unreadable(), 'Unreadable'), (10 ** 5000, 'object of type int'),
    ([['long' * 99] * 9] * 9, 'long')], ids=range(6))
def test_whatever_it_was_the_error_is_clear_and_short(value, words):
    for check in (checks.positive, checks.boolean, checks.one_of('sync'),
                  checks.list_of(checks.positive, 'a list of numbers')):
        with pytest.raises(ValueError, match='x.* must be') as error:
            check('x', value)
        assert len(str(error.value)) < 500
    with pytest.raises(ValueError, match=f'x must be .*{words}'):
        checks.boolean('x', value)


def test_an_array_loses_nothing():
    assert checks.as_array([1, 2]).tolist() == [1, 2]
    assert checks.as_array(MATRIX, float).tolist() == [[1, 2]]
    masked = np.ma.masked_array([1, 2], [0, 1])
    for value in masked, [masked, masked], (np.arange(2), masked):
        with pytest.raises(ValueError, match='mask'):
            checks.as_array(value)
    with pytest.raises(ValueError, match='too large'):
        checks.as_array([10 ** 400], float)


@pytest.mark.parametrize('value', ['a\0b', 'x' * 256, '\ud800', '/tmp/' +
                                   'ä' * 128, '~nobody-has-this-name/x'])
def test_a_name_that_no_folder_has(value):
    with pytest.raises(ValueError, match='f must be a folder'):
        checks.folder('f', value)
    assert str(checks.folder('f', 'x' * 255)) == 'x' * 255
    assert str(checks.folder('f', '\udcff')) == '\udcff'  # one byte on a disk

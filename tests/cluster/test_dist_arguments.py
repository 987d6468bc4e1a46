"""Keys and arrays that do, and do not, fit a store."""
import pytest
from d2lps.cluster.store.arguments import compression, groups
from d2lps.engine import devices, mx

ONE, TWO = mx.np.ones(3), mx.np.ones((2, 2))
KNOWN = {'w': (3,), 'v': (2, 2)}


def test_one_key_has_an_array_or_one_for_each_device():
    assert groups('value', 'w', ONE, KNOWN) == {'w': [ONE]}
    parts = [mx.np.ones(3, ctx=device) for device in devices(2)]
    assert groups('value', 'w', parts, KNOWN) == {'w': parts}


def test_arrays_of_mxnet_nd_and_single_numbers_will_do():
    assert groups('value', 7, mx.nd.ones((3,)), {7: (3,)})
    assert groups('value', 7, mx.np.array(1.0), {7: ()})
    assert groups('value', 0, ONE, {}, new=True)


@pytest.mark.parametrize('key, value, words', [
    ('x', ONE, "'x' is not initialised; first call init('x', value) on every "
               "worker (so far: 'w', 'v')"),
    ('w', TWO, "'w' must have shape (3,); it was (2, 2)"),
    ('w', ONE.astype('int32'), "float32, for example value.astype('float32')"
                               '; it has 3 of int32'),
    ('w', ONE.asnumpy(), 'must be an mxnet.np array or a list of them'),
    ('w', 3.0, 'it was [3.0]'),
    ('w', mx.nd.ones((2, 2)).tostype('row_sparse'), 'RowSparse'),
    ('w', [ONE, TWO], '(2, 2)'),
    (3.0, ONE, "key must be an int or a str, such as 0 or 'weight'"),
    (-1, ONE, 'it was -1'),
    (2 ** 31, ONE, 'it was 2147483648'),
    (['w', 'v'], [ONE], 'value must be a list with an entry for each of'),
    ([], [], 'key must be a key or a list of keys')])
def test_what_does_not_fit_is_said(key, value, words):
    with pytest.raises(ValueError) as error:
        groups('value', key, value, KNOWN)
    assert words in str(error.value)


@pytest.mark.parametrize('key, value, known, words', [
    ('w', ONE, KNOWN, "'w' is initialised already; push to it"),
    (3, ONE, KNOWN, "of one type in a store, numbers or strings; it was 3, "
                    "and so far there is 'w', 'v'"),
    (['w', 'w'], [ONE, ONE], {}, 'must be one array; there are 2'),
    ('w', mx.np.ones((0, 3)), {}, 'must have elements; its shape is (0, 3)')])
def test_what_cannot_be_initialised_is_said(key, value, known, words):
    with pytest.raises(ValueError) as error:
        groups('value', key, value, known, new=True)
    assert words in str(error.value)


@pytest.mark.parametrize('threshold', [True, 0, 'half'])
def test_a_threshold_is_a_number_above_0(threshold):
    with pytest.raises(ValueError, match="must be like {'type': '2bit'"):
        compression('compression_params', {'type': '2bit',
                                           'threshold': threshold})

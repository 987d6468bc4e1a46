"""Tables of bytes from each device to each."""
import numpy as np
import pytest
from d2lps import pictures
from d2lps.figures import alt_text


def test_each_number_stands_in_its_box_and_what_stays_is_white():
    sizes = np.array([[9e6, 1e6, 2e6], [3e6, 9e6, 4e6], [0, 5e6, 9e6]])
    one, two = pictures.plot_exchange({'equal': np.full((3, 3), 2e6),
                                       'other': sizes})
    shown = {text.get_position(): text.get_text() for text in two.texts}
    assert shown == {(1, 0): '1', (2, 0): '2', (0, 1): '3', (2, 1): '4',
                     (1, 2): '5'}
    assert two.get_title('left') or two.get_title() == 'other, MB'
    assert one.images[0].get_clim() == two.images[0].get_clim()
    assert 'other: MB from each of 3 GPUs to each: 0 1 2; 3 0 4; 0 5 0' in (
        alt_text(one.figure))


@pytest.mark.parametrize('exchanges', [
    8, {}, {'a': np.ones(3)}, {'a': np.ones((2, 3))}, {'a': np.ones((17, 17))},
    {'a': [[0, np.nan], [1, 0]]}, {'a': [[0, np.inf], [1, 0]]},
    {'a': [[0, -1], [1, 0]]}, {'a': [[0, 1], [1]]}, {'a': [['x', 'y']] * 2},
    {'a': np.ma.masked_equal([[0, 1], [1, 0]], 0)}])
def test_what_is_no_exchange_is_refused(exchanges):
    with pytest.raises(ValueError, match=r"^exchanges(\['a'\])? must be a"):
        pictures.plot_exchange(exchanges)

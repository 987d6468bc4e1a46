"""What is called right for a table is near to what the table was made of."""
import pytest

from d2lps.exercises import alpha_beta

LATE = [(0, 4, 1.6), (1, 4, 1.7), (2, 3, 30), (7, 1, 1000), (-1, 4, 3)]


@pytest.mark.parametrize('late', [[], LATE], ids=['clean', 'late'])
def test_the_judge_is_right(late):
    for seed in range(40):
        alpha, bandwidth = alpha_beta._right(
            *alpha_beta.ping_pong(50, 1000, late=late, seed=seed))
        assert alpha == pytest.approx(50e-6, rel=0.05)
        assert bandwidth == pytest.approx(1e9, rel=0.03)

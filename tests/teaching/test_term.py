"""A class of six hands in for three weeks, and all tables are right."""
import sys

import pytest
from handins import ROOT

sys.path.append(str(ROOT / 'benchmarks'))
import term


@pytest.mark.full
@pytest.mark.filterwarnings('ignore::sqlalchemy.exc.SAWarning')  # nbgrader's
def test_a_term_of_six_students():
    """Late, corrected and missing ones, points by hand, Canvas and Moodle."""
    assert term.main(['--students', '6', '--exercises', 'minibatch', 'tree',
                      'semiring', 'checkpoint', 'buckets', 'mfu']) == []

"""The benchmark of plans that travel runs, with or without PyTorch."""
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from d2lps.cluster import network_problem

SCRIPT = Path(__file__).parents[1] / 'benchmarks' / 'travel.py'


@pytest.mark.full
def test_all_contestants_take_their_turns(tmp_path):
    """Each sum is checked in there; how long it takes is not looked at."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), '--rounds', '1', '--repeats', '1',
         '--steps', '3', '--bytes', '1000', '--slow-bytes', '100000'],
        cwd=tmp_path, text=True, capture_output=True, timeout=480)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ('µs for 1 kB, 2 processes', 'µs for 1 kB, 4 processes',
                  "MXNet's store, 4 servers", 'recursive_doubling, TCP',
                  'ring, 1 kB, 4 processes', 'images per second'):
        assert words in done.stdout
    verdicts = re.findall('^(reached|not reached|not measured): ',
                          done.stdout, re.M)
    assert len(verdicts) == (5 if network_problem() else 7)
    assert ('not measured' in verdicts) == (find_spec('torch') is None)
    [off] = re.findall('no parameter is more than (.*) off', done.stdout)
    assert float(off) < 1e-5

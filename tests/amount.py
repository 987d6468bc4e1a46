"""How many cases a test tries: few in `make test`, all in `make test-all`."""
import os

QUICK = 'D2LPS_QUICK' in os.environ  # conftest.py sets it


def cases(number):
    """The examples of a test by Hypothesis."""
    return min(number, 25) if QUICK else number

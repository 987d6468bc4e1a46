"""What bus bandwidth a machine should show, and what a measurement says."""
from typing import NamedTuple


class Expectation(NamedTuple):
    """Bus bandwidth of a large all-reduce, from `low` to `high`, bytes/s."""
    low: float
    high: float
    predictable: bool
    why: str

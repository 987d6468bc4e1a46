"""Is an array a multiple of the right one? Messages say how many times."""
import numpy as np


def factor(mine: np.ndarray, right: np.ndarray) -> float:
    """How many times `right` an array is; 0.0 if it is no multiple of it.

    An array of zeros is once an array of zeros.
    """
    if not right.any():
        return float(not mine.any())
    times = np.vdot(mine, right) / np.vdot(right, right)
    near = np.allclose(mine, times * right, rtol=1e-3,
                       atol=1e-4 * np.abs(times * right).max())
    return float(times) if near else 0.0

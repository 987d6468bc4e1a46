"""Numbers with a unit that makes them short."""
from collections.abc import Sequence
from typing import TypeAlias

Unit: TypeAlias = tuple[float, str]  # its size and its name
TIMES: tuple[Unit, ...] = (1, 's'), (1e-3, 'ms'), (1e-6, 'µs')
SHORT_TIMES = *TIMES, (1e-9, 'ns')
SIZES = (1e9, 'GB'), (1e6, 'MB'), (1e3, 'kB'), (1, 'bytes')
BINARY = (1 << 30, 'GiB'), (1 << 20, 'MiB'), (1 << 10, 'KiB'), (1, 'bytes')
RATES = (1e9, 'GB/s'), (1e6, 'MB/s'), (1e3, 'kB/s'), (1, 'B/s')


def with_unit(value: float, units: Sequence[Unit]) -> str:
    """A value in three digits, in the first of units that is small enough.

    units: (size, name), the largest first.
    """
    size, unit = next((u for u in units if u[0] <= value), units[-1])
    return f'{float(f"{value / size:.3g}"):,g} {unit}'


def several(number: int, noun: str, plural: str = '') -> str:
    """'1 worker', or '3 workers'; plural: if it is not the noun and an s."""
    return f'{number} {noun if number == 1 else plural or noun + "s"}'

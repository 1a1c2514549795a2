"""Exact integer helpers and unit factors."""

from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the quotient rounded up, exact for integers of any size."""
    return -(-numerator // denominator)


def round_up(value: int, multiple: int) -> int:
    """Return the smallest multiple of `multiple` that is not below `value`."""
    return ceil_div(value, multiple) * multiple


def fitting(room: int, first: int, each: int) -> int:
    """Return how many fit, where the first takes more room than each of the others.

    >>> fitting(10, 4, 3), fitting(3, 4, 3)
    (3, 0)
    """
    return 0 if first > room else 1 + (room - first) // each

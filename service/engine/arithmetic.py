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

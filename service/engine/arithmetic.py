"""Exact integer helpers, unit factors, and digits that tell something."""

from math import ceil
from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30
MILLISECONDS_PER_S: Final = 1e3
ROUNDED: Final = 1e-12  # of a product or a quotient in binary fractions, at most
USD_DIGITS: Final = 6
LEAST_SHOWN: Final = 0.1  # of a unit, written with one digit behind its point


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


def whole(amount: float) -> int:
    """Return the smallest integer that is not below an amount, but for what its rounding added.

    >>> whole(100 * 1.1), whole(3 * 0.2394 / 0.2394), whole(110.001)
    (110, 3, 111)
    """
    return ceil(amount * (1 - ROUNDED))


def rounded_usd(usd: float) -> float:
    """Return a price that rests on a rate or a time of the simulation, to six digits: more of them tell nothing.

    >>> rounded_usd(0.22327284351178595), rounded_usd(0.000012345678)
    (0.223273, 1.23457e-05)
    """
    return float(f"{usd:.{USD_DIGITS}g}")


def size_in_brackets(size_bytes: int) -> str:
    """Return what a figure of bytes comes to, in the unit that a reader sees something of; nothing for a few bytes.

    >>> size_in_brackets(69_122_190_187), size_in_brackets(4_717_592), size_in_brackets(1_000)
    (' (64.4 GiB)', ' (4.5 MiB)', '')
    """
    gib, mib = size_bytes / GIB, size_bytes / MIB
    if gib >= LEAST_SHOWN:
        return f" ({gib:.1f} GiB)"
    return f" ({mib:.1f} MiB)" if mib >= LEAST_SHOWN else ""


def three_digits(value: float) -> str:
    """Return a figure as people write it, with the three digits that tell something and no power of ten.

    >>> three_digits(0.06949), three_digits(1_274.4), three_digits(50_802.6)
    ('0.0695', '1270', '50800')
    """
    return f"{float(f'{value:.3g}'):.15g}"

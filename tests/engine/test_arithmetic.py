"""Integers rounded up, exactly."""

from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from service.engine.arithmetic import GIB, KIB, MIB, ceil_div, round_up

SIZES = st.integers(min_value=0, max_value=1 << 80)
PARTS = st.integers(min_value=1, max_value=1 << 40)


@given(SIZES, PARTS)
def test_a_quotient_is_rounded_up_whatever_its_size(size: int, parts: int) -> None:
    assert ceil_div(size, parts) == ceil(Fraction(size, parts))


@given(SIZES, PARTS)
def test_the_smallest_multiple_that_holds_a_value(size: int, multiple: int) -> None:
    rounded = round_up(size, multiple)

    assert rounded % multiple == 0
    assert size <= rounded < size + multiple


def test_units_are_powers_of_two() -> None:
    assert (KIB, MIB, GIB) == (2**10, 2**20, 2**30)

"""Compiled look-ups equal NumPy's between knots."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.time.interpolation import curve_at

KNOTS, VALUES = np.array([1.0, 2.0, 4.0, 8.0]), np.array([3.0, 5.0, 4.0, 10.0])


@given(x=st.floats(-5, 8))
@settings(max_examples=100, deadline=None)
def test_a_curve_is_linear_between_knots_and_constant_before_them(x: float) -> None:
    assert curve_at(KNOTS, VALUES, x) == pytest.approx(float(np.interp(x, KNOTS, VALUES)))


@given(x=st.floats(8, 1e6))
@settings(max_examples=50, deadline=None)
def test_beyond_the_last_knot_it_goes_on_as_it_went(x: float) -> None:
    assert curve_at(KNOTS, VALUES, x) == pytest.approx(10 + 1.5 * (x - 8))

"""Compiled code computes what plain Python computes, to the last bit."""

from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.time.compiled import compiled


def _mean(total: float, count: float) -> float:
    mean = 0.0
    for _ in range(7):
        mean = (mean + total) / count
    return mean


COMPILED = compiled(_mean)


@given(total=st.floats(-1e9, 1e9), count=st.floats(1, 1e3))
@settings(max_examples=100, deadline=None)
def test_the_same_numbers_to_the_last_bit(total: float, count: float) -> None:
    assert COMPILED(total, count) == _mean(total, count)

"""Distributions of lengths, against their own definitions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.time.draws import PROMPTS, Draws
from service.engine.time.lengths import EmpiricalLength, FixedLength, Length, LogNormalLength, UniformLength

lengths = st.one_of(
    st.builds(FixedLength, tokens=st.integers(1, 5_000)),
    st.builds(UniformLength, shortest_tokens=st.integers(1, 500), longest_tokens=st.integers(500, 5_000)),
    st.builds(LogNormalLength, mean_tokens=st.floats(10, 3_000), variation=st.floats(0, 1.5)),
    st.builds(EmpiricalLength, tokens=st.lists(st.integers(1, 5_000), min_size=1, max_size=20).map(tuple)),
)


@settings(max_examples=60, deadline=None)
@given(lengths)
def test_drawn_lengths_have_the_stated_mean_and_are_never_empty(length: Length) -> None:
    drawn = length.drawn(Draws(), 1, PROMPTS, 20_000)

    assert drawn.min() >= 1
    assert drawn.mean() == pytest.approx(length.mean(), rel=0.05, abs=1)


@settings(max_examples=60, deadline=None)
@given(lengths)
def test_more_lengths_begin_with_the_same_ones(length: Length) -> None:
    draws = Draws()

    assert (length.drawn(draws, 1, PROMPTS, 100) == length.drawn(draws, 1, PROMPTS, 5_000)[:100]).all()


def test_a_log_normal_spreads_as_stated() -> None:
    drawn = LogNormalLength(mean_tokens=1_000.0, variation=0.5).drawn(Draws(), 1, PROMPTS, 50_000)

    assert drawn.std() / drawn.mean() == pytest.approx(0.5, rel=0.03)


def test_a_list_gives_back_its_entries() -> None:
    drawn = EmpiricalLength(tokens=(30, 10, 20)).drawn(Draws(), 1, PROMPTS, 3_000)

    assert set(drawn.tolist()) == {10, 20, 30}

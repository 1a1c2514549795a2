"""Distributions of lengths, against their own definitions."""

from statistics import fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.time.lengths import EmpiricalLength, FixedLength, Length, LogNormalLength, UniformLength

QUANTILES = [(index + 0.5) / 2_000 for index in range(2_000)]
lengths = st.one_of(
    st.builds(FixedLength, tokens=st.integers(1, 5_000)),
    st.builds(UniformLength, shortest_tokens=st.integers(1, 500), longest_tokens=st.integers(500, 5_000)),
    st.builds(LogNormalLength, mean_tokens=st.floats(10, 3_000), variation=st.floats(0, 1.5)),
    st.builds(EmpiricalLength, tokens=st.lists(st.integers(1, 5_000), min_size=1, max_size=20).map(tuple)),
)


@settings(max_examples=60, deadline=None)
@given(lengths)
def test_the_mean_over_all_quantiles_is_the_stated_mean(length: Length) -> None:
    assert fmean(length.at(quantile) for quantile in QUANTILES) == pytest.approx(length.mean(), rel=0.05, abs=1)


@settings(max_examples=60, deadline=None)
@given(lengths, st.floats(0.001, 0.998), st.floats(0, 0.001))
def test_a_higher_quantile_is_never_shorter(length: Length, quantile: float, more: float) -> None:
    assert 1 <= length.at(quantile) <= length.at(quantile + more)


def test_a_log_normal_spreads_as_stated() -> None:
    drawn = [LogNormalLength(mean_tokens=1_000.0, variation=0.5).at(quantile) for quantile in QUANTILES]

    assert pstdev(drawn) / fmean(drawn) == pytest.approx(0.5, rel=0.03)


def test_a_list_gives_back_its_entries() -> None:
    length = EmpiricalLength(tokens=(30, 10, 20))

    assert [length.at(quantile) for quantile in (0.1, 0.5, 0.9)] == [10, 20, 30]

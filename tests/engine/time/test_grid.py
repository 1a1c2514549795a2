"""The loads that searches visit do not depend on limits."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.time.grid import rate_grid, user_grid
from service.engine.time.search import search


def test_without_limits_the_slots_are_the_answer() -> None:
    (bracket,) = search(user_grid(37, is_limited=False), lambda _: None)

    assert (bracket.load, bracket.fails_at, bracket.violates) == (37, 38, None)


def test_users_double_until_one_fails() -> None:
    visited: list[float] = []

    def breaks(users: float) -> None:
        visited.append(users)

    brackets = search(user_grid(100, is_limited=True), breaks)
    assert [next(brackets).fails_at for _ in range(5)] == [inf] * 5
    assert visited == [1, 2, 4, 8]


@pytest.mark.parametrize("saturation", [0.3, 5.0, 1_000.0])
def test_rates_come_down_from_the_octave_above_saturation(saturation: float) -> None:
    first = next(search(rate_grid(saturation), lambda _: "ttft"))

    assert first.load == 0
    assert saturation < first.fails_at <= 2 * saturation
    assert first.violates == "throughput"


@given(st.floats(0.001, 5_000))
def test_a_rate_is_found_to_a_thirty_second_of_an_octave(highest: float) -> None:
    *_, last = search(rate_grid(10_000.0), lambda rate: "tpot" if rate > highest else None)

    assert last.load <= highest < last.fails_at
    assert last.fails_at / last.load == pytest.approx(2 ** (1 / 32))


def test_a_replica_that_carries_nothing_carries_nothing() -> None:
    *_, users = search(user_grid(10, is_limited=True), lambda _: "ttft")
    *_, rate = search(rate_grid(3.0), lambda _: "tpot")
    (nothing,) = search(rate_grid(0.0), lambda _: None)

    assert (users.load, users.violates) == (0, "ttft")
    assert (rate.load, rate.violates) == (0, "tpot")
    assert nothing.load == 0

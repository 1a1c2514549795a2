"""The loads that searches visit do not depend on limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.time.grid import USERS, Grid, rate_grid, rate_upto, user_grid, users_upto
from service.engine.time.results import Bracket
from service.engine.time.search import Breaks, search


def found(grid: Grid, breaks: Breaks, guess: float = 1.0) -> Bracket:
    return search(grid, guess, breaks, breaks)


def test_without_limits_the_slots_are_the_answer() -> None:
    bracket = found(user_grid(37, is_limited=False), lambda _: None)

    assert (bracket.load, bracket.fails_at, bracket.violates) == (37, 38, None)


@pytest.mark.parametrize("slots", [1, 37, 101, 4_097])
def test_all_slots_are_found_where_every_user_is_carried(slots: int) -> None:
    bracket = found(user_grid(slots, is_limited=True), lambda _: None)

    assert (bracket.load, bracket.fails_at, bracket.violates) == (slots, slots + 1, None)


@pytest.mark.parametrize("saturation", [0.3, 5.0, 1_000.0])
def test_no_rate_beyond_saturation_is_visited(saturation: float) -> None:
    visited: list[float] = []

    def breaks(rate: float) -> None:
        visited.append(rate)

    last = found(rate_grid(saturation), breaks, guess=2 * saturation)

    assert max(visited) <= saturation < last.fails_at == pytest.approx(max(visited) * 2 ** (1 / 32))
    assert last.load == max(visited)
    assert last.violates == "throughput"


@given(st.floats(0.001, 5_000))
def test_a_rate_is_found_to_a_thirty_second_of_an_octave(highest: float) -> None:
    last = found(rate_grid(10_000.0), lambda rate: "tpot" if rate > highest else None)

    assert last.load <= highest < last.fails_at
    assert last.fails_at / last.load == pytest.approx(2 ** (1 / 32))


def test_a_replica_that_carries_nothing_carries_nothing() -> None:
    users = found(user_grid(10, is_limited=True), lambda _: "ttft")
    rate = found(rate_grid(3.0), lambda _: "tpot")
    nothing = found(rate_grid(0.0), lambda _: None)

    assert (users.load, users.violates) == (0, "ttft")
    assert (rate.load, rate.violates) == (0, "tpot")
    assert nothing.load == 0


@given(st.floats(0.001, 1_000))
def test_the_next_number_of_the_grid_is_no_less_than_asked_and_next_to_it(amount: float) -> None:
    rates, users = rate_grid(1_000.0), user_grid(1_000, is_limited=True)

    assert amount <= rates.amount(rates.at_least(amount)) <= amount * 2 ** (1 / 32) * (1 + 1e-9)
    assert amount <= users.amount(users.at_least(amount)) < amount + max(1, amount / 32) + 1
    assert rate_upto(amount) == rates.amount(rates.at_least(amount))
    assert users_upto(int(amount)) == min(step for step in USERS if step >= int(amount))

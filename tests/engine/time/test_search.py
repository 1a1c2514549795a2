"""The search for the largest load."""

from hypothesis import given
from hypothesis import strategies as st

from service.engine.time.grid import user_grid
from service.engine.time.results import Bracket, Violation
from service.engine.time.search import Breaks, falling_to_most, search

most = st.integers(0, 5_000)


def above(users: float) -> Breaks:
    def breaks(asked: float) -> Violation | None:
        return "tpot" if asked > users else None

    return breaks


def upto(users: int, guess: float = 100) -> Bracket:
    return search(user_grid(10_000, is_limited=True), guess, above(users), above(users))


@given(most)
def test_the_most_users_are_found_to_three_per_cent(users: int) -> None:
    found = upto(users)

    assert found.load <= users < found.fails_at
    assert found.fails_at - found.load <= max(1, found.load / 32)


@given(most, st.floats(0, 20_000))
def test_a_guess_decides_how_soon_and_not_what_is_found(users: int, guess: float) -> None:
    assert upto(users, guess) == upto(users)


def test_a_good_guess_takes_few_samples() -> None:
    tried: list[float] = []

    def roughly(asked: float) -> Violation | None:
        tried.append(asked)
        return above(1_000)(asked)

    search(user_grid(10_000, is_limited=True), 950, roughly, above(1_000))

    assert len(tried) <= 5


@given(most, st.floats(0, 20_000))
def test_loads_fall_to_the_most_none_of_them_less(users: int, guess: float) -> None:
    loads = list(falling_to_most(user_grid(10_000, is_limited=True), guess, above(users)))

    assert loads[-1] == upto(users).load
    assert loads == sorted(loads, reverse=True)
    assert all(load > users for load in loads[:-1])


@given(most, most)
def test_a_looser_limit_never_finds_less(one: int, other: int) -> None:
    tight, loose = sorted((one, other))

    assert upto(tight).load <= upto(loose).load


@given(st.integers(1, 5_000), st.floats(0.5, 2))
def test_a_large_sample_decides_where_a_small_one_misled(users: int, misled: float) -> None:
    roughly = above(max(users * misled, 1.0))
    found = search(user_grid(10_000, is_limited=True), 100, roughly, above(users))

    assert found.load <= users < found.fails_at
    assert found.fails_at - found.load <= max(1, found.load / 32)

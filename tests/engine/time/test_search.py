"""The search for the largest load."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from service.engine.time.grid import user_grid
from service.engine.time.results import Violation
from service.engine.time.search import search

most = st.integers(0, 5_000)


def upto(users: int) -> "list[tuple[float, float]]":
    def breaks(asked: float) -> Violation | None:
        return "tpot" if asked > users else None

    return [(step.load, step.fails_at) for step in search(user_grid(10_000, is_limited=True), breaks)]


@given(most)
def test_the_most_users_are_found_to_three_per_cent(users: int) -> None:
    load, fails_at = upto(users)[-1]

    assert load <= users < fails_at
    assert fails_at - load <= max(1, load / 32)


@given(most)
def test_every_step_narrows_the_gap(users: int) -> None:
    for (low, high), (lower, upper) in pairwise(upto(users)):
        assert low <= lower < upper <= high


@given(most, most)
def test_a_looser_limit_never_finds_less(one: int, other: int) -> None:
    tight, loose = sorted((one, other))

    assert upto(tight)[-1][0] <= upto(loose)[-1][0]

"""Random numbers: the same for a seed, and spread as they should be."""

import numpy as np
import pytest

from service.engine.time.draws import PROMPTS, UNDER_WAY, Draws


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.0])
def test_gaps_have_the_mean_and_variance_of_a_gamma(shape: float) -> None:
    gaps = np.diff(Draws().arrivals(7, shape, 20_000))

    assert gaps.mean() == pytest.approx(1.0, rel=0.03)
    assert gaps.var() == pytest.approx(1 / shape, rel=0.08)


def test_arrivals_by_the_clock_are_a_second_apart() -> None:
    assert Draws().arrivals(1, 1e9, 4).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_more_numbers_begin_with_the_same_ones_whatever_was_asked_before() -> None:
    fresh, used = Draws(), Draws()
    used.uniform(1, PROMPTS, 10)

    assert (used.uniform(1, PROMPTS, 10_000) == fresh.uniform(1, PROMPTS, 10_000)).all()
    assert (used.uniform(1, PROMPTS, 10) == fresh.uniform(1, PROMPTS, 10_000)[:10]).all()


def test_seeds_and_purposes_draw_other_numbers() -> None:
    draws = Draws()
    streams = [draws.uniform(seed, purpose, 100) for seed in (1, 2) for purpose in (PROMPTS, UNDER_WAY)]

    assert len({stream.tobytes() for stream in streams}) == 4

"""Random numbers: the same everywhere, and spread as they should be."""

from statistics import fmean, pvariance

import pytest

from service.engine.time.draws import Draws, arrivals_at_mean_one


def test_the_first_number_of_a_seed_is_knuths() -> None:
    # x = 6364136223846793005 x + 1442695040888963407 mod 2^64 from x = 3 x 6364136223846793005: seed 1, by hand.
    x = (3 * 6364136223846793005 * 6364136223846793005 + 1442695040888963407) % (1 << 64)

    assert Draws(1).uniform() == ((x >> 11) + 0.5) / (1 << 53)


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.0])
def test_gaps_have_the_mean_and_variance_of_a_gamma(shape: float) -> None:
    draws = Draws(7)
    gaps = [draws.gap(shape) for _ in range(20_000)]

    assert fmean(gaps) == pytest.approx(1.0, rel=0.03)
    assert pvariance(gaps) == pytest.approx(1 / shape, rel=0.08)


def test_arrivals_by_the_clock_are_a_second_apart() -> None:
    assert arrivals_at_mean_one(1, 1e9, 4) == (1.0, 2.0, 3.0, 4.0)

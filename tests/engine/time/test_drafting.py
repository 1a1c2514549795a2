"""Speculative decoding: tokens of a step, and its price."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.catalog.snapshot import Snapshot
from service.engine.time.drafting import DraftingSteps, tokens_per_step, with_drafts
from tests.engine.time.conftest import LinearSteps, plan_of, timing


@pytest.mark.parametrize(
    ("drafted", "accepted", "tokens"),
    [(0, 0.7, 1.0), (3, 0.0, 1.0), (3, 1.0, 4.0), (1, 0.5, 1.5), (2, 0.5, 1.75)],  # 1 + a + a^2 + ... by hand
)
def test_tokens_of_a_step(drafted: int, accepted: float, tokens: float) -> None:
    assert tokens_per_step(drafted, accepted) == pytest.approx(tokens)


@given(st.integers(1, 16), st.floats(0, 1), st.floats(0, 1))
def test_more_accepted_drafts_are_more_tokens(drafted: int, one: float, other: float) -> None:
    low, high = sorted((one, other))

    assert 1 <= tokens_per_step(drafted, low) <= tokens_per_step(drafted, high) + 1e-9 <= drafted + 1 + 1e-6


def test_a_step_verifies_all_drafts_and_runs_the_drafter_for_each() -> None:
    steps = LinearSteps(step_s=0.010, prefill_token_s=0.0, decode_request_s=0.001)
    drafting = DraftingSteps(steps=steps, num_speculative_tokens=3, drafter_fraction=0.1)

    # 10 requests: 40 tokens verified, and 3 drafts of 10 requests in a tenth of the layers.
    assert drafting.decode_s(10, 500) == pytest.approx(0.050 + 3 * 0.020 * 0.1)
    assert drafting.mixed_s(100, 50, 0, 0) == pytest.approx(0.010)  # nobody decodes, nobody drafts


def test_without_drafts_times_stay_as_they_are(catalog: Snapshot) -> None:
    own = timing()

    assert with_drafts(own, plan_of(catalog)) is own
    drafting = with_drafts(own, plan_of(catalog, num_speculative_tokens=2)).steps
    assert isinstance(drafting, DraftingSteps)
    assert drafting.drafter_fraction == pytest.approx(1 / 32)  # one EAGLE-3 layer beside 32

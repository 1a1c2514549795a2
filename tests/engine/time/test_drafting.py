"""Speculative decoding: tokens of a step, and its price."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.catalog.snapshot import Snapshot
from service.engine.time.drafting import DraftingSteps, steps_spread, tokens_per_step, with_drafts
from tests.engine.time.conftest import LinearSteps, plan_of, timing
from tests.engine.time.published import benchmarked


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


@pytest.mark.parametrize(("drafted", "accepted"), [(1, 0.5), (3, 0.4), (3, 0.9), (5, 0.997)])
def test_iterations_spread_as_those_of_drafts_that_are_drawn_one_by_one(drafted: int, accepted: float) -> None:
    random = np.random.default_rng(1)
    made = (random.random((4_000, 1_600, drafted)) < accepted).cumprod(axis=2).sum(axis=2) + 1
    iterations = (made.cumsum(axis=1) < 1_600).sum(axis=1) + 1

    assert iterations.mean() == pytest.approx(1_600 / tokens_per_step(drafted, accepted), rel=0.01)
    assert iterations.std() == pytest.approx(steps_spread(drafted, accepted) * iterations.mean() ** 0.5, rel=0.06)


@pytest.mark.parametrize(
    ("gpu", "users", "tpot_s"),
    [("h200", 1, 3.03e-3), ("h200", 16, 12.44e-3), ("b200", 1, 2.30e-3), ("b200", 16, 6.84e-3)],
)
def test_paces_are_those_of_published_runs_that_print_what_was_accepted(
    catalog: Snapshot, gpu: str, users: int, tpot_s: float
) -> None:
    """GLM-5.2-FP8 on eight GPUs, five drafts, 5.96 of six tokens kept.

    github.com/sgl-project/sglang 00081a0, docs_new/src/snippets/configs/zai-org/glm-5.2-benchmarks.jsx, SGLang 0.5.13.
    """
    result = benchmarked(
        catalog, model="zai-org/GLM-5.2-FP8", gpu=gpu, gpus=8, engine_version="0.5.13", users=users, drafted=5,
        kept=5.96, gpu_memory_utilization=0.8, max_num_batched_tokens=16_384 if gpu == "b200" else 8_192,
    )  # fmt: skip

    assert result.latency is not None
    assert result.latency.tpot_s.mean == pytest.approx(tpot_s, rel=0.1)


def test_users_who_began_at_once_end_apart_by_the_chance_of_their_drafts(catalog: Snapshot) -> None:
    """Qwen3.6-27B-FP8 on an H200: one user waits 0.487 s for a first token, and half of sixteen 0.734 s at most.

    Its single user's 4.30 ms a token are those of 3.4 tokens an iteration. Were every answer of as many iterations, all
    sixteen would end at once, and the next ones wait for each other: 4.8 s.

    Source: github.com/sgl-project/sglang, docs_new/cookbook/autoregressive/Qwen/Qwen3.6.mdx, SGLang 0.5.16.
    """
    told = {
        users: benchmarked(
            catalog, model="Qwen/Qwen3.6-27B-FP8", gpu="h200", gpus=1, users=users, drafted=3, kept=3.4,
            gpu_memory_utilization=0.8,
        ).latency
        for users in (1, 16)
    }  # fmt: skip
    alone, beside = told[1], told[16]

    assert alone is not None
    assert beside is not None
    assert alone.ttft_s.p50 == pytest.approx(0.487, rel=0.15)
    assert alone.tpot_s.mean == pytest.approx(4.30e-3, rel=0.05)
    assert 0.734 / 1.6 < beside.ttft_s.p50 < 0.734 * 1.6
    assert beside.tpot_s.mean == pytest.approx(12.58e-3, rel=0.1)

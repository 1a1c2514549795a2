"""GB10, whose memory is its processor's too, against published paces: a card's times are not carried over to it."""

from statistics import median

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.inputs import Layout
from service.engine.time.steps import Deployed
from service.performance.fitted import generation_of
from service.performance.siblings import sibling_of
from tests.conftest import shared_timers

BATCHES = (1, 5, 10)
CONTEXT = 1_536.0  # 1,024 tokens of prompt, and half of 1,024 more
# Tokens per second of each of so many requests: vLLM 0.26 on one DGX Spark, cache in FP8, `tg1024` of llama-benchy in
# https://github.com/djangodevreng/dgx-spark-benchmarks/blob/main/results/<family>/<model>/bf16/01-chat.md.
PUBLISHED = {
    "granite-4.1-8b": (12.26, 12.52, 11.99),
    "qwen3.5-0.8b": (116.03, 115.73, 102.13),
    "qwen3.5-4b": (20.54, 23.81, 22.02),
    "qwen3.5-9b": (12.42, 13.10, 12.51),
    "qwen3.6-27b": (4.54, 4.24, 4.06),
    "gemma-4-31b-it": (3.67, 3.48, 3.33),
    "nemotron-3-nano-4b": (24.94, 27.24, 24.14),
    "nemotron-3-nano-30b-a3b": (29.27, 10.99, 7.64),
    "qwen3.6-35b-a3b": (30.49, 13.02, 8.63),
}


def paces(catalog: Snapshot, model: str) -> list[float]:
    """Return our seconds of an iteration over the published ones, for each batch."""
    facts = catalog.model(model)
    key = Deployed(
        model=facts,
        checkpoint=own_checkpoint(facts),
        gpu=catalog.gpu("gb10"),
        layout=Layout(),
        kv_cache_dtype="fp8",
        rules=rules_for("vllm", "0.26"),
    )
    timing = shared_timers().timer(key)
    assert timing is not None
    return [
        timing.steps.decode_s(batch, CONTEXT) * tokens_per_s
        for batch, tokens_per_s in zip(BATCHES, PUBLISHED[model], strict=True)
    ]


def test_gb10_is_no_card(catalog: Snapshot) -> None:
    gpu = catalog.gpu("gb10")

    assert generation_of(gpu) == "blackwell-unified"
    assert sibling_of(gpu) is None


@pytest.mark.parametrize("model", PUBLISHED)
def test_a_model_on_gb10_keeps_about_the_published_pace(catalog: Snapshot, model: str) -> None:
    # A card's times in proportion were 0.69 to 0.97 of these, and the median was 0.81.
    assert all(0.75 < pace < 1.2 for pace in paces(catalog, model))


def test_models_on_gb10_are_neither_fast_nor_slow_as_a_whole(catalog: Snapshot) -> None:
    assert median(pace for model in PUBLISHED for pace in paces(catalog, model)) == pytest.approx(1.0, abs=0.08)

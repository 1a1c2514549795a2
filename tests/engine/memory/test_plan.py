"""The plan of one GPU: what the ledger leaves, and what it holds."""

from dataclasses import replace
from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.inputs import EngineName, EngineSettings, Layout
from service.engine.memory.plan import (
    MemoryPlan,
    cache_growth,
    keeps_separate_pools,
    memory_plan,
    model_weights,
)

GIB = 1 << 30


def planned(
    catalog: Snapshot,
    name: str,
    *,
    engine: EngineName = "vllm",
    gpu: str = "h100",
    shorten: bool = False,
    **changes: Any,
) -> MemoryPlan:
    facts = catalog.model(name)
    checkpoint = next(it for it in facts.checkpoints if it.is_default)
    given = {"max_model_len": 16_384, "max_num_batched_tokens": 8_192, "max_num_seqs": 256, "kv_cache_dtype": "auto"}
    settings = EngineSettings(gpu_memory_utilization=0.9, **{**given, **changes})
    return memory_plan(
        facts, checkpoint, catalog.gpu(gpu), Layout(), settings, rules_for(engine),
        input_tokens=4_000, output_tokens=1_000, shorten_to_fit=shorten,
    )  # fmt: skip


def test_the_cache_is_what_the_ledger_leaves(catalog: Snapshot) -> None:
    plan = planned(catalog, "llama-3.1-8b-instruct")

    assert plan.kv_cache.num_gpu_blocks == plan.memory.kv_cache_bytes // (16 * 131_072)  # arXiv:2309.06180, section 3
    assert plan.holds_one_request
    assert plan.shortfall_bytes == 0


def test_contexts_are_shortened_to_what_fits_but_not_below_the_request(catalog: Snapshot) -> None:
    stated: dict[str, Any] = {"max_model_len": 131_072, "kv_cache_memory_bytes": 2 * GIB}
    whole = planned(catalog, "llama-3.1-8b-instruct", **stated)
    short = planned(catalog, "llama-3.1-8b-instruct", shorten=True, **stated)
    tiny = planned(catalog, "llama-3.1-8b-instruct", shorten=True, **{**stated, "kv_cache_memory_bytes": GIB // 4})

    assert whole.settings.max_model_len == 131_072
    # 2 GiB are 1,024 blocks of 16 tokens, of which one is never handed out.
    assert short.settings.max_model_len == whole.kv_cache.estimated_max_model_len == 1_023 * 16
    assert tiny.settings.max_model_len == 5_000
    assert not tiny.holds_one_request


def test_a_model_that_does_not_fit_says_what_is_missing(catalog: Snapshot) -> None:
    plan = planned(catalog, "llama-3.1-70b-instruct")

    assert not plan.weights_fit
    assert plan.shortfall_bytes > 131.4 * GIB - 0.9 * 80 * GIB  # 70.6 billion parameters of two bytes


def test_adapters_weigh_beside_the_model(catalog: Snapshot) -> None:
    plain, adapted = (
        planned(catalog, "llama-3.1-8b-instruct", max_loras=loras).memory.weight_bytes for loras in (0, 2)
    )

    # 32 layers, and the embedding table and the head (`test_adapters.py`).
    assert adapted - plain == 2 * 16 * 2 * (32 * 81_920 + 2 * (128_256 + 4_096))


def test_only_sglang_keeps_pools_apart_and_requests_grow_by_them(catalog: Snapshot) -> None:
    shared, separate = (planned(catalog, "qwen3.5-9b", engine=engine) for engine in ("vllm", "sglang"))

    assert not keeps_separate_pools(shared.model.architecture, shared.rules)
    assert keeps_separate_pools(separate.model.architecture, separate.rules)
    assert cache_growth(separate).blocks_per_request(1, 0) > 1  # its state stands for many pages of one token
    assert shared.requests_in_cache > 0
    assert separate.requests_in_cache > 0


def test_stated_weights_replace_the_model_s_own(catalog: Snapshot) -> None:
    facts = catalog.model("llama-3.1-8b-instruct")
    plan = planned(catalog, "llama-3.1-8b-instruct")
    stated = replace(plan, model=replace(facts, weight_bytes=7 * GIB))

    assert model_weights(stated).weight_bytes == 7 * GIB
    assert model_weights(plan).num_parameters == 8_030_261_248  # huggingface.co/meta-llama/Llama-3.1-8B-Instruct


@pytest.mark.parametrize("drafted", [0, 3])
def test_layers_that_draft_weigh_on_the_rank(catalog: Snapshot, drafted: int) -> None:
    method = "mtp" if drafted else None
    plan = planned(catalog, "qwen3.5-9b", num_speculative_tokens=drafted, speculative_method=method)
    alone = planned(catalog, "qwen3.5-9b")

    # huggingface.co/Qwen/Qwen3.5-9B: 243,290,624 parameters of two bytes, and three fp32 scales or so.
    expected = 2 * 243_290_624 if drafted else 0
    assert plan.memory.weight_bytes - alone.memory.weight_bytes == pytest.approx(expected, rel=1e-3)

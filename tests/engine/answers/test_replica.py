"""One stated replica, planned as its engine would start it."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import EngineError, Layout, StatedSettings, plan_replica


def test_a_pool_given_outright_holds_what_the_engine_computes(catalog: Snapshot) -> None:
    # vLLM 0.33's own planner, Llama 3.1 8B on one rank, 40 GiB of cache: 20,480 blocks, 327,680 tokens, 2.5 requests.
    stated = StatedSettings(kv_cache_memory_bytes=40 << 30, max_model_len=131_072, max_num_batched_tokens=8_192)

    plan = plan_replica(catalog.model("llama-3.1-8b"), catalog.gpu("h100"), Layout(), stated, rules_for("vllm"))

    assert (plan.kv_cache.num_gpu_blocks, plan.kv_cache.tokens) == (20_480, 327_680)
    assert plan.kv_cache.max_concurrency == pytest.approx(2.5)


def test_a_request_longer_than_the_context_is_refused(catalog: Snapshot) -> None:
    with pytest.raises(EngineError, match="exceeds"):
        plan_replica(
            catalog.model("llama-3.1-8b"), catalog.gpu("h100"), Layout(), StatedSettings(max_model_len=1_000),
            rules_for("vllm"), input_tokens=900, output_tokens=200,
        )  # fmt: skip

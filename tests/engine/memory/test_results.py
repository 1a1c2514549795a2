"""What planning returns fits together."""

from dataclasses import fields

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.inputs import EngineSettings, Layout
from service.engine.memory.results import KvCache, MemoryPerGpu
from service.engine.memory.shared_pool import plan_kv_cache


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gpt-oss-20b", "qwen3.5-9b", "deepseek-v4-flash"])
def test_tokens_are_requests_of_the_longest_context(catalog: Snapshot, model: str) -> None:
    settings = EngineSettings(
        gpu_memory_utilization=0.9, kv_cache_dtype="auto", max_model_len=32_768, max_num_batched_tokens=8_192, max_num_seqs=8
    )  # fmt: skip
    cache = plan_kv_cache(
        catalog.model(model).architecture, layout=Layout(), settings=settings, available_bytes=30 << 30
    )

    assert cache.tokens == int(cache.max_concurrency * 32_768)
    assert sum(group.blocks_per_request for group in cache.groups) == pytest.approx(
        cache.num_gpu_blocks / cache.max_concurrency
    )
    assert cache.bytes_per_token_within_windows >= cache.bytes_per_token


def test_every_term_is_in_bytes_or_says_what_it_is() -> None:
    assert {it.name.rsplit("_", 1)[-1] for it in fields(MemoryPerGpu)} == {"bytes"}
    assert {it.name for it in fields(KvCache)} >= {"tokens", "num_gpu_blocks", "max_concurrency"}  # the start-up line

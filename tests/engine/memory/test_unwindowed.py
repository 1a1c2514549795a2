"""Which windows older versions do not make use of: layers that attend to few tokens keep them all."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Layout, StatedSettings, plan_replica
from service.engine.memory.results import KvCacheGroup

WINDOWS = ("sliding_window",) * 6 + ("full_attention",)
CHUNKS = ("chunked_local_attention",) * 3 + ("full_attention",)
WHOLE = ("full_attention",)


def groups(catalog: Snapshot, model: str, version: str) -> tuple[KvCacheGroup, ...]:
    stated = StatedSettings(kv_cache_memory_bytes=10 << 30)
    layout = Layout(tensor_parallel_size=8)
    return plan_replica(
        catalog.model(model), catalog.gpu("h100"), layout, stated, rules_for("vllm", version)
    ).kv_cache.groups


@pytest.mark.parametrize(
    ("model", "version", "kinds"),
    [
        # 0.9.0 `v1/core/kv_cache_utils.py`: "It will convert all SlidingWindowSpec to FullAttentionSpec if both types
        # are present."; 0.9.1 does so only where the manager of several kinds is switched off.
        ("gemma-3-27b", "0.9", WHOLE),
        ("gemma-3-27b", "0.9.1", WINDOWS),
        # Nothing beside it: one kind is all there is.
        ("mistral-7b-v0.1", "0.9", ("sliding_window",)),
        # 0.13 `envs.py`: VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE is "0", in 0.14 "1".
        ("llama-4-scout", "0.13", WHOLE),
        ("llama-4-scout", "0.14", CHUNKS),
    ],
)
def test_a_version_keeps_windows_whole(catalog: Snapshot, model: str, version: str, kinds: tuple[str, ...]) -> None:
    assert tuple(group.kind for group in groups(catalog, model, version)) == kinds

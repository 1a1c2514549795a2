"""What versions cache of latent attention, against a published start-up of one that kept every head."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.inputs import EngineName
from service.engine.layers import Architecture
from service.engine.layers.cache import Sharding
from service.engine.memory.latents import as_cached

GIB = 1 << 30


def token_bytes(architecture: Architecture, tensor_parallel_size: int = 1) -> int:
    rank = Sharding(tensor_parallel_size=tensor_parallel_size, cache_element_bytes=2, model_element_bytes=2)
    mixers = [mixer for layer in architecture.layers for mixer in layer.mixers]
    return sum(spec.token_bytes for mixer in mixers for spec in mixer.caches(rank))


def test_before_latents_were_kept_a_token_took_what_a_start_up_printed(catalog: Snapshot) -> None:
    model = catalog.model("deepseek-v2-lite").architecture
    cached = as_cached(model, rules_for("vllm", "0.6.5").plan)

    # https://github.com/vllm-project/vllm/pull/10927, "Before": "kv_cache_size=35.42GiB", "# GPU blocks: 5373" of 16.
    assert 5_373 * 16 * token_bytes(cached) / GIB == pytest.approx(35.42, abs=0.02)


# 128 heads of DeepSeek-V3, each a key and a value of 256 in two bytes, in 61 layers; or 512 + 64 of a latent.
@pytest.mark.parametrize(
    ("engine", "version", "a_token"),
    [
        ("vllm", "0.7.0", 61 * 16 * 2 * 256 * 2),
        ("vllm", "0.7.1", 61 * 576 * 2),
        ("vllm", "0.33", 61 * 576 * 2),
        ("sglang", "0.4.3", 61 * 576 * 2),
    ],
)
def test_a_rank_keeps_its_heads_until_0_7_1(catalog: Snapshot, engine: EngineName, version: str, a_token: int) -> None:
    cached = as_cached(catalog.model("deepseek-v3").architecture, rules_for(engine, version).plan)

    assert token_bytes(cached, tensor_parallel_size=8) == a_token


def test_a_model_without_latents_stays_as_it_is(catalog: Snapshot) -> None:
    model = catalog.model("llama-3.1-8b").architecture

    assert as_cached(model, rules_for("vllm", "0.7.0").plan) is model

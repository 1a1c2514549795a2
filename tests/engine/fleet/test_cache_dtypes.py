"""Which dtypes a cache may have, by engine, version, GPU and model."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.errors import RefusedStartError
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import EngineName, ScaledCacheDtype

# vLLM's version, GPU, model, dtype: `config/cache.py` (`CacheDType`) of 0.19, 0.20, 0.24 and 0.25; 0.20
# `v1/attention/backends/flashinfer.py` (NotImplementedError), 0.32 and 0.33 `supports_combination`; issue 40388 (Gemma 4
# "fails to initialize with per-token-head KV cache quantization") and pull request 48842 (four bits in windows)
REFUSED: list[tuple[str, str, str, ScaledCacheDtype]] = [
    ("0.19", "h100", "llama-3.1-8b", "int8_per_token_head"),
    ("0.20", "b200", "llama-3.1-8b", "nvfp4"),
    ("0.24", "h100", "llama-3.1-8b", "int4_per_token_head"),
    ("0.31", "h100", "llama-3.1-8b", "nvfp4"),
    ("0.33", "h100", "gpt-oss-120b", "nvfp4"),
    ("0.33", "a100", "llama-3.1-8b", "fp8_per_token_head"),
    ("0.33", "h100", "deepseek-v3", "int8_per_token_head"),
    ("0.33", "b200", "deepseek-v4-flash", "nvfp4"),
    ("0.33", "mi300x", "llama-3.1-8b", "int8_per_token_head"),
    ("0.25", "h100", "gemma-4-31b-it", "int8_per_token_head"),
    ("0.25", "h100", "mistral-7b-v0.1", "int4_per_token_head"),
]
TAKEN: list[tuple[str, str, str, ScaledCacheDtype]] = [
    ("0.20", "a100", "llama-3.1-8b", "int8_per_token_head"),
    ("0.20", "l40s", "llama-3.1-8b", "fp8_per_token_head"),
    ("0.21", "b200", "gpt-oss-120b", "nvfp4"),
    ("0.25", "t4", "qwen2.5-3b-instruct", "int4_per_token_head"),
    ("0.32", "h100", "llama-3.1-8b", "nvfp4"),
    ("0.33", "h100", "gemma-4-31b-it", "int8_per_token_head"),
    ("0.33", "h100", "gpt-oss-120b", "int4_per_token_head"),
]


@pytest.mark.parametrize(("version", "gpu", "model", "dtype"), REFUSED)
def test_caches_with_scales_inside_are_refused_where_vllm_has_none(
    catalog: Snapshot, version: str, gpu: str, model: str, dtype: ScaledCacheDtype
) -> None:
    stated = StatedSettings(kv_cache_dtype=dtype)

    with pytest.raises(RefusedStartError, match=dtype) as refused:
        resolve(catalog.model(model), catalog.gpu(gpu), stated, rules_for("vllm", version))

    assert refused.value.field == "kv_cache_dtype"
    assert "fp8" in str(refused.value.accepted)


@pytest.mark.parametrize(("version", "gpu", "model", "dtype"), TAKEN)
def test_caches_with_scales_inside_are_taken_where_vllm_has_them(
    catalog: Snapshot, version: str, gpu: str, model: str, dtype: ScaledCacheDtype
) -> None:
    stated = StatedSettings(kv_cache_dtype=dtype)

    resolved = resolve(catalog.model(model), catalog.gpu(gpu), stated, rules_for("vllm", version))

    assert resolved.kv_cache_dtype == dtype


@pytest.mark.parametrize(("engine", "dtype"), [("vllm", "nvfp4"), ("sglang", "bf16")])
def test_a_checkpoint_s_own_nvfp4_is_heard_by_vllm_alone(catalog: Snapshot, engine: EngineName, dtype: str) -> None:
    """vLLM 0.33 `utils/torch_utils.py`; SGLang `configure_kv_cache_dtype`: of what a checkpoint says, "FP8" alone."""
    model = catalog.model("llama-3.1-8b")
    checkpoints = tuple(replace(each, kv_cache_dtype="nvfp4") for each in model.checkpoints)

    resolved = resolve(
        replace(model, checkpoints=checkpoints), catalog.gpu("h100"), StatedSettings(), rules_for(engine)
    )

    assert resolved.kv_cache_dtype == dtype


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm"])
def test_there_is_no_rule_for_such_caches_of_other_engines(catalog: Snapshot, engine: EngineName) -> None:
    stated = StatedSettings(kv_cache_dtype="int8_per_token_head")

    with pytest.raises(RefusedStartError, match="no rule for such a cache") as refused:
        resolve(catalog.model("llama-3.1-8b"), catalog.gpu("h100"), stated, rules_for(engine))

    assert refused.value.accepted == "auto or fp8"

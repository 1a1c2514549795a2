"""Which dtypes a cache may have, by engine, version, GPU and model."""

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


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm"])
def test_other_engines_have_no_cache_by_these_names(catalog: Snapshot, engine: EngineName) -> None:
    """SGLang 0.5.23 `arg_groups/fields/model.py` (`kv_cache_dtype`); TensorRT-LLM 1.3 `llmapi/llm_args.py`."""
    stated = StatedSettings(kv_cache_dtype="int8_per_token_head")

    with pytest.raises(RefusedStartError, match="has no such cache") as refused:
        resolve(catalog.model("llama-3.1-8b"), catalog.gpu("h100"), stated, rules_for(engine))

    assert refused.value.accepted == "auto or fp8"

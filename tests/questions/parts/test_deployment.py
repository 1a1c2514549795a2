"""Precision, engine, layout and settings, and the rules between them."""

from dataclasses import asdict
from typing import Any

import pytest
from pydantic import ValidationError

from service.engine.errors import InvalidQuestionError
from service.questions.parts.deployment import InLayout, OnEngine, WithSettings
from service.questions.parts.part import Part

DRAFTS: dict[str, Any] = {"num_speculative_tokens": 3, "speculative_acceptance_fraction": 0.6}


@pytest.mark.parametrize(
    ("part", "asked", "field"),
    [
        (InLayout, {"engine": "sglang", "decode_context_parallel_size": 2}, "decode_context_parallel_size"),
        (WithSettings, {"num_speculative_tokens": 3}, "num_speculative_tokens"),
        (WithSettings, {"speculative_acceptance_fraction": 0.5}, "num_speculative_tokens"),
        (WithSettings, {"speculative_method": "eagle3"}, "speculative_method"),
        (WithSettings, {"max_lora_rank": 64}, "max_lora_rank"),
        (WithSettings, {"max_loras": 0, "max_lora_rank": 8}, "max_lora_rank"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(part: type[Part], asked: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        part.model_validate(asked)

    assert [error["ctx"]["field"] for error in refused.value.errors()] == [field]


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        (InLayout, {"engine": "sglang", "decode_context_parallel_size": 1}),
        (InLayout, {"decode_context_parallel_size": 8}),
        (WithSettings, DRAFTS),
        (WithSettings, {**DRAFTS, "speculative_method": "ngram"}),
        (WithSettings, {"max_loras": 0, "max_lora_rank": 16}),
    ],
)
def test_fields_that_go_together_are_read(part: type[Part], asked: dict[str, Any]) -> None:
    assert part.model_validate(asked).model_dump(exclude_unset=True) == asked


def test_every_setting_reaches_the_engine_s_wish() -> None:
    settings: dict[str, Any] = {
        **DRAFTS, "weight_format": "fp8", "kv_cache_dtype": "fp8", "max_model_len": 4096, "gpu_memory_utilization": 0.9,
        "kv_cache_memory_bytes": 10**9, "max_num_batched_tokens": 2048, "max_num_seqs": 64, "block_size": 32,
        "max_loras": 2, "max_lora_rank": 64, "speculative_method": "mtp", "quantization": "fp8", "enforce_eager": True,
        "enable_prefix_caching": True, "language_model_only": True, "swa_full_tokens_ratio": None,
        "mamba_cache_dtype": "float32", "mamba_ssm_cache_dtype": "float16", "all2all_backend": None,
        "enable_two_batch_overlap": False,
    }  # fmt: skip
    assert set(settings) == set(WithSettings.model_fields)

    wish = asdict(WithSettings(**settings).settings_wish())

    del settings["speculative_acceptance_fraction"]  # of the load: it changes no memory
    assert wish == settings


def test_every_size_reaches_the_engine_s_wish() -> None:
    sizes = {
        "tensor_parallel_size": 2, "pipeline_parallel_size": 3, "data_parallel_size": 4, "expert_parallel": True,
        "decode_context_parallel_size": 2,
    }  # fmt: skip

    assert asdict(InLayout.model_validate(sizes).layout_wish()) == sizes


def test_an_engine_has_the_rules_of_its_version() -> None:
    assert OnEngine(engine_version="0.33.0").rules().rules_version == "vllm-0.33"


@pytest.mark.parametrize(("version", "stated", "ahead"), [("0.12", True, 1), ("0.12", None, 0), ("0.33", False, 0)])
def test_steps_are_planned_ahead_as_stated(version: str, stated: bool | None, ahead: int) -> None:  # noqa: FBT001
    asked = OnEngine(engine_version=version, async_scheduling=stated)

    assert asked.rules().steps_planned_ahead == ahead
    assert asked.rules() is asked.rules()  # what is kept is kept under them


@pytest.mark.parametrize("asked", [{"engine": "sglang"}, {"engine_version": "0.9.2"}, {"engine": "tensorrt-llm"}])
def test_an_engine_without_the_flag_is_not_told_how_to_schedule(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuestionError) as refused:
        OnEngine(**asked, async_scheduling=False).rules()

    assert refused.value.field == "async_scheduling"
    assert OnEngine(engine="sglang").rules().engine == "sglang"
    with pytest.raises(InvalidQuestionError) as refused:
        OnEngine(engine_version="latest").rules()
    assert refused.value.field == "engine_version"


@pytest.mark.parametrize("stated", ["8 tokens", "0.9,1", "0.11-0.13"])
def test_a_version_with_more_behind_it_is_refused(stated: str) -> None:
    """Its leading numbers were taken, so that 0.9,1 was 0.9, and 8 tokens the newest there is."""
    with pytest.raises(ValidationError, match=r"accepted: one alone, such as 0\.33\.0"):
        OnEngine(engine_version=stated)

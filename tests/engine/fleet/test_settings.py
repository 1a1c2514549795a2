"""Every value the caller left open is resolved and named."""

from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.errors import InvalidQuestionError, UnsupportedLayoutError
from service.engine.fleet.checkpoints import STANDARD_CHECKPOINTS, own_checkpoint
from service.engine.fleet.layouts import check_layout
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import Resolved, resolve
from service.engine.inputs import Layout


def resolved(catalog: Snapshot, context_tokens: int = 0, model: str = "llama-3.1-8b", **stated: Any) -> Resolved:
    return resolve(
        catalog.model(model),
        catalog.gpu("h100"),
        StatedSettings(**stated),
        rules_for("vllm"),
        context_tokens,
    )


def test_engines_serve_unasked_what_they_derive_themselves(catalog: Snapshot) -> None:
    # microsoft/Phi-3.5-mini-instruct states 131,072 tokens, of which vLLM serves the 4,096 before LongRoPE by itself.
    phi = catalog.model("phi-3.5-mini-instruct")
    served = {
        engine: resolve(phi, catalog.gpu("h100"), StatedSettings(), rules_for(engine)).settings.max_model_len
        for engine in ("vllm", "sglang", "tensorrt-llm")
    }

    assert served == {"vllm": 4_096, "sglang": 131_072, "tensorrt-llm": 131_072}


def origins(settled: Resolved) -> dict[str, str]:
    return {note.name: note.origin for note in settled.assumptions}


def test_defaults_are_the_engine_versions_own(catalog: Snapshot) -> None:
    # vLLM 0.33: config/cache.py (0.92) and get_batch_defaults for GPUs of 70 GiB and more (8,192 and 1,024).
    settings = resolved(catalog).settings

    assert (settings.gpu_memory_utilization, settings.max_num_batched_tokens, settings.max_num_seqs) == (
        0.92,
        8_192,
        1_024,
    )
    assert origins(resolved(catalog))["max_num_seqs"] == "default"


def test_what_is_stated_is_kept_and_said_to_be(catalog: Snapshot) -> None:
    settled = resolved(catalog, max_num_seqs=12, gpu_memory_utilization=0.8, weight_format="fp8", kv_cache_dtype="fp8")

    assert (settled.settings.max_num_seqs, settled.settings.gpu_memory_utilization) == (12, 0.8)
    assert {origins(settled)[name] for name in ("max_num_seqs", "gpu_memory_utilization", "weight_format")} == {
        "request"
    }
    assert settled.checkpoint.weight_format == "fp8"


def test_a_format_without_a_checkpoint_is_the_standard_recipe(catalog: Snapshot) -> None:
    published = {each.weight_format for each in catalog.model("llama-3.1-8b").checkpoints}
    missing = next(name for name in STANDARD_CHECKPOINTS if name not in published)

    assert resolved(catalog, weight_format=missing).checkpoint is STANDARD_CHECKPOINTS[missing]
    assert resolved(catalog).checkpoint is own_checkpoint(catalog.model("llama-3.1-8b"))


# Their config.json: Qwen pads 29,568 columns to 29,696, 232 groups of 128, so that eight ranks hold whole groups.
@pytest.mark.parametrize(
    "model", ["qwen2-72b-instruct", "qwen2.5-72b-instruct", "qwen2-vl-72b-instruct", "qwen2.5-vl-72b-instruct"]
)
def test_a_checkpoint_that_was_padded_is_spread_by_its_own_sizes(catalog: Snapshot, model: str) -> None:
    padded, plain = resolved(catalog, model=model, weight_format="int4"), resolved(catalog, model=model)

    assert '"intermediate_size": 29696' in padded.model.config_json
    check_layout(padded.model.architecture, padded.checkpoint.quantization, Layout(tensor_parallel_size=8))
    with pytest.raises(UnsupportedLayoutError, match="29568"):
        check_layout(plain.model.architecture, padded.checkpoint.quantization, Layout(tensor_parallel_size=8))
    assert plain.model is catalog.model(model)


def test_towers_are_left_out_of_a_padded_checkpoint_too(catalog: Snapshot) -> None:
    alone = resolved(catalog, model="qwen2-vl-72b-instruct", weight_format="int4", language_model_only=True)

    assert alone.model.is_text_only
    assert alone.model.architecture.encoder is None


@pytest.mark.parametrize(
    ("context_tokens", "stated", "field"),
    [
        (200_000, {}, "input_tokens"),
        (9_000, {"max_model_len": 8_192}, "max_model_len"),
        (0, {"max_model_len": 10**6}, "max_model_len"),
    ],
)
def test_lengths_beyond_the_model_are_refused(
    catalog: Snapshot, context_tokens: int, stated: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidQuestionError) as refusal:
        resolved(catalog, context_tokens, **stated)

    assert refusal.value.field == field


def test_drafts_are_named_with_who_makes_them(catalog: Snapshot) -> None:
    notes = origins(resolved(catalog, num_speculative_tokens=2))

    assert (notes["num_speculative_tokens"], notes["speculative_method"]) == ("request", "default")

"""Whose integers a name says: stored as configs of the same makers say, and started where their kernels run."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.names.facts import facts_as_named
from service.catalog.names.recipes import recipe_of
from service.catalog.snapshot import Snapshot
from service.engine import GIB, Layout, StatedSettings, plan_replica
from service.engine.errors import RefusedStartError
from service.engine.facts import Checkpoint
from service.engine.memory.plan import MemoryPlan, model_weights


def checkpoint_of(catalog: Snapshot, name: str) -> Checkpoint:
    (checkpoint,) = facts_as_named(catalog, catalog.called_models.read(name)).checkpoints
    return checkpoint


def planned(catalog: Snapshot, name: str, gpu: str) -> MemoryPlan:
    facts = facts_as_named(catalog, catalog.called_models.read(name))
    return plan_replica(facts, catalog.gpu(gpu), Layout(), StatedSettings(), rules_for("vllm", None))


@pytest.mark.parametrize(
    ("name", "stored"),  # method, scheme, group, zero points
    [
        # config.json of each, as github.com/ro99/moxie (docs/evidence/quantization-candidates.md, September 2026)
        # and huggingface.co state it
        ("cyankiwi/gemma-4-31B-it-AWQ-8bit", ("compressed-tensors", "int8-group", 32, False)),
        ("cyankiwi/Muse-Glimmer-30B-AWQ-INT4", ("compressed-tensors", "int4-group", 32, True)),
        ("cyankiwi/Qwen3.8-27B-AWQ-BF16-INT4", ("compressed-tensors", "int4-group", 32, True)),
        ("canada-quant/hy3-w4a16-mtp", ("compressed-tensors", "int4-group", 128, False)),
        ("Intel/GLM-5.3-Flash-W4A16-AutoRound", ("auto-round", "int4-group", 128, False)),
        ("Qwen/Qwen3-0.6B-GPTQ-Int8", ("gptq", "int8-group", 128, False)),
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", ("gptq", "int4-group", 128, False)),
        # presets of llm-compressor
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a16", ("compressed-tensors", "int8-group", 0, False)),
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w4a16", ("compressed-tensors", "int4-group", 128, False)),
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8", ("compressed-tensors", "int8-both", 0, False)),
        ("curvedinf/Qwen3.8-27B-GPTQ-INT8-W8A8-GS128", ("compressed-tensors", "int8-both", 0, False)),
        ("unsloth/Mistral-Nemo-Instruct-2407-bnb-4bit", ("bitsandbytes", "bitsandbytes-4bit", 64, False)),
        ("afrizalha/Mistral-Nemo-Instruct-2407-bnb-8bit", ("bitsandbytes", "int8-group", 0, False)),
        # AutoRound packs for AWQ's loader and for GPTQ's as well
        ("Vishva007/Qwen3-VL-8B-Instruct-W4A16-AutoRound-GPTQ", ("gptq", "int4-group", 128, False)),
        ("Vishva007/Qwen3-VL-8B-Instruct-W4A16-AutoRound-AWQ", ("awq", "int4-group", 128, True)),
        ("someone/Llama-3.3-70B-Instruct-AWQ", ("awq", "int4-group", 128, True)),
    ],
)
def test_a_name_says_how_its_maker_stores(catalog: Snapshot, name: str, stored: tuple[str, str, int, bool]) -> None:
    told = checkpoint_of(catalog, name).quantization

    assert (told.method, told.scheme, told.block, told.has_zero_points) == stored


@pytest.mark.parametrize("how", ["GPTQ-Int4", "W4A16-AutoRound", "quantized.w8a16", "AWQ-8bit"])
def test_towers_and_heads_stay_in_16_bits(catalog: Snapshot, how: str) -> None:
    # config.json of cyankiwi/gemma-4-31B-it-AWQ-8bit and of its siblings: head and tower stand in `ignore`
    told = checkpoint_of(catalog, f"someone/Qwen3-VL-8B-Instruct-{how}").quantization

    assert [told.of(name).keeps(name) for name in ("lm_head", "visual.blocks.3.attn.qkv")] == [True, True]
    assert not told.of("language_model.layers.3.mlp.down_proj").keeps("language_model.layers.3.mlp.down_proj")


@pytest.mark.parametrize(
    ("name", "gpu", "printed_bytes"),
    [
        # "Model loading took 8.29 GiB", MarlinLinearKernel on an L4 (github.com, vLLM on Modal, September 2026)
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "l4", 8.29 * GIB),
        # huggingface.co/cyankiwi/Muse-Glimmer-30B-AWQ-INT4: 24.02 GB of files; 22.5 were told of AutoAWQ's groups
        ("cyankiwi/Muse-Glimmer-30B-AWQ-INT4", "l40s", 24.02e9),
    ],
)
def test_it_takes_what_was_printed(catalog: Snapshot, name: str, gpu: str, printed_bytes: float) -> None:
    assert model_weights(planned(catalog, name, gpu)).weight_bytes == pytest.approx(printed_bytes, rel=0.005)


@pytest.mark.parametrize("gpu", ["b200", "rtx-5090", "h100", "l4", "t4"])
@pytest.mark.parametrize("repo", ["Qwen2.5-7B-Instruct-GPTQ-Int8", "Qwen2.5-7B-Instruct-quantized.w8a16"])
def test_eight_bits_of_weights_alone_start_on_every_generation(catalog: Snapshot, repo: str, gpu: str) -> None:
    # vLLM 0.33 `MarlinLinearKernel.get_min_capability`: 75; of both operands Blackwell has no kernels
    assert planned(catalog, f"someone/{repo}", gpu).holds_one_request


def test_eight_bits_of_both_do_not_start_on_blackwell(catalog: Snapshot) -> None:
    with pytest.raises(RefusedStartError, match="int8-both") as refusal:
        planned(catalog, "RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8", "b200")

    assert "GPTQ-Int8" in str(refusal.value.accepted)


def test_what_is_published_stands_in_for_a_repository_of_the_same_maker_alone(catalog: Snapshot) -> None:
    like_awq, by_gptq = (checkpoint_of(catalog, f"someone/Qwen3-32B-{how}") for how in ("AWQ", "GPTQ-Int4"))

    assert "Qwen/Qwen3-32B-AWQ" in str(like_awq.source)
    assert "gptq, int4 in groups of 128" in str(by_gptq.source)


def test_other_formats_have_no_such_makers() -> None:
    assert recipe_of(("qwen", "3", "32b", "fp8", "gptq"), "someone", "fp8") is None
    assert recipe_of(("qwen", "3", "32b", "int4"), "someone", "int4") is None

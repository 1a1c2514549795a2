"""Inkling, against the bytes of its files and a table of what its blocks hold.

Table: vllm-project/vllm issue 54704, by which a cache of fp8 beside windows of 16 bits held 5.9 % to 73.1 % more
tokens of Inkling-Small on four GPUs.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.classes import check_convolved
from service.engine.engines.device import REFERENCE, device_of
from service.engine.errors import RefusedStartError, UnsupportedModelError
from service.engine.families import parse_architecture
from service.engine.families.quantized import stated_quantization
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import Architecture, CacheSpec
from service.engine.memory.cache_shape import shape_of
from service.engine.memory.draft_weights import draft_matrices
from service.engine.memory.drafts import draft_of
from service.engine.memory.groups import cache_groups
from service.engine.memory.parameters import num_active_parameters, num_parameters
from service.engine.memory.plan import memory_plan
from service.engine.memory.weights import rank_weights
from tests.engine.families.changed import refused_field
from tests.engine.layers.ranks import rank

SMALL, LARGE = "inkling-small", "inkling"
SCALES = 42 + 8  # one number for each feed-forward part, which has no rule
SETTINGS = EngineSettings(
    gpu_memory_utilization=0.9,
    kv_cache_dtype="auto",
    max_model_len=1_048_576,
    max_num_batched_tokens=8_192,
    max_num_seqs=256,
)


def read(catalog: Snapshot, model: str) -> Architecture:
    return catalog.model(model).architecture


def drafting(architecture: Architecture) -> int:
    assert architecture.mtp is not None
    return sum(it.elements for it in draft_matrices(architecture.mtp, Layout()) if not it.module.endswith("scales"))


def kept(architecture: Architecture, element_bytes: int) -> list[CacheSpec]:
    view = rank(4, cache_element_bytes=element_bytes)
    return [spec for layer in architecture.layers for mixer in layer.mixers for spec in mixer.caches(view)]


def test_parameters_are_those_of_its_files(catalog: Snapshot) -> None:
    """531,912,898,740 bytes: biases of 256 experts in 40 layers, and a scale beside them, have four bytes each."""
    architecture = read(catalog, SMALL)
    counted = num_parameters(architecture) + drafting(architecture) + SCALES

    assert 2 * counted + 2 * 40 * (256 + 1) == 531_912_898_740


def test_parameters_of_the_large_one_are_those_of_its_files(catalog: Snapshot) -> None:
    architecture = read(catalog, LARGE)

    assert 2 * (num_parameters(architecture) + drafting(architecture)) == pytest.approx(1_904_604_285_204, rel=1e-4)


@pytest.mark.parametrize(("model", "billions"), [(SMALL, 12), (LARGE, 41)])
def test_a_token_passes_the_parameters_that_its_card_prints(catalog: Snapshot, model: str, billions: float) -> None:
    # "12B active", "41B active": huggingface.co/thinkingmachines/Inkling-Small and Inkling.
    assert num_active_parameters(read(catalog, model)) / 1e9 == pytest.approx(billions, abs=0.5)


@pytest.mark.parametrize(("model", "file_bytes"), [(SMALL, 170_733_074_592), (LARGE, 591_854_374_368)])
def test_a_whole_rank_in_nvfp4_loads_the_bytes_of_its_files(catalog: Snapshot, model: str, file_bytes: int) -> None:
    facts = catalog.model(model)
    stored = next(each.quantization for each in facts.checkpoints if each.weight_format == "nvfp4")
    device = device_of(catalog.gpu("b300"), rules_for("vllm"))
    loaded = rank_weights(facts.architecture, layout=Layout(), quantization=stored, device=device)

    assert loaded.loaded_bytes + 2 * drafting(facts.architecture) == pytest.approx(file_bytes, rel=2e-3)


@pytest.mark.parametrize(
    ("length", "step_tokens", "gain"),
    [
        (8_192, 16_384, 0.059),
        (131_072, 16_384, 0.086),
        (131_072, 2_048, 0.281),
        (1_048_576, 16_384, 0.279),
        (1_048_576, 2_048, 0.731),
    ],
)
def test_blocks_hold_what_a_table_says(catalog: Snapshot, length: int, step_tokens: int, gain: float) -> None:
    architecture = read(catalog, SMALL)
    plain, narrow = (
        sum(group.blocks_for(length, 2 * step_tokens) for group in cache_groups(kept(architecture, element_bytes)))
        for element_bytes in (2, 1)
    )

    assert plain / narrow - 1 == pytest.approx(gain, abs=0.0005)


def test_six_layers_of_every_kind_share_a_block(catalog: Snapshot) -> None:
    device = device_of(catalog.gpu("h200"), rules_for("vllm"))
    groups = shape_of(read(catalog, SMALL), Layout(tensor_parallel_size=4), SETTINGS, device).groups

    assert [(len(group.specs), group.specs[0].block_size) for group in groups].count((7, 32)) == 5 + 1
    assert [(len(group.specs), group.specs[0].block_size) for group in groups].count((7, 4)) == 6


def test_as_many_modules_are_built_as_tokens_are_drafted(catalog: Snapshot) -> None:
    # `nvidia/mtp.py`: "Build only those to save memory".
    architecture = read(catalog, SMALL)
    drafting = replace(SETTINGS, speculative_method="mtp")
    heads = [draft_of(architecture, replace(drafting, num_speculative_tokens=drafted)) for drafted in (1, 3, 8, 16)]

    assert [head.num_modules for head in heads if head is not None] == [1, 3, 8, 8]
    assert heads[1] is not None
    assert [layer.mixers[0].spread.is_local for layer in heads[1].body.layers] == [True, False, True]


def test_the_class_without_towers_drafts_as_well(catalog: Snapshot) -> None:
    config = json.loads(catalog.model(SMALL).config_json)
    alone = {**config["text_config"], "mtp_config": config["mtp_config"], "architectures": ["InklingForCausalLM"]}

    assert drafting(parse_architecture(alone)) == drafting(read(catalog, SMALL))


def test_shared_experts_stay_in_16_bits_whatever_is_stored(catalog: Snapshot) -> None:
    # `nvidia/moe.py`: "always bf16 (the checkpoint excludes every `shared_experts` from quantization)".
    architecture = read(catalog, SMALL)
    matrices = architecture.layers[-1].mlp.matrices(4_096, Layout(), "")

    assert {matrix.is_linear for matrix in matrices if "shared" in matrix.module} == {False}
    assert [matrix.rows for matrix in matrices if matrix.module == "mlp.gate"] == [258]


def test_a_published_list_of_exclusions_means_the_modules_of_the_loader(catalog: Snapshot) -> None:
    # Names as in `hf_quant_config.json` of Inkling-NVFP4; experts behind layer 2 are quantized.
    config: dict[str, Any] = catalog.model_entries[SMALL].config
    names = ["model.llm.layers.2.mlp.experts", "model.llm.layers.3.attn.wq_du", "model.llm.unembed"]
    names += ["model.llm.layers.0.mlp.w13_dn", "model.llm.layers.0.mlp.w2_md"]
    own = {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": names}
    for stated in (own | {"quant_method": "modelopt"}, {"producer": {"name": "modelopt"}, "quantization": own}):
        stored = parse_quantization(stated_quantization({**config, "quantization_config": stated}))

        assert stored.keeps("model.layers.2.mlp.experts.gate_up_proj")
        assert stored.keeps("model.layers.3.self_attn.q_proj")
        assert stored.keeps("model.layers.0.mlp.gate_up_proj")
        assert stored.keeps("lm_head")
        assert not stored.keeps("model.layers.3.mlp.experts.gate_up_proj")


def test_widths_under_the_names_of_transformers_are_the_same_model(catalog: Snapshot) -> None:
    config: dict[str, Any] = catalog.model_entries[SMALL].config
    text = dict(config["text_config"])
    text |= {
        "moe_intermediate_size": text["intermediate_size"],
        "intermediate_size": text.pop("dense_intermediate_size"),
    }
    text |= {"conv_kernel_size": text.pop("sconv_kernel_size")}

    assert num_parameters(parse_architecture({**config, "text_config": text})) == num_parameters(read(catalog, SMALL))


def test_parts_that_read_images_and_sound_are_those_that_are_stated(catalog: Snapshot) -> None:
    config: dict[str, Any] = catalog.model_entries[SMALL].config
    silent = parse_architecture({**config, "audio_config": None})
    blind = parse_architecture({**config, "audio_config": None, "vision_config": None})

    assert silent.encoder is not None
    assert silent.encoder.whole_parameters == 69_327_360 - (80 * 16 + 1) * 4_096
    assert blind.encoder is None


def test_other_engines_are_refused_as_their_pools_have_no_rule(catalog: Snapshot) -> None:
    check_convolved("InklingForCausalLM", REFERENCE)
    for engine in ("sglang", "tensorrt-llm"):
        with pytest.raises(RefusedStartError, match="convolutions of InklingForCausalLM"):
            check_convolved("InklingForCausalLM", device_of(catalog.gpu("h200"), rules_for(engine)))


def test_a_cache_of_fp8_is_refused(catalog: Snapshot) -> None:
    # vllm-project/vllm pull request 54705 would bring it, and is open.
    device = device_of(catalog.gpu("b200"), rules_for("vllm"))
    with pytest.raises(RefusedStartError, match="reads no fp8 cache"):
        shape_of(read(catalog, SMALL), Layout(), replace(SETTINGS, kv_cache_dtype="fp8"), device)


@pytest.mark.parametrize(
    ("gpu", "ranks", "weight_format"),
    [
        ("b300", 1, "nvfp4"),
        ("b200", 2, "nvfp4"),
        ("h200", 2, "nvfp4"),
        ("b300", 4, "bf16"),
        ("gb200", 4, "bf16"),
        ("b200", 8, "bf16"),
        ("h200", 8, "bf16"),
    ],
)
def test_the_small_one_starts_where_vllm_s_recipe_starts_it(
    catalog: Snapshot, gpu: str, ranks: int, weight_format: str
) -> None:
    """vllm-project/recipes models/thinkingmachines/Inkling-Small.yaml, "up to 1M context", without a stated length."""
    model = catalog.model(SMALL)
    plan = memory_plan(
        model,
        next(each for each in model.checkpoints if each.weight_format == weight_format),
        catalog.gpu(gpu),
        Layout(tensor_parallel_size=ranks),
        SETTINGS,
        rules_for("vllm"),
        input_tokens=1_000,
        output_tokens=100,
        shorten_to_fit=False,
    )

    assert plan.settings.max_model_len == 1_048_576
    assert plan.kv_cache.tokens >= 1_048_576


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"local_layer_ids": None}, "local_layer_ids"),
        ({"local_layer_ids": [0, 42]}, "local_layer_ids"),
        ({"sconv_kernel_size": 3}, "sconv_kernel_size"),
        ({"num_experts_per_tok": 300}, "num_experts_per_tok"),
    ],
)
def test_what_the_engine_does_not_build_is_refused_by_name(
    catalog: Snapshot, changed: dict[str, Any], field: str
) -> None:
    assert refused_field(catalog, SMALL, changed) == f"model_config.{field}"


def test_patches_of_another_size_are_refused(catalog: Snapshot) -> None:
    config: dict[str, Any] = catalog.model_entries[SMALL].config
    with pytest.raises(UnsupportedModelError, match="patch_size"):
        parse_architecture({**config, "vision_config": {**config["vision_config"], "patch_size": 16}})

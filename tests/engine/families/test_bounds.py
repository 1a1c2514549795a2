"""What a pasted config may ask of the parser: bounded work, and no answer but an architecture or a refusal by name."""

import json
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

from service.engine.config_reader import MAX_ENTRIES, MAX_LAYERS
from service.engine.errors import EngineError, UnsupportedModelError
from service.engine.families import parse_architecture
from service.engine.layers import Encoder, MoeMlp

SLOWEST_S = 0.3
FIXTURES = Path(__file__).parent
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}
NEMOTRON: dict[str, Any] = {
    **LLAMA,
    "architectures": ["NemotronHForCausalLM"],
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "hybrid_override_pattern": "M*-" * 10,
}
MIXTRAL: dict[str, Any] = {
    **LLAMA,
    "architectures": ["MixtralForCausalLM"],
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}
LLAMA_4: dict[str, Any] = {**MIXTRAL, "architectures": ["Llama4ForCausalLM"]}
QWEN: dict[str, Any] = {
    **LLAMA,
    "architectures": ["Qwen3_5ForCausalLM"],
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
}


def fixture(name: str, **stated: object) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))["config"]
    return {**config, **stated}


def zamba() -> dict[str, Any]:
    return fixture("zamba-2", num_attention_heads=10**6)


def internvl() -> dict[str, Any]:
    config = fixture("internvl")
    return {**config, "vision_config": {**config["vision_config"], "patch_size": [0, 0]}}


def gemma_4() -> dict[str, Any]:
    audio = {"subsampling_conv_channels": [128, 32, 8]}
    vision = {"hidden_size": 768, "num_hidden_layers": 16, "intermediate_size": 3072, "patch_size": 16}
    return {
        **LLAMA,
        "architectures": ["Gemma4ForConditionalGeneration"],
        "vision_config": vision,
        "audio_config": audio,
    }


# config, and the field that is refused by its name
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a pattern of more layers than any model has": (
        {**NEMOTRON, "hybrid_override_pattern": "M" * (MAX_LAYERS + 1)},
        "hybrid_override_pattern",
    ),
    "a pattern of no layers": ({**NEMOTRON, "hybrid_override_pattern": ""}, "hybrid_override_pattern"),
    "a megabyte of pattern": ({**NEMOTRON, "hybrid_override_pattern": "M" * 1_000_000}, "hybrid_override_pattern"),
    "the same as a list": ({**NEMOTRON, "layers_block_type": ["mamba"] * (MAX_LAYERS + 1)}, "layers_block_type"),
    "prediction layers without end": (
        {**NEMOTRON, "num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*" * 100_000},
        "mtp_hybrid_override_pattern",
    ),
    "a layer's number of 5,000 digits": (fixture("step-3-text", moe_layers_enum="9" * 5_000), "moe_layers_enum"),
    "as many numbers in one string": (
        fixture("step-3-text", moe_layers_enum=",".join(["4"] * 200_000)),
        "moe_layers_enum",
    ),
    "160,000 dense layers": ({**MIXTRAL, "mlp_only_layers": list(range(160_000))}, "mlp_only_layers"),
    "160,000 layers with experts": ({**LLAMA_4, "moe_layers": list(range(160_000))}, "moe_layers"),
    "a kind for each of a million layers": ({**LLAMA, "layer_types": ["full_attention"] * 1_000_000}, "layer_types"),
    "too many layers": ({**LLAMA, "num_hidden_layers": MAX_LAYERS + 1}, "num_hidden_layers"),
    "patches of no length": (internvl(), "vision_config.patch_size"),
    "three channels where two are": (gemma_4(), "audio_config.subsampling_conv_channels"),
    "heads without width": (zamba(), "attention_hidden_size"),
    "prediction layers like a layer that is not there": (
        {**QWEN, "layer_types": ["linear_attention"] * 32},
        "layer_types",
    ),
}


@pytest.mark.parametrize(("config", "field"), REFUSED.values(), ids=REFUSED)
def test_what_no_model_has_is_refused_by_name_and_at_once(config: dict[str, Any], field: str) -> None:
    start = thread_time()

    with pytest.raises(EngineError) as refusal:
        parse_architecture(config)

    assert thread_time() - start < 10 * SLOWEST_S
    assert refusal.value.field == f"model_config.{field}"
    assert len(refusal.value.detail) < 300


# The longest lists that are read, for the most layers there may be.
SLOWEST: dict[str, dict[str, Any]] = {
    "dense layers listed": {**MIXTRAL, "num_hidden_layers": MAX_LAYERS, "mlp_only_layers": list(range(MAX_ENTRIES))},
    "layers with experts listed": {**LLAMA_4, "num_hidden_layers": MAX_LAYERS, "moe_layers": list(range(MAX_ENTRIES))},
    "layers in one string": fixture(
        "step-3-text", num_hidden_layers=MAX_LAYERS, moe_layers_enum=",".join(map(str, range(MAX_ENTRIES)))
    ),
    "kinds listed": {**LLAMA, "num_hidden_layers": MAX_LAYERS, "layer_types": ["full_attention"] * MAX_ENTRIES},
    "a pattern": {**NEMOTRON, "hybrid_override_pattern": "M*-M" * (MAX_LAYERS // 4)},
    "shared caches": {
        **LLAMA,
        "architectures": ["Gemma4ForCausalLM"],
        "num_hidden_layers": MAX_LAYERS,
        "num_kv_shared_layers": MAX_LAYERS // 2,
    },
    "linear layers listed": fixture(
        "kimi-linear",
        num_hidden_layers=MAX_LAYERS,
        linear_attn_config={
            "num_heads": 32,
            "head_dim": 128,
            "short_conv_kernel_size": 4,
            "kda_layers": list(range(1, MAX_ENTRIES)),
            "full_attn_layers": list(range(1, MAX_ENTRIES)),
        },
    ),
}


@pytest.mark.parametrize("config", SLOWEST.values(), ids=SLOWEST)
def test_the_deepest_config_is_read_at_once(config: dict[str, Any]) -> None:
    def seconds(read: Callable[[dict[str, Any]], object]) -> float:
        start = thread_time()
        read(config)
        return thread_time() - start

    assert len(parse_architecture(config).layers) == MAX_LAYERS
    assert min(seconds(parse_architecture) for _ in range(3)) < SLOWEST_S


def test_a_list_of_layers_is_taken_at_its_word() -> None:
    layers = parse_architecture({**LLAMA_4, "moe_layers": [0, 3]}).layers

    assert [layer.index for layer in layers if isinstance(layer.mlp, MoeMlp)] == [0, 3]


def test_a_head_width_of_zero_means_that_none_is_stated() -> None:
    assert parse_architecture({**NEMOTRON, "head_dim": 0}).layers == parse_architecture(NEMOTRON).layers


@pytest.mark.parametrize(
    ("name", "part", "side"), [("ovis-2", "visual_tokenizer_config", 32), ("ovis-2.5", "vit_config", 32)]
)
def test_no_more_patches_are_merged_than_an_image_has_on_a_side(name: str, part: str, side: int) -> None:
    def merged(stride: int) -> Encoder | None:
        config = fixture(name)
        return parse_architecture({**config, part: {**config[part], "hidden_stride": stride}}).encoder

    assert merged(side) is not None
    with pytest.raises(UnsupportedModelError, match="hidden_stride") as refusal:
        merged(side + 1)
    assert refusal.value.field == f"model_config.{part}.hidden_stride"

"""Nested configs as publishers wrote them, without what equals their class's own values."""

from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.families import parse_architecture
from service.engine.families.parts.supplied import with_supplied
from service.engine.memory.parameters import num_parameters

SIGLIP = {
    "model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304,
    "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": False,
}  # fmt: skip
PIXTRAL = {
    "model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
    "num_attention_heads": 16, "image_size": 1024, "patch_size": 16, "head_dim": 64,
}  # fmt: skip


# The parameters that transformers 5.24 builds of config.json of Qwen/Qwen3-32B with a field left out, or null.
@pytest.mark.parametrize(
    ("stated", "head_dim", "key_value_heads"),
    [
        ({"num_key_value_heads": 8}, 128, 8),
        ({"num_key_value_heads": 8, "head_dim": 80}, 80, 8),
        ({}, 128, 32),
        ({"num_key_value_heads": None}, 128, 64),
    ],
)
def test_a_config_alone_has_its_class_s_heads(
    catalog: Snapshot, stated: dict[str, Any], head_dim: int, key_value_heads: int
) -> None:
    published = dict(next(each.config for each in catalog.entries.models if each.id == "qwen3-32b"))
    left = {name: value for name, value in published.items() if name not in ("head_dim", "num_key_value_heads")}
    whole = {**left, "head_dim": head_dim, "num_key_value_heads": key_value_heads}

    counted = num_parameters(parse_architecture({**left, **stated}))

    assert counted == num_parameters(parse_architecture(whole))
    assert (counted == 32_762_123_264) == ((head_dim, key_value_heads) == (128, 8))  # of its safetensors


# config.json of google/gemma-3-4b-it, -12b-it and -27b-it on huggingface.co, and what their safetensors hold
@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}, 4_300_079_472),
        (
            {
                "hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 48, "num_attention_heads": 16,
                "num_key_value_heads": 8,
            },
            12_187_325_040,
        ),
        (
            {
                "hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 62, "num_attention_heads": 32,
                "num_key_value_heads": 16, "head_dim": 128,
            },
            27_432_406_640,
        ),
    ],
)  # fmt: skip
def test_gemma_3_as_published_has_the_parameters_of_its_files(stated: dict[str, Any], expected: int) -> None:
    text = {"model_type": "gemma3_text", "sliding_window": 1024, **stated}
    config = {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": text, "vision_config": SIGLIP}

    architecture = parse_architecture(config)

    assert num_parameters(architecture) == expected
    assert architecture.max_position_embeddings == 131_072


def test_pixtral_s_keys_and_values_have_the_heads_that_its_class_supplies() -> None:
    """vLLM 0.33 on H100: 25,365,479,424 bytes (`llava-pixtral`); mistral-community/pixtral-12b states no heads."""
    text = {
        "model_type": "mistral", "head_dim": 128, "hidden_size": 5120, "intermediate_size": 14336,
        "num_hidden_layers": 40, "max_position_embeddings": 1024000, "sliding_window": None, "vocab_size": 131072,
    }  # fmt: skip
    config = {
        "architectures": ["LlavaForConditionalGeneration"], "text_config": text, "vision_config": PIXTRAL,
        "vision_feature_layer": -1,
    }  # fmt: skip

    assert 2 * num_parameters(parse_architecture(config)) == 25_365_479_424


def test_a_qwen_2_5_vl_saved_anew_keeps_its_eight_heads_of_keys_and_values() -> None:
    """huggingface.co/Qwen/Qwen2.5-VL-32B-Instruct, safetensors: 33,452,718,336 parameters.

    Its 8 heads of keys and values are the class's own (`Qwen2_5_VLTextConfig`), so transformers leaves them out.
    """
    config = {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "text_config": {
            "model_type": "qwen2_5_vl_text", "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64,
            "num_attention_heads": 40, "max_position_embeddings": 128000, "tie_word_embeddings": False,
        },
        "vision_config": {
            "depth": 32, "hidden_size": 1280, "intermediate_size": 3456, "num_heads": 16, "out_hidden_size": 5120,
            "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
        },
    }  # fmt: skip

    assert num_parameters(parse_architecture(config)) == 33_452_718_336


def test_a_qwen_3_vl_saved_anew_keeps_its_stacked_layers(catalog: Snapshot) -> None:
    """huggingface.co/Qwen/Qwen3-VL-8B-Instruct: 8, 16 and 24, as `Qwen3VLVisionConfig` has them of itself."""
    config: Any = catalog.model_entries["qwen3-vl-8b-instruct"].config
    tower = {name: value for name, value in config["vision_config"].items() if name != "deepstack_visual_indexes"}

    saved_anew = parse_architecture({**config, "vision_config": {**tower, "model_type": "qwen3_vl"}})

    assert saved_anew.encoder == parse_architecture(config).encoder
    assert saved_anew.encoder is not None
    assert saved_anew.encoder.outputs == 1 + 3


@pytest.mark.parametrize("kind", ["glm4", "ministral3", "qwen3"])
def test_heads_are_as_wide_as_the_class_has_them_and_not_a_share_of_the_stream(kind: str) -> None:
    # transformers 5.24 `configuration_qwen3.py`, `configuration_glm4.py`, `configuration_ministral3.py`: `head_dim: int = 128`
    text: Any = with_supplied({"text_config": {"model_type": kind, "hidden_size": 1024, "num_attention_heads": 16}})[
        "text_config"
    ]

    assert text["head_dim"] == 128


def test_what_a_config_states_counts_wherever_it_stands() -> None:
    nested = with_supplied({"vocab_size": 32_064, "text_config": {"model_type": "llama", "hidden_size": 5_120}})
    text: Any = nested["text_config"]

    assert (text["hidden_size"], text["num_hidden_layers"]) == (5_120, 32)
    assert "vocab_size" not in text  # the wrapper's, which is read where the nested part is silent
    alone = {"model_type": "llama", "hidden_size": 4_096}
    assert with_supplied(alone) is alone

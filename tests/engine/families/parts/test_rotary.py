"""Positions and widths of tables, for rope parameters as configs on huggingface.co publish them."""

from typing import Any

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from service.engine.families.parts.rotary import TYPES, in_single, no_tables, rotating, stated_tables
from service.engine.layers import DecoderLayer, DenseMlp, GroupedQueryAttention

LAYER = DecoderLayer(
    index=0,
    mixers=(GroupedQueryAttention(num_attention_heads=8, num_key_value_heads=2, head_dim=128, v_head_dim=128),),
    mlp=DenseMlp(intermediate_size=64),
)
LLAMA3: dict[str, Any] = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8_192,
}  # fmt: skip
LONGROPE: dict[str, Any] = {
    "type": "longrope", "short_factor": [1.0], "long_factor": [1.0], "original_max_position_embeddings": 4_096,
}  # fmt: skip
ALL_STATED = {"factor": 1.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "short_factor": [1], "long_factor": [1]}


def scaled(length: int, **scaling: Any) -> dict[str, Any]:
    return {"max_position_embeddings": length, "rope_scaling": scaling}


@pytest.mark.parametrize(
    ("config", "positions"),
    [
        (scaled(131_072, **LLAMA3), 131_072),  # Llama 3.1
        (scaled(16_384, type="linear", factor=4.0), 65_536),  # DeepSeek Coder
        (scaled(32_768, type="yarn", factor=4.0, original_max_position_embeddings=32_768), 131_072),  # Qwen2.5
        (scaled(131_072, **LONGROPE), 135_168),  # Phi-3 mini 128K
        ({"max_position_embeddings": 8_192}, 8_192),
    ],
)
def test_scaling_decides_how_many_positions_there_are(config: dict[str, Any], positions: int) -> None:
    (table,) = stated_tables(ConfigReader(config), (LAYER,))

    assert (table.positions, table.width, table.element_bytes) == (positions, 128, 2)


def test_a_part_of_a_head_may_be_rotated() -> None:
    """Phi-2: 0.4 of a head; GPT-NeoX: `rotary_pct`."""
    for name in ("partial_rotary_factor", "rotary_pct"):
        (table,) = stated_tables(ConfigReader({"max_position_embeddings": 2_048, name: 0.25}), (LAYER,))
        assert table.width == 32

    (table,) = rotating(0.5)(ConfigReader({"max_position_embeddings": 2_048}), (LAYER,))
    assert table.width == 64


def test_tables_in_fp32_are_twice_as_large() -> None:
    reader = ConfigReader({"max_position_embeddings": 2_048})
    (half,), (single,) = stated_tables(reader, (LAYER,)), in_single(reader, (LAYER,))

    assert single.bytes_kept(interleaves=True) == 2 * half.bytes_kept(interleaves=True)
    assert no_tables(reader, (LAYER,)) == ()


def test_kinds_of_layers_that_are_no_names_name_no_parameters() -> None:
    """A config may hold anything: what is no kind of layer is left to the reader that refuses it by name."""
    config = {"layer_types": [["full_attention"]], "rope_parameters": {"full_attention": {"rope_type": "default"}}}

    (table,) = stated_tables(ConfigReader({"max_position_embeddings": 8_192, **config}), (LAYER,))

    assert table.positions == 8_192


@pytest.mark.parametrize(
    ("config", "field", "first"),
    [
        (scaled(8_192, rope_type="llama-3", factor=8.0), "rope_scaling.rope_type", "llama3"),
        (scaled(8_192, type="YARN", factor=4.0), "rope_scaling.type", "yarn"),
        (scaled(8_192, type="dynamic_ntk", factor=4.0), "rope_scaling.type", "dynamic"),
        (
            {"max_position_embeddings": 8_192, "rope_parameters": {"rope_type": "linear2", "factor": 2.0}},
            "rope_parameters.rope_type", "linear",
        ),
        (
            {
                "max_position_embeddings": 8_192,
                "layer_types": ["full_attention"],
                "rope_parameters": {"full_attention": {"rope_type": "xyz"}},
            },
            "rope_parameters.rope_type", "default",
        ),
        (scaled(8_192, type=["linear"]), "rope_scaling.type", "linear"),
    ],
)  # fmt: skip
def test_a_type_that_the_engine_does_not_know_is_refused_by_name(
    config: dict[str, Any], field: str, first: str
) -> None:
    """As vLLM 0.33 `get_rope` does: "Unknown RoPE scaling type"; SGLang 0.5.23 says the same."""
    with pytest.raises(UnsupportedModelError) as refusal:
        stated_tables(ConfigReader(config), (LAYER,))

    assert refusal.value.field == f"model_config.{field}"
    assert (refusal.value.accepted or "").split(", ")[0] == first


def test_a_type_is_not_asked_for_where_nothing_is_rotated() -> None:
    assert stated_tables(ConfigReader(scaled(8_192, type="xyz")), ()) == ()


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_that_the_engine_knows_has_a_table(kind: str) -> None:
    assert len(stated_tables(ConfigReader(scaled(8_192, type=kind, **ALL_STATED)), (LAYER,))) == 1


@pytest.mark.parametrize(
    ("stated", "lacks"),
    [
        ({"type": "linear"}, "factor"),
        ({"rope_type": "yarn", "original_max_position_embeddings": 8_192}, "factor"),
        ({"type": "dynamic"}, "factor"),
        (LLAMA3 | {"high_freq_factor": None}, "high_freq_factor"),
        (LONGROPE | {"long_factor": None}, "long_factor"),
    ],
)
def test_what_a_type_cannot_do_without_is_asked_for(stated: dict[str, Any], lacks: str) -> None:
    """As vLLM 0.33 `get_rope` does, which takes it without a default; of `dynamic` either factor or alpha."""
    with pytest.raises(MissingConfigFieldError) as refusal:
        stated_tables(ConfigReader(scaled(8_192, **stated)), (LAYER,))

    assert refusal.value.field == f"model_config.rope_scaling.{lacks}"
    assert stated_tables(ConfigReader(scaled(8_192, type="dynamic", alpha=1_000.0)), (LAYER,))

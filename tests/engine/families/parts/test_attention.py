"""Heads and windows, for configs as they are published on huggingface.co."""

from typing import Any

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from service.engine.families.parts.attention import (
    alternating,
    base_attention,
    patterned,
    windowed_as_stated,
    windowed_where_asked,
)

LLAMA: dict[str, Any] = {
    "num_hidden_layers": 6,
    "hidden_size": 4_096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}


def windows(mixers: Any) -> list[int | None]:
    return [layer[0].sliding_window or 0 for layer in mixers]


def test_a_head_is_an_equal_share_of_the_width_unless_stated() -> None:
    shared, stated = base_attention(ConfigReader(LLAMA)), base_attention(ConfigReader({**LLAMA, "head_dim": 256}))

    assert (shared.num_key_value_heads, shared.head_dim, stated.head_dim) == (8, 128, 256)


def test_without_key_value_heads_every_head_has_its_own() -> None:
    config = {name: value for name, value in LLAMA.items() if name != "num_key_value_heads"}

    assert base_attention(ConfigReader(config)).num_key_value_heads == 32


def test_a_width_below_the_heads_is_refused() -> None:
    with pytest.raises(MissingConfigFieldError, match="leaves no width for 32 heads"):
        base_attention(ConfigReader({**LLAMA, "hidden_size": 16}))


def test_a_window_without_layer_types_holds_everywhere() -> None:
    """Mistral 7B v0.1: 4,096 tokens."""
    assert windows(windowed_as_stated(ConfigReader({**LLAMA, "sliding_window": 4_096}))) == [4_096] * 6
    assert windows(windowed_as_stated(ConfigReader({**LLAMA, "sliding_window": None}))) == [0] * 6


def test_layer_types_say_which_layers_slide() -> None:
    kinds = ["sliding_attention", "full_attention"] * 3  # gpt-oss: 128 tokens in every other layer
    stated = {**LLAMA, "sliding_window": 128, "layer_types": kinds}

    assert windows(windowed_as_stated(ConfigReader(stated))) == [128, 0] * 3
    with pytest.raises(UnsupportedModelError, match="circular"):
        windowed_as_stated(ConfigReader({**stated, "layer_types": ["circular"] * 6}))
    with pytest.raises(MissingConfigFieldError, match="names 2 of 6 layers"):
        windowed_as_stated(ConfigReader({**stated, "layer_types": kinds[:2]}))


def test_every_sixth_layer_of_gemma_3_is_full() -> None:
    assert windows(patterned(6, 1_024)(ConfigReader(LLAMA))) == [1_024] * 5 + [0]
    assert alternating(ConfigReader(LLAMA), 6).count("full_attention") == 1


def test_qwen_2_s_window_counts_only_where_it_is_asked_for() -> None:
    stated = {**LLAMA, "sliding_window": 131_072, "max_window_layers": 4}

    assert windows(windowed_where_asked(ConfigReader({**stated, "use_sliding_window": False}))) == [0] * 6
    assert (
        windows(windowed_where_asked(ConfigReader({**stated, "use_sliding_window": True}))) == [0] * 4 + [131_072] * 2
    )

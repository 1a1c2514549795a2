"""Recurrent layers among others, as Qwen3-Next's config states them (huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct)."""

from typing import Any

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.errors import EngineError
from service.engine.families.parts.attention import base_attention
from service.engine.families.parts.recurrent import by_kind, delta_net, in_groups_of_four, time_step_rank

NEXT: dict[str, Any] = {
    "num_hidden_layers": 48,
    "hidden_size": 2_048,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
READER = ConfigReader(NEXT)


def test_every_fourth_layer_attends() -> None:
    """Its model card: 12 x (3 x gated delta net, 1 x gated attention)."""
    mixers = in_groups_of_four(READER, delta_net(READER), base_attention(READER))

    assert [layer[0].is_recurrent for layer in mixers] == [True, True, True, False] * 12


def test_a_kind_without_a_rule_is_refused_and_so_is_a_short_list() -> None:
    for kinds in (["linear_attention", "wavelet"], ["linear_attention"] * 3):
        with pytest.raises(EngineError, match="layer_types"):
            by_kind(READER, kinds, {"linear_attention": delta_net(READER)}, base_attention(READER))


def test_a_time_step_has_a_sixteenth_of_the_width() -> None:
    """Mamba (arxiv.org/abs/2312.00752), section 3.6: rank = width / 16, rounded up."""
    assert time_step_rank(READER, "time_step_rank") == 128
    assert time_step_rank(ConfigReader({"hidden_size": 2_049}), "time_step_rank") == 129
    assert time_step_rank(ConfigReader({"time_step_rank": 160}), "time_step_rank") == 160

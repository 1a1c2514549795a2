"""Norms on queries and keys, by the tensors of published checkpoints."""

from dataclasses import replace

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.norms import (
    four_where,
    on_heads,
    on_heads_where,
    over_all_heads,
    without_head_norms,
)
from service.engine.layers import Heads

NOTHING = ConfigReader({})
QWEN_8B = Heads(
    queries=32, key_values=8, width=128, reads_other_cache=False, has_input_biases=False, has_output_bias=False
)


def test_norms_on_heads_are_as_wide_as_one() -> None:
    # huggingface.co/Qwen/Qwen3-8B: q_norm and k_norm of 128 elements each
    assert on_heads(NOTHING, QWEN_8B) == 2 * 128
    assert on_heads(NOTHING, replace(QWEN_8B, reads_other_cache=True)) == 128
    assert without_head_norms(NOTHING, QWEN_8B) == 0


def test_norms_over_all_heads_are_as_wide_as_the_projection() -> None:
    # huggingface.co/allenai/OLMo-2-1124-7B: q_norm and k_norm of 4,096 elements each
    assert over_all_heads(NOTHING, replace(QWEN_8B, key_values=32)) == 2 * 4_096


def test_a_field_may_decide() -> None:
    rule = on_heads_where("use_qk_norm")

    assert (rule(NOTHING, QWEN_8B), rule(ConfigReader({"use_qk_norm": True}), QWEN_8B)) == (0, 256)
    assert (four_where("sandwich")(NOTHING), four_where("sandwich", default=True)(NOTHING)) == (2, 4)

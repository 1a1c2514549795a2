"""ChatGLM and GLM-4 as first published, and GLM-4V.

Sources:
    vLLM 0.33 `model_executor/models/chatglm.py`, `glm4v.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, base_attention, repeated
from service.engine.families.parts.family import Family
from service.engine.families.parts.towers import blocks, tower_heads, vision_part
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder


def _attention(reader: ConfigReader) -> Mixers:
    """Return `multi_query_group_num` key-value heads, where `multi_query_attention` says so."""
    attention = base_attention(reader)
    width = reader.positive("kv_channels", default=attention.head_dim)
    is_grouped = reader.flag("multi_query_attention")
    groups = reader.positive("multi_query_group_num") if is_grouped else attention.num_attention_heads
    has_biases = reader.flag("add_qkv_bias") or reader.flag("add_bias_linear")
    grouped = replace(
        attention,
        num_key_value_heads=groups,
        head_dim=width,
        v_head_dim=width,
        has_query_bias=has_biases,
        has_key_value_bias=has_biases,
        has_output_bias=reader.flag("add_bias_linear"),
    )
    return repeated(reader, grouped)


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower, whose second feed-forward matrices are split by rows, and its gated adapter."""
    vision, out = vision_part(outer), text.positive("hidden_size")
    hidden, size = vision.positive("hidden_size"), vision.positive("intermediate_size")
    depth, patch = vision.positive("num_hidden_layers"), vision.positive("patch_size")
    split, whole = blocks(hidden, size)
    inner = text.positive("ffn_hidden_size")
    patches = 3 * patch * patch * hidden + 2 * hidden + vision.positive("num_positions") * hidden
    downsampling = 4 * hidden * out + out
    return Encoder(
        split_parameters=depth * split + 3 * out * inner,
        whole_parameters=depth * (whole + 4 * hidden) + patches + out * out + 2 * out + downsampling + 2 * out,
        num_heads=tower_heads(vision),
    )


FAMILIES: Final = (
    Family(classes=("ChatGLMModel", "ChatGLMForConditionalGeneration"), attention=_attention),
    Family(classes=("GLM4VForCausalLM",), wraps=always("ChatGLMModel"), tower=_tower),
)

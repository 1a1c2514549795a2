"""MPT: one fused projection, two matrices, no biases, positions by slopes (ALiBi).

Sources:
    vLLM 0.28 `model_executor/models/mpt.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import Mixers, base_attention, repeated
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.rotary import no_tables
from service.engine.families.parts.sizes import hidden_size


def _attention(reader: ConfigReader) -> Mixers:
    """Return full attention, with fewer key-value heads where `attn_config` says so.

    Raises:
        UnsupportedModelError: learnt positions, norms on queries and keys, or biases, which no published one has.
    """
    stated, attention = ConfigReader(reader.mapping("attn_config") or {}), base_attention(reader)
    for asked, name, usual in ((stated, "alibi", True), (stated, "qk_ln", False), (reader, "no_bias", True)):
        if asked.flag(name, default=usual) is not usual:
            raise unknown_kind(name, not usual, str(usual).lower())
    heads = stated.positive("kv_n_heads", default=attention.num_attention_heads)
    return repeated(reader, replace(attention, num_key_value_heads=heads))


def _width(reader: ConfigReader, _stated: int) -> int:
    return reader.positive("expansion_ratio", default=4) * hidden_size(reader)


FAMILIES: Final = (
    Family(
        classes=("MPTForCausalLM", "MptForCausalLM"),
        attention=_attention,
        feed_forward=FeedForward(is_gated=False, dense=Dense(width=_width)),
        ties_embeddings=True,
        rotary=no_tables,
        last_vllm="0.28",
    ),
)

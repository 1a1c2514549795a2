"""Persimmon, and Fuyu, which feeds it patches of images through one matrix.

Sources:
    vLLM 0.25 `model_executor/models/persimmon.py`, `fuyu.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.biases import Biases
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.rotary import rotating
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder, Heads

ROTATED: Final = 0.5  # of a head


def _everywhere(_reader: ConfigReader, _stated: Biases) -> Biases:
    return True, True


def _head_norms(reader: ConfigReader, heads: Heads) -> int:
    """Return norms with biases on heads of queries and keys."""
    return 2 * heads.norm_elements if reader.flag("qk_layernorm", default=True) else 0


def _patches(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the matrix from a patch's pixels to the stream, with its bias."""
    pixels = outer.positive("patch_size", default=30) ** 2 * outer.positive("num_channels", default=3)
    return Encoder(split_parameters=(pixels + 1) * text.positive("hidden_size"), whole_parameters=0)


FAMILIES: Final = (
    Family(
        classes=("PersimmonForCausalLM",),
        model_types=("persimmon",),
        attention=full_only,
        feed_forward=FeedForward(is_gated=False, dense=Dense(biased_unless="enable_bias")),
        biases=_everywhere,
        head_norms=_head_norms,
        has_norm_biases=True,
        rotary=rotating(ROTATED),
        last_vllm="0.25",
    ),
    Family(classes=("FuyuForCausalLM",), wraps=always("PersimmonForCausalLM"), tower=_patches, last_vllm="0.25"),
)

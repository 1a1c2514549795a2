"""LFM2: short convolutions with a few attention layers.

Sources:
    vLLM 0.33 `model_executor/models/`: lfm2.py, lfm2_moe.py, lfm2_siglip2.py with lfm2_vl.py.
"""

from typing import Final

from service.engine.arithmetic import round_up
from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, base_attention
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.recurrent import by_kind
from service.engine.families.parts.siglip import siglip
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.families.parts.sparsity import first_dense_as
from service.engine.families.parts.towers import tower_heads, vision_part
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder, ShortConvolution


def _attention(reader: ConfigReader) -> Mixers:
    """Return convolutions but where `layer_types` or `full_attn_idxs` says otherwise."""
    convolution = ShortConvolution(
        hidden_size=reader.integer("conv_dim", default=0) or hidden_size(reader),
        conv_kernel_size=reader.positive("conv_L_cache", default=3),
        has_bias=reader.flag("conv_bias"),
    )
    layers = num_hidden_layers(reader)
    full = frozenset(reader.integers("full_attn_idxs") or ())
    kinds = reader.strings("layer_types") or tuple(
        "full_attention" if index in full else "conv" for index in range(layers)
    )
    return by_kind(reader, kinds, {"conv": convolution}, base_attention(reader))


def _adjusted(reader: ConfigReader, stated: int) -> int:
    """Return the width: two thirds of what is stated, times a factor, up to a whole multiple."""
    size = reader.positive("block_ff_dim", default=stated)
    if not reader.flag("block_auto_adjust_ff_dim", default=True):
        return size
    size = int(reader.number("block_ffn_dim_multiplier", default=1.0) * int(2 * size / 3))
    return round_up(size, reader.positive("block_multiple_of", default=256))


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP 2 with a fixed number of positions, and a projector over merged patches."""
    vision = vision_part(outer)
    hidden, positions = vision.positive("hidden_size"), vision.positive("num_patches", default=256)
    merged = outer.positive("downsample_factor", default=2) ** 2 * hidden
    inner, out = outer.positive("projector_hidden_size", default=2560), text.positive("hidden_size")
    norm = 2 * merged if outer.flag("projector_use_layernorm", default=True) else 0
    biases = inner + out if outer.flag("projector_bias", default=True) else 0
    split, whole = siglip(vision, positions=positions).parameters()
    return Encoder(
        split_parameters=split,
        whole_parameters=whole + norm + merged * inner + inner * out + biases,
        num_heads=tower_heads(vision),
    )


FAMILIES: Final = (
    Family(
        classes=("Lfm2ForCausalLM",),
        model_types=("lfm2",),
        attention=_attention,
        feed_forward=FeedForward(dense=Dense(width=_adjusted)),
        head_norms=on_heads,
        ties_embeddings=True,
    ),
    Family(
        classes=("Lfm2MoeForCausalLM",),
        model_types=("lfm2_moe",),
        attention=_attention,
        feed_forward=FeedForward(experts=Experts(sparsity=first_dense_as("num_dense_layers"))),
        head_norms=on_heads,
        ties_embeddings=True,
    ),
    Family(classes=("Lfm2VlForConditionalGeneration",), wraps=named_inside, tower=_tower),
)

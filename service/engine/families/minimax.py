"""MiniMax M2 and M3, which attends to selected blocks.

Sources:
    vLLM 0.33 `model_executor/models/minimax_m2.py`, `models/minimax_m3/nvidia/model.py`,
    `models/minimax_m3/nvidia/mtp.py`, `models/minimax_m3/common/vision_tower.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import Mixers, alone, base_attention, check_length, repeated
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.mtp import Draft, like_the_last
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.families.parts.towers import blocks, perceptron, seen, tower_heads
from service.engine.layers import Architecture, BlockSelector, DraftHead, Encoder

SPARSE_KIND: Final = "minimax_m3_sparse"
BLOCK_TOKENS: Final = 128  # the only block that M3's kernels read [tokens]


def _wide_norms(reader: ConfigReader) -> Mixers:
    """Return full attention with norms over all heads."""
    return repeated(reader, replace(base_attention(reader), has_wide_norms=True))


def _block_sparse(reader: ConfigReader) -> Mixers:
    """Return full attention, to selected blocks in the layers that `sparse_attention_freq` marks."""
    attention = base_attention(reader)
    stated = ConfigReader(reader.mapping("sparse_attention_config") or _apart(reader))
    layers = num_hidden_layers(reader)
    frequency = stated.integers("sparse_attention_freq") or (0,) * layers
    check_length(
        "sparse_attention_config.sparse_attention_freq",
        len(frequency),
        layers,
        accepted="one 0 (full) or 1 (selected blocks) per layer",
    )
    if not any(frequency):
        return repeated(reader, attention)
    selecting = replace(attention, selector=_selector(stated, attention.num_key_value_heads))
    return alone(selecting if frequency[index] else attention for index in range(layers))


def _apart(reader: ConfigReader) -> Mapping[str, object]:
    """Return the same from names of its own, and kinds of layers.

    Source: transformers 5.24 `models/minimax_m3_vl/configuration_minimax_m3_vl.py`, as it saves them.
    """
    if reader.raw("index_n_heads") is None:
        return {}
    return {
        "sparse_attention_freq": [int(kind == SPARSE_KIND) for kind in reader.strings("layer_types") or ()],
        "sparse_num_index_heads": reader.positive("index_n_heads"),
        "sparse_index_dim": reader.positive("index_head_dim"),
        "sparse_block_size": reader.positive("index_block_size", default=BLOCK_TOKENS),
    }


def _selector(stated: ConfigReader, heads: int) -> BlockSelector:
    selector = BlockSelector(
        num_heads=stated.positive("sparse_num_index_heads"),
        head_dim=stated.positive("sparse_index_dim"),
        block_size=stated.positive("sparse_block_size", default=BLOCK_TOKENS),
    )
    if selector.num_heads != heads:
        raise unknown_kind("sparse_num_index_heads", selector.num_heads, str(heads))
    if selector.block_size != BLOCK_TOKENS:
        raise unknown_kind("sparse_block_size", selector.block_size, str(BLOCK_TOKENS))
    return selector


def _dense_width(reader: ConfigReader, _stated: int) -> int:
    return reader.positive("dense_intermediate_size")


def _expert_width(reader: ConfigReader) -> int:
    return reader.positive("intermediate_size")


def _shared(reader: ConfigReader, size: int, _stated: int) -> int:
    return size * reader.integer("n_shared_experts", default=0)


def _modules(reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return layers like the model's last, numbered from 0."""
    head = like_the_last(reader, architecture, modules)
    return replace(head, layer_modules=tuple(f"model.layers.{index}." for index in range(modules)))


def _tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower, its projector, and the network that merges four patches."""
    hidden, depth = vision.positive("hidden_size"), vision.positive("num_hidden_layers")
    out = text.positive("hidden_size")
    inner = text.positive("projector_hidden_size", default=out)
    stated = ConfigReader(vision.mapping("img_token_compression_config") or {})
    split, whole = blocks(hidden, vision.positive("intermediate_size"))
    projector, bias = perceptron(hidden, inner, out)
    merger, _ = perceptron(stated.positive("spatial_merge_size", default=2) ** 2 * out, inner, out)
    patches = 3 * stated.positive("temporal_patch_size", default=2) * vision.positive("patch_size") ** 2 * hidden
    return Encoder(
        split_parameters=depth * split + projector + merger,
        whole_parameters=depth * (whole + 4 * hidden) + 2 * hidden + patches + 2 * bias,
        num_heads=tower_heads(vision),
    )


_M3: Final = Family(
    classes=("MiniMaxM3ForCausalLM", "MiniMaxM3SparseForCausalLM"),
    attention=_block_sparse,
    feed_forward=FeedForward(
        dense=Dense(width=_dense_width),
        experts=Experts(size=_expert_width, shared=_shared, has_wide_router=True),
    ),
    head_norms=on_heads,
)
FAMILIES: Final = (
    Family(
        classes=("MiniMaxM2ForCausalLM",),
        attention=_wide_norms,
        feed_forward=FeedForward(experts=Experts(has_wide_router=True, has_score_correction=True)),
    ),
    _M3,
    replace(
        _M3,
        classes=("MiniMaxM3SparseForConditionalGeneration",),
        tower=seen(_tower),
        states_tower_size=False,  # SGLang keeps `vision_config` as a mapping
        draft=Draft(build=_modules, count_name="num_mtp_modules", default_count=1),
    ),
)

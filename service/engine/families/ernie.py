"""ERNIE 4.5, dense, with experts, with experts for images, and PaddleOCR-VL.

Sources:
    vLLM 0.33 `model_executor/models/`: ernie45.py, ernie45_moe.py, ernie_mtp.py, ernie45_vl.py, ernie45_vl_moe.py,
    paddleocr_vl.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, unknown_kind
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.mtp import Draft, head_of
from service.engine.families.parts.siglip import siglip_tower
from service.engine.families.parts.sparsity import by_frequency
from service.engine.families.parts.towers import blocks, perceptron, tower_heads, vision_part, with_whole
from service.engine.families.parts.wrappers import always
from service.engine.layers import Architecture, DenseMlp, DraftHead, Encoder


def _from_start_to_end(reader: ConfigReader, num_layers: int) -> Sequence[bool]:
    """Return experts from one layer to another, every few."""
    first = reader.integer("moe_layer_start_index", default=0)
    last = reader.integer("moe_layer_end_index", default=10**6)
    every = reader.positive("moe_layer_interval", default=1)
    return [first <= index <= last and (index + 1) % every == 0 for index in range(num_layers)]


def _restated(reader: ConfigReader) -> Mapping[str, object]:
    """Return as one number what the multimodal configs state for text and images, where both agree."""
    values: dict[str, object] = {}
    for field in ("moe_num_experts", "moe_layer_start_index", "moe_layer_end_index"):
        stated = reader.raw(field)
        if not is_list(stated) or not stated:
            continue
        values[field] = min((number for number in stated if isinstance(number, int)), default=0)
        if field == "moe_num_experts" and any(number != stated[0] for number in stated):
            raise unknown_kind(field, stated, "as many experts for images as for text")
    sizes = reader.raw("moe_intermediate_size")
    if is_list(sizes) and len(sizes) > 1:
        values |= {"moe_intermediate_size": sizes[0], "image_expert_size": sizes[1]}
    return values


def _modules(reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return dense layers, with two norms around the projection and none behind the layer."""
    dense = DenseMlp(intermediate_size=reader.positive("intermediate_size"), has_bias=False)
    layer = replace(architecture.layers[-1], mlp=dense)
    return replace(head_of(architecture, layer, modules), num_norms=2)


def _resampled(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower, and a resampler over four patches and then two frames, split by outputs."""
    vision, out = vision_part(outer), text.positive("hidden_size")
    hidden = vision.positive("embed_dim", "hidden_size", default=1280)
    depth, patch = vision.positive("depth"), vision.positive("patch_size")
    size = int(hidden * vision.number("mlp_ratio", default=0.0)) or vision.positive("intermediate_size")
    split, whole = blocks(hidden, size)
    spatial = outer.positive("spatial_conv_size", default=2) ** 2 * outer.positive("pixel_hidden_size", default=hidden)
    temporal = spatial * outer.positive("temporal_conv_size", default=2)
    resampler, norms = 2 * spatial * spatial + 2 * spatial, 2 * spatial
    if outer.flag("use_temporal_conv", default=True):
        resampler += temporal * spatial + spatial * spatial + 2 * spatial
        norms += 2 * spatial
    return Encoder(
        split_parameters=depth * split + resampler + spatial * out + out,
        whole_parameters=depth * (whole + 4 * hidden) + 3 * patch * patch * hidden + 2 * hidden + norms + out,
        num_heads=tower_heads(vision),
    )


def _paddle(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP with its last norm, and a projector over merged patches that no rank splits."""
    vision = vision_part(outer)
    hidden = vision.positive("hidden_size")
    merged = vision.positive("spatial_merge_size", default=2) ** 2 * hidden
    projector = sum(perceptron(merged, merged, text.positive("hidden_size")))
    return with_whole(siglip_tower(vision), 2 * hidden + projector)


_SPARSITY: Final = by_frequency(_from_start_to_end)
_EXPERTS: Final = FeedForward(experts=Experts(has_wide_router=True, has_score_correction=True, sparsity=_SPARSITY))
FAMILIES: Final = (
    Family(
        classes=("Ernie4_5ForCausalLM",),
        attention=full_only,
        feed_forward=FeedForward(experts=Experts(sparsity=_SPARSITY)),
    ),
    Family(
        classes=("Ernie4_5_MoeForCausalLM",),
        attention=full_only,
        feed_forward=_EXPERTS,
        draft=Draft(build=_modules),
    ),
    Family(
        classes=("Ernie4_5_VLMoeForConditionalGeneration",),
        attention=full_only,
        restates=_restated,
        feed_forward=_EXPERTS,
        tower=_resampled,
    ),
    Family(
        classes=("PaddleOCRVLForConditionalGeneration",),
        wraps=always("Ernie4_5ForCausalLM"),
        tower=_paddle,
        has_stages=False,
    ),
)

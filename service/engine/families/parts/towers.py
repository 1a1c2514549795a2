"""Vision towers of newer families, beside those of `encoder.py`.

Sources:
    vLLM 0.33 `models/kimi_k3/nvidia/model.py` with `models/kimi_k25_vit.py`,
    `models/minimax_m3/common/vision_tower.py`, and in `model_executor/models/`: step_vl.py,
    qwen2_vl.py, qwen2_5_vl.py, glm4_1v.py, interns1_vit.py, clip.py with llava.py, siglip.py with
    llava_onevision.py and paligemma.py, idefics2_vision_model.py with idefics3.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader, is_mapping, text_reader
from service.engine.families.parts.tower_parts import (
    blocks,
    merging,
    perceptron,
    side_length,
    siglip,
    tower_heads,
    used_layers,
)
from service.engine.layers import Encoder


def _kimi_k3(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Kimi K3's tower without biases, whose attention is wider than its stream, and its projector."""
    hidden = vision.positive("vt_hidden_size", "hidden_size", default=1024)
    inner = vision.positive("qkv_hidden_size", default=1536)
    depth = vision.positive("vt_num_hidden_layers", "num_hidden_layers", default=27)
    size = vision.positive("vt_intermediate_size", "intermediate_size", default=4096)
    side = vision.positive("init_pos_emb_height", default=64) * vision.positive("init_pos_emb_width", default=64)
    patches = 3 * vision.positive("patch_size", default=14) ** 2 * hidden
    merged = 4 * vision.positive("mm_hidden_size", default=hidden)
    out = text.positive("hidden_size")
    return Encoder(
        split_parameters=depth * (4 * hidden * inner + 2 * hidden * size),
        whole_parameters=depth * 2 * hidden
        + (patches + side * hidden + hidden)
        + (merged * merged + merged * out + out),
        num_heads=vision.positive("vt_num_attention_heads", "num_attention_heads", default=12),
        is_whole_where_uneven=True,
    )


def _minimax_m3(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return MiniMax M3's tower, its projector, and the network that merges four patches."""
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


def _step(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Step's perception encoder with scaled layers, the two convolutions after it, and the projector."""
    width, depth = vision.positive("width", "hidden_size"), vision.positive("layers", "num_hidden_layers")
    split, whole = blocks(width, int(width * vision.number("mlp_ratio", default=8960 / 1536)))
    patch = vision.positive("patch_size")
    side = vision.positive("image_size") // patch
    around = 3 * patch * patch * width + side * side * width + 2 * width
    downsampling = 9 * (2 * width * width + 8 * width * width) + 6 * width
    return Encoder(
        split_parameters=depth * split + 4 * width * text.positive("hidden_size"),
        whole_parameters=depth * (whole + 6 * width) + around + downsampling,
        num_heads=tower_heads(vision),
    )


def _gemma3n(_vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return Gemma 3n's image and audio towers, the same in both sizes.

    The printed totals of E4B (7,849,978,192) and E2B (5,439,438,272) leave the same number beside
    their language models, counting the unused key and value projections of layers that share a cache.
    """
    return Encoder(split_parameters=0, whole_parameters=983_281_504)


def _qwen2(vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return Qwen2-VL's tower: patches in time and space, and a merger of four patches."""
    hidden, out = vision.positive("embed_dim", default=1280), vision.positive("hidden_size")
    split, whole = blocks(hidden, int(hidden * vision.number("mlp_ratio", default=4.0)))
    return merging(vision, hidden, out, (split, whole + 4 * hidden), 2 * hidden)


def _qwen2_5(vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return Qwen2.5-VL's tower: gated, with norms that have no bias."""
    hidden, out = vision.positive("hidden_size"), vision.positive("out_hidden_size", default=3584)
    size = vision.positive("intermediate_size", default=3420)
    split, whole = blocks(hidden, size, is_gated=True)
    return replace(merging(vision, hidden, out, (split, whole + 2 * hidden), hidden), intermediate_size=size)


def _glm4v(vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return GLM-4.1V's tower, whose feed-forward parts are as wide as its output, and its gated merger."""
    hidden, out = vision.positive("hidden_size"), vision.positive("out_hidden_size")
    depth, inner = vision.positive("depth"), vision.positive("intermediate_size")
    patch = vision.positive("patch_size")
    split, _ = blocks(hidden, out, is_gated=True, has_biases=False)
    patches = 3 * vision.positive("temporal_patch_size", default=2) * patch * patch * hidden + hidden
    positions = (vision.positive("image_size") // patch) ** 2 * hidden
    downsampling = vision.positive("spatial_merge_size", default=2) ** 2 * hidden * out + out
    return Encoder(
        split_parameters=depth * split + out * out + 3 * out * inner,
        whole_parameters=(depth + 1) * 2 * hidden + patches + positions + downsampling + 2 * out,
        num_heads=tower_heads(vision),
    )


def _internvl(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return InternViT with scaled layers, of which only feed-forward parts are split, and the projector."""
    hidden, depth = vision.positive("hidden_size"), vision.positive("num_hidden_layers")
    size, patch = vision.positive("intermediate_size"), side_length(vision, "patch_size")
    merged, out = 4 * hidden, text.positive("hidden_size")
    attention = 3 * hidden if vision.flag("attention_bias") else 0
    norms = 2 * hidden if vision.flag("use_qk_norm") else 0
    around = 3 * patch * patch * hidden + hidden + ((side_length(vision, "image_size") // patch) ** 2 + 2) * hidden
    projector = 2 * merged + merged * out + out + out * out + out
    layer = 4 * hidden * hidden + attention + 8 * hidden + norms
    return Encoder(
        split_parameters=depth * (2 * hidden * size + size), whole_parameters=depth * layer + around + projector
    )


def _clip(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return CLIP up to the layer whose features are used, and the projector."""
    hidden, patch = vision.positive("hidden_size"), vision.positive("patch_size")
    split, whole = blocks(hidden, vision.positive("intermediate_size"))
    depth = used_layers(vision, text)
    positions = ((vision.positive("image_size") // patch) ** 2 + 1) * hidden
    projector, bias = perceptron(hidden, text.positive("hidden_size"), text.positive("hidden_size"))
    return Encoder(
        split_parameters=depth * split + projector,
        whole_parameters=depth * (whole + 4 * hidden) + 3 * patch * patch * hidden + positions + 3 * hidden + bias,
        num_heads=tower_heads(vision),
    )


def _clip_next(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return CLIP with one learnt end of line."""
    tower = _clip(vision, text)
    return Encoder(
        split_parameters=tower.split_parameters,
        whole_parameters=tower.whole_parameters + text.positive("hidden_size"),
        num_heads=tower.num_heads,
    )


def _clip_video(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return CLIP with a projector that no rank splits."""
    tower, out = _clip(vision, text), text.positive("hidden_size")
    projector, _ = perceptron(vision.positive("hidden_size"), out, out)
    return Encoder(
        split_parameters=tower.split_parameters - projector,
        whole_parameters=tower.whole_parameters + projector,
        num_heads=tower.num_heads,
    )


def _onevision(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP, one learnt end of line, and a projector that no rank splits."""
    split, whole = siglip(vision)
    out = text.positive("hidden_size")
    projector = sum(perceptron(vision.positive("hidden_size"), out, out))
    return Encoder(split_parameters=split, whole_parameters=whole + out + projector, num_heads=tower_heads(vision))


def _paligemma(vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return SigLIP with its last norm, and one projection that no rank splits."""
    split, whole = siglip(vision)
    hidden, out = vision.positive("hidden_size"), vision.positive("projection_dim")
    return Encoder(
        split_parameters=split,
        whole_parameters=whole + 2 * hidden + hidden * out + out,
        num_heads=tower_heads(vision),
    )


def _idefics3(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP with its last norm, and one projection of merged patches that no rank splits."""
    split, whole = siglip(vision)
    hidden = vision.positive("hidden_size")
    merged = text.positive("scale_factor", default=2) ** 2 * hidden
    projection = merged * text.positive("hidden_size")
    return Encoder(
        split_parameters=split, whole_parameters=whole + 2 * hidden + projection, num_heads=tower_heads(vision)
    )


_RULES: Final[Mapping[str, Callable[[ConfigReader, ConfigReader], Encoder]]] = MappingProxyType(
    {
        "KimiK3ForConditionalGeneration": _kimi_k3,
        "MiniMaxM3SparseForConditionalGeneration": _minimax_m3,
        "Step3p7ForConditionalGeneration": _step,
        "Gemma3nForConditionalGeneration": _gemma3n,
        "Qwen2VLForConditionalGeneration": _qwen2,
        "Qwen2_5_VLForConditionalGeneration": _qwen2_5,
        "Glm4vForConditionalGeneration": _glm4v,
        "Glm4vMoeForConditionalGeneration": _glm4v,
        "InternVLForConditionalGeneration": _internvl,
        "InternS1ForConditionalGeneration": _internvl,
        "LlavaForConditionalGeneration": _clip,
        "LlavaNextForConditionalGeneration": _clip_next,
        "LlavaNextVideoForConditionalGeneration": _clip_video,
        "LlavaOnevisionForConditionalGeneration": _onevision,
        "Idefics3ForConditionalGeneration": _idefics3,
        "SmolVLMForConditionalGeneration": _idefics3,
        "PaliGemmaForConditionalGeneration": _paligemma,
    }
)


def parse_tower(config: Mapping[str, object], name: str) -> Encoder | None:
    """Return the tower of an architecture in this module's table, or None."""
    vision = config.get("vision_config")
    rule = _RULES.get(name)
    if rule is None or not is_mapping(vision):
        return None
    return rule(ConfigReader(vision), text_reader(config))

"""Vision towers of multimodal models: weights that hold no cache.

Sources:
    vLLM 0.33 model files: qwen3_vl.py, qwen3_5.py, siglip.py with gemma3_mm.py, gemma4_mm.py,
    kimi_k25.py, mllama4.py, pixtral.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from service.engine.config_reader import ConfigReader, is_mapping, text_reader
from service.engine.layers import Encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tower:
    """A vision transformer's shape."""

    depth: int
    hidden: int
    intermediate: int
    is_gated: bool = False
    has_biases: bool = True
    norms_per_layer: int = 2
    norm_biases: bool = True


def _layers(tower: _Tower) -> tuple[int, int]:
    """Return the parameters of all layers: split over ranks, and whole on every rank."""
    hidden, size = tower.hidden, tower.intermediate
    matrices = 4 * hidden * hidden + (3 if tower.is_gated else 2) * hidden * size
    split_biases = 3 * hidden + size * (2 if tower.is_gated else 1)
    split = matrices + (split_biases if tower.has_biases else 0)
    norms = tower.norms_per_layer * hidden * (2 if tower.norm_biases else 1)
    whole = norms + (2 * hidden if tower.has_biases else 0)
    return tower.depth * split, tower.depth * whole


def _qwen(vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return Qwen3-VL's tower: patches in time and space, a merger, and one merger per deep stack."""
    hidden = vision.positive("hidden_size")
    out = vision.positive("out_hidden_size")
    patch = vision.positive("patch_size") ** 2 * vision.positive("temporal_patch_size", default=2)
    patches = vision.positive("in_channels", default=3) * patch * hidden + hidden
    merged = hidden * vision.positive("spatial_merge_size", default=2) ** 2
    deep = len(vision.integers("deepstack_visual_indexes") or ())
    merger_split = merged * merged + merged + merged * out
    split, whole = _layers(
        _Tower(depth=vision.positive("depth"), hidden=hidden, intermediate=vision.positive("intermediate_size"))
    )
    return Encoder(
        split_parameters=split + (1 + deep) * merger_split,
        whole_parameters=whole
        + patches
        + vision.positive("num_position_embeddings", default=2304) * hidden
        + (2 * hidden + out)
        + deep * (2 * merged + out),
    )


def _siglip_parts(vision: ConfigReader, positions: int) -> tuple[int, int]:
    hidden = vision.positive("hidden_size", "vt_hidden_size", default=1152)
    patch = vision.positive("patch_size", default=14)
    split, whole = _layers(
        _Tower(
            depth=vision.positive("num_hidden_layers", "vt_num_hidden_layers", default=27),
            hidden=hidden,
            intermediate=vision.positive("intermediate_size", "vt_intermediate_size", default=4304),
        )
    )
    patches = 3 * patch * patch * hidden + hidden
    return split, whole + patches + positions * hidden + 2 * hidden


def _gemma3(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP and the projection into the language model."""
    side = vision.positive("image_size", default=896) // vision.positive("patch_size", default=14)
    split, whole = _siglip_parts(vision, side * side)
    hidden = vision.positive("hidden_size", default=1152)
    return Encoder(
        split_parameters=split,
        whole_parameters=whole + hidden * text.positive("hidden_size") + hidden,
    )


def _kimi(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return MoonViT and its two-layer projector, which no rank splits."""
    side = vision.positive("init_pos_emb_height", default=64) * vision.positive("init_pos_emb_width", default=64)
    split, whole = _siglip_parts(vision, side)
    hidden = vision.positive("hidden_size", "vt_hidden_size", default=1152)
    merged = hidden * 4
    projector = merged * merged + merged + merged * text.positive("hidden_size") + text.positive("hidden_size")
    return Encoder(split_parameters=split, whole_parameters=whole + projector + 2 * hidden)


def _gemma4(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Gemma 4's gated tower with its two position tables."""
    hidden = vision.positive("hidden_size")
    depth = vision.positive("num_hidden_layers")
    split, whole = _layers(
        _Tower(
            depth=depth,
            hidden=hidden,
            intermediate=vision.positive("intermediate_size"),
            is_gated=True,
            has_biases=False,
            norms_per_layer=4,
            norm_biases=False,
        )
    )
    head_norms = depth * 2 * vision.positive("head_dim", default=72)
    patches = 3 * vision.positive("patch_size") ** 2 * hidden
    positions = 2 * vision.positive("position_embedding_size", default=10240) * hidden
    projection = hidden * text.positive("hidden_size")
    return Encoder(split_parameters=0, whole_parameters=split + whole + head_norms + patches + positions + projection)


def _llama4(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Llama 4's tower, its pixel-shuffle adapter and projector."""
    hidden = vision.positive("hidden_size")
    patch = vision.positive("patch_size", default=14)
    side = vision.positive("image_size", default=336) // patch
    split, whole = _layers(
        _Tower(
            depth=vision.positive("num_hidden_layers"), hidden=hidden, intermediate=vision.positive("intermediate_size")
        )
    )
    ratio = vision.number("pixel_shuffle_ratio", default=0.5) or 0.5
    shuffled = int(hidden / (ratio * ratio))
    inner = vision.positive("projector_input_dim", default=4096)
    out = vision.positive("projector_output_dim", "vision_output_dim", default=4096)
    adapter = shuffled * inner + inner * out
    projector = vision.positive("vision_output_dim", default=4096) * text.positive("hidden_size")
    linear = 3 * patch * patch * hidden
    positions = hidden + (side * side + 1) * hidden + 4 * hidden
    return Encoder(split_parameters=split + adapter + projector + linear, whole_parameters=whole + positions)


def _pixtral(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Pixtral's gated tower, patch merger and two-layer projector."""
    hidden = vision.positive("hidden_size")
    split, whole = _layers(
        _Tower(
            depth=vision.positive("num_hidden_layers", default=24),
            hidden=hidden,
            intermediate=vision.positive("intermediate_size"),
            is_gated=True,
            has_biases=False,
            norm_biases=False,
        )
    )
    out = text.positive("hidden_size")
    patches = 3 * vision.positive("patch_size") ** 2 * hidden + hidden
    merger = 4 * hidden * hidden + hidden
    return Encoder(split_parameters=split + hidden * out + out * out, whole_parameters=whole + patches + merger)


def _muse(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Muse Glimmer's tower: attention split over ranks, everything else whole."""
    hidden, size = vision.positive("hidden_size"), vision.positive("intermediate_size")
    depth = vision.positive("num_hidden_layers")
    split = depth * (4 * hidden * hidden + 3 * hidden)
    blocks = depth * (2 * hidden * size + size + hidden + hidden + 4 * hidden)
    patches = 3 * vision.positive("patch_temporal", default=2) * vision.positive("patch_size") ** 2 * hidden
    positions = vision.positive("pos_emb_height") * vision.positive("pos_emb_width") * hidden + 4 * hidden
    merged = text.positive("out_hidden_size", default=4 * hidden)
    inner = text.positive("projector_hidden_size", default=4096)
    projector = merged * inner + inner * inner + inner * text.positive("hidden_size")
    return Encoder(split_parameters=split, whole_parameters=blocks + patches + positions + projector)


_RULES: Mapping[str, Callable[[ConfigReader, ConfigReader], Encoder]] = {
    "Qwen3VLForConditionalGeneration": _qwen,
    "Qwen3VLMoeForConditionalGeneration": _qwen,
    "Qwen3_5ForConditionalGeneration": _qwen,
    "Qwen3_5MoeForConditionalGeneration": _qwen,
    "Gemma3ForConditionalGeneration": _gemma3,
    "Gemma4ForConditionalGeneration": _gemma4,
    "KimiK25ForConditionalGeneration": _kimi,
    "KimiVLForConditionalGeneration": _kimi,
    "Llama4ForConditionalGeneration": _llama4,
    "Mistral3ForConditionalGeneration": _pixtral,
    "LightOnOCRForConditionalGeneration": _pixtral,
    "MuseGlimmerForConditionalGeneration": _muse,
}
# Config classes that supply a whole tower when the config leaves it out.
_SUPPLIED: Mapping[str, Mapping[str, object]] = {
    "Llama4ForConditionalGeneration": {
        "hidden_size": 768,
        "num_hidden_layers": 34,
        "intermediate_size": 5632,
        "vision_output_dim": 7680,
        "projector_output_dim": 4096,
        "image_size": 448,
    },
}


def parse_encoder(config: Mapping[str, object], name: str) -> Encoder | None:
    """Return the encoder of a multimodal architecture, or None for a text model."""
    vision = config.get("vision_config") or _SUPPLIED.get(name)
    rule = _RULES.get(name)
    if rule is None or not is_mapping(vision):
        return None
    reader = ConfigReader(vision)
    return _with_heads(rule(reader, text_reader(config)), reader, name)


def _with_heads(encoder: Encoder, vision: ConfigReader, name: str) -> Encoder:
    """Add the heads that ranks must divide, or else hold whole (vLLM 0.33 `is_vit_use_data_parallel`)."""
    heads = vision.optional("num_attention_heads", "num_heads", "vt_num_attention_heads")
    if not heads or not encoder.split_parameters:
        return encoder
    return replace(encoder, num_heads=heads, is_whole_where_uneven=name.startswith(("Kimi", "MuseGlimmer")))

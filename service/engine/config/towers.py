"""Vision towers that follow no common shape, beside those of `encoder.py`.

Sources:
    vLLM 0.33 `models/kimi_k3/nvidia/model.py` with `models/kimi_k25_vit.py`,
    `models/minimax_m3/common/vision_tower.py`, `model_executor/models/step_vl.py`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from service.engine.architecture import Encoder
from service.engine.config.reader import ConfigReader, is_mapping, text_reader


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
    )


def _minimax_m3(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return MiniMax M3's tower, its projector, and the network that merges four patches."""
    hidden, size = vision.positive("hidden_size"), vision.positive("intermediate_size")
    depth, out = vision.positive("num_hidden_layers"), text.positive("hidden_size")
    inner = text.positive("projector_hidden_size", default=out)
    stated = ConfigReader(vision.mapping("img_token_compression_config") or {})
    merged = stated.positive("spatial_merge_size", default=2) ** 2 * out
    split = depth * (4 * hidden * hidden + 3 * hidden + 2 * hidden * size + size)
    whole = depth * (4 * hidden + 2 * hidden) + 2 * hidden
    patches = 3 * stated.positive("temporal_patch_size", default=2) * vision.positive("patch_size") ** 2 * hidden
    return Encoder(
        split_parameters=split + (hidden + merged) * inner + 2 * inner + 2 * inner * out,
        whole_parameters=whole + patches + 2 * out,
        num_heads=vision.positive("num_attention_heads"),
    )


def _step(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Step's perception encoder, the two convolutions after it, and the projector."""
    width, depth = vision.positive("width", "hidden_size"), vision.positive("layers", "num_hidden_layers")
    size = int(width * vision.number("mlp_ratio", default=8960 / 1536))
    patch = vision.positive("patch_size")
    side = vision.positive("image_size") // patch
    split = depth * (4 * width * width + 3 * width + 2 * width * size + size)
    whole = depth * (4 * width + 2 * width + 2 * width)
    around = 3 * patch * patch * width + side * side * width + 2 * width
    downsampling = 9 * (2 * width * width + 8 * width * width) + 6 * width
    return Encoder(
        split_parameters=split + 4 * width * text.positive("hidden_size"),
        whole_parameters=whole + around + downsampling,
        num_heads=vision.positive("heads", "num_attention_heads"),
    )


def _gemma3n(_vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return Gemma 3n's image and audio towers, the same in both sizes.

    The printed totals of E4B (7,849,978,192) and E2B (5,439,438,272) leave the same number beside
    their language models, counting the unused key and value projections of layers that share a cache.
    """
    return Encoder(split_parameters=0, whole_parameters=983_281_504)


_RULES: Final[Mapping[str, Callable[[ConfigReader, ConfigReader], Encoder]]] = MappingProxyType(
    {
        "KimiK3ForConditionalGeneration": _kimi_k3,
        "MiniMaxM3SparseForConditionalGeneration": _minimax_m3,
        "Step3p7ForConditionalGeneration": _step,
        "Gemma3nForConditionalGeneration": _gemma3n,
    }
)


def parse_tower(config: Mapping[str, object], name: str) -> Encoder | None:
    """Return the tower of an architecture in this module's table, or None."""
    vision = config.get("vision_config")
    rule = _RULES.get(name)
    if rule is None or not is_mapping(vision):
        return None
    return rule(ConfigReader(vision), text_reader(config))

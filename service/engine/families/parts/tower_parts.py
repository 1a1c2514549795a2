"""What vision towers are built of: layers, projectors and mergers, and how much of each a rank holds.

Sources:
    vLLM 0.33 `model_executor/models/`: siglip.py, clip.py, qwen2_vl.py, vision.py.
"""

from dataclasses import replace

from service.engine.config_reader import ConfigReader, is_list, unknown_kind
from service.engine.layers import Encoder

LEAST_RATIO = 0.0625  # the smallest sensible share of patches kept on a side


def blocks(hidden: int, size: int, *, is_gated: bool = False, has_biases: bool = True) -> tuple[int, int]:
    """Return the parameters of one layer's matrices: split over ranks, and the whole biases after each part."""
    parts = 2 if is_gated else 1
    split = 4 * hidden * hidden + (parts + 1) * hidden * size
    if not has_biases:
        return split, 0
    return split + 3 * hidden + parts * size, 2 * hidden


def perceptron(inputs: int, inner: int, out: int) -> tuple[int, int]:
    """Return a projector of two matrices with biases: split over ranks, and the whole bias at its end."""
    return inputs * inner + inner + inner * out, out


def tower_heads(vision: ConfigReader) -> int:
    """Return the attention heads of a tower."""
    return vision.positive("num_attention_heads", "num_heads", "heads", default=16)


def side_length(vision: ConfigReader, name: str) -> int:
    """Return a length that some configs state once per direction."""
    stated = vision.raw(name)
    if is_list(stated):
        return (vision.integers(name) or (0,))[0]
    return vision.positive(name)


def used_layers(vision: ConfigReader, text: ConfigReader) -> int:
    """Return how many layers are built: those behind the used feature layer are left out."""
    depth, stated = vision.positive("num_hidden_layers"), text.raw("vision_feature_layer")
    if isinstance(stated, int) and stated < 0:
        return max(depth + stated + 1, 1)
    return depth


def siglip(vision: ConfigReader) -> tuple[int, int]:
    """Return SigLIP without its last norm: split over ranks, and whole."""
    hidden, depth = vision.positive("hidden_size"), vision.positive("num_hidden_layers")
    patch = vision.positive("patch_size")
    split, whole = blocks(hidden, vision.positive("intermediate_size"))
    patches = 3 * patch * patch * hidden + hidden + (vision.positive("image_size") // patch) ** 2 * hidden
    return depth * split, depth * (whole + 4 * hidden) + patches


def merging(vision: ConfigReader, hidden: int, out: int, layer: tuple[int, int], last_norm: int) -> Encoder:
    """Return a tower of these layers on patches in time and space, with a merger of four patches."""
    depth = vision.positive("depth")
    merged = vision.positive("spatial_merge_size", default=2) ** 2 * hidden
    merger, bias = perceptron(merged, merged, out)
    patch = vision.positive("patch_size") ** 2 * vision.positive("temporal_patch_size", default=2)
    patches = vision.positive("in_channels", "in_chans", default=3) * patch * hidden
    return Encoder(
        split_parameters=depth * layer[0] + merger,
        whole_parameters=depth * layer[1] + patches + last_norm + bias,
        num_heads=tower_heads(vision),
    )


def merging_side(outer: ConfigReader) -> int:
    """Return how many patches on a side are merged: one over `downsample_ratio`."""
    ratio = outer.number("downsample_ratio", default=0.5)
    if not LEAST_RATIO <= ratio <= 1:
        raise unknown_kind("downsample_ratio", ratio, f"{LEAST_RATIO} to 1")
    return round(1 / ratio)


def vision_part(outer: ConfigReader) -> ConfigReader:
    """Return a reader of the vision tower's part of a config."""
    return ConfigReader(outer.mapping("vision_config") or {})


def audio_part(outer: ConfigReader) -> ConfigReader:
    """Return a reader of the sound tower's part of a config."""
    return ConfigReader(outer.mapping("audio_config") or {})


def qwen25(outer: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return Qwen2.5-VL's tower."""
    vision = vision_part(outer)
    hidden, out = vision.positive("hidden_size", default=1280), vision.positive("out_hidden_size", default=3584)
    size = vision.positive("intermediate_size", default=3420)
    split, whole = blocks(hidden, size, is_gated=True)
    return replace(merging(vision, hidden, out, (split, whole + 2 * hidden), hidden), intermediate_size=size)


def with_whole(encoder: Encoder, parameters: int) -> Encoder:
    """Return a tower with more parameters that no rank splits."""
    return replace(encoder, whole_parameters=encoder.whole_parameters + parameters)

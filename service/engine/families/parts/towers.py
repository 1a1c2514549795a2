"""What towers of multimodal models are built of, and how much of each a rank holds.

Source:
    vLLM 0.33 `model_executor/models/vision.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from service.engine.config_reader import ConfigReader, is_list, is_mapping, unknown_kind
from service.engine.layers import Encoder

TowerRule = Callable[[ConfigReader, ConfigReader], Encoder | None]  # the whole config; its language model's part
VisionRule = Callable[[ConfigReader, ConfigReader], Encoder]  # `vision_config`; the language model's part
LEAST_RATIO = 0.0625  # the smallest sensible share of patches kept on a side


def seen(rule: VisionRule) -> TowerRule:
    """Return the rule of a tower that a config without `vision_config` does not have."""

    def tower(outer: ConfigReader, text: ConfigReader) -> Encoder | None:
        vision = outer.raw("vision_config")
        return rule(ConfigReader(vision), text) if is_mapping(vision) else None

    return tower


def divided(
    rule: VisionRule, *, is_whole_where_uneven: bool = False, supplied: Mapping[str, object] | None = None
) -> TowerRule:
    """Return the rule of a tower whose stated heads ranks must divide, or else hold whole.

    Args:
        rule: reads the tower.
        is_whole_where_uneven: where ranks do not divide the heads, each holds the whole tower.
        supplied: what the config class supplies when the config leaves `vision_config` out.

    Source: vLLM 0.33 `is_vit_use_data_parallel`.
    """

    def tower(outer: ConfigReader, text: ConfigReader) -> Encoder | None:
        vision = outer.raw("vision_config") or supplied
        if not is_mapping(vision):
            return None
        reader = ConfigReader(vision)
        encoder = rule(reader, text)
        heads = reader.optional("num_attention_heads", "num_heads", "vt_num_attention_heads")
        if not heads or not encoder.split_parameters:
            return encoder
        return replace(encoder, num_heads=heads, is_whole_where_uneven=is_whole_where_uneven)

    return tower


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
    """Return a length that some configs state once per direction.

    Raises:
        UnsupportedModelError: a list of no lengths, or with one that is not above 0.
    """
    stated = vision.raw(name)
    if not is_list(stated):
        return vision.positive(name)
    lengths = vision.integers(name) or ()
    if not lengths or min(lengths) <= 0:
        raise unknown_kind(f"vision_config.{name}", stated, "lengths above 0")
    return lengths[0]


def used_layers(depth: int, feature_layer: object) -> int:
    """Return how many layers are built: those behind the deepest used feature layer are left out."""
    if is_list(feature_layer) and feature_layer:
        return max(used_layers(depth, layer) for layer in feature_layer)
    if isinstance(feature_layer, int) and feature_layer < 0:
        return max(depth + feature_layer + 1, 1)
    return depth


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


def with_whole(encoder: Encoder, parameters: int) -> Encoder:
    """Return a tower with more parameters that no rank splits."""
    return replace(encoder, whole_parameters=encoder.whole_parameters + parameters)


def with_split(encoder: Encoder, parameters: int) -> Encoder:
    """Return a tower with more parameters that ranks split."""
    return replace(encoder, split_parameters=encoder.split_parameters + parameters)

"""Towers on patches in time and space whose neighbours a merger joins into one token.

Sources:
    vLLM 0.33 `model_executor/models/`: qwen2_vl.py, qwen2_5_vl.py, qwen3_vl.py.
"""

from dataclasses import replace

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.towers import blocks, perceptron, tower_heads, vision_part
from service.engine.layers import Encoder


def merging(vision: ConfigReader, hidden: int, out: int, layer: tuple[int, int], last_norm: int) -> Encoder:
    """Return a tower of these layers, with a merger of four patches."""
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


def plain_merging(vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return the tower of plain layers, whose norms have a bias."""
    hidden, out = vision.positive("embed_dim", default=1280), vision.positive("hidden_size")
    split, whole = blocks(hidden, int(hidden * vision.number("mlp_ratio", default=4.0)))
    return merging(vision, hidden, out, (split, whole + 4 * hidden), 2 * hidden)


def gated_merging(vision: ConfigReader, default_hidden: int | None = None) -> Encoder:
    """Return the tower of gated layers, whose norms have none; some config classes supply its width."""
    hidden = vision.positive("hidden_size", default=default_hidden)
    out = vision.positive("out_hidden_size", default=3584)
    size = vision.positive("intermediate_size", default=3420)
    split, whole = blocks(hidden, size, is_gated=True)
    return replace(merging(vision, hidden, out, (split, whole + 2 * hidden), hidden), intermediate_size=size)


def gated_merging_tower(outer: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return the tower of gated layers in a whole config, 1,280 wide where it is not stated."""
    return gated_merging(vision_part(outer), default_hidden=1280)


def stacked_merging(vision: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return the tower of plain layers with learnt positions, a merger, and one more for each deep stack."""
    hidden = vision.positive("hidden_size")
    out = vision.positive("out_hidden_size")
    patch = vision.positive("patch_size") ** 2 * vision.positive("temporal_patch_size", default=2)
    patches = vision.positive("in_channels", default=3) * patch * hidden + hidden
    merged = hidden * vision.positive("spatial_merge_size", default=2) ** 2
    deep = len(vision.integers("deepstack_visual_indexes") or ())
    merger, bias = perceptron(merged, merged, out)
    depth = vision.positive("depth")
    split, whole = blocks(hidden, vision.positive("intermediate_size"))
    positions = vision.positive("num_position_embeddings", default=2304) * hidden
    return Encoder(
        split_parameters=depth * split + (1 + deep) * merger,
        whole_parameters=depth * (whole + 4 * hidden)
        + patches
        + positions
        + (2 * hidden + bias)
        + deep * (2 * merged + bias),
    )

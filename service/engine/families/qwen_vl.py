"""Qwen's language models behind towers for images and sound.

Sources:
    vLLM 0.33 `model_executor/models/`: qwen2_vl.py, qwen2_5_vl.py, qwen3_vl.py, qwen3_vl_moe.py, qwen2_audio.py,
    qwen2_5_omni_thinker.py, qwen3_omni_moe_thinker.py, opencua.py.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.family import Family
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.patch_mergers import (
    gated_merging,
    gated_merging_tower,
    plain_merging,
    stacked_merging,
)
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.sound import whisper, whisper_projected
from service.engine.families.parts.towers import (
    audio_part,
    blocks,
    divided,
    perceptron,
    seen,
    tower_heads,
    with_whole,
)
from service.engine.families.parts.wrappers import always, named_inside
from service.engine.families.qwen import UNSHARED
from service.engine.layers import Encoder

IMAGE: Final = Item(tokens=16_384, patches_per_token=4)  # of 16,384 x 28 x 28 pixels
# Of 14 frames, two in a picture: `_MAX_FRAMES_PER_VIDEO` of vLLM 0.33 `models/qwen2_vl.py`.
FRAMES: Final = replace(IMAGE, most_pictures=7)
_VIDEO: Final = replace(IMAGE, unbounded_tokens=153_600)


def _gated(vision: ConfigReader, _text: ConfigReader) -> Encoder:
    return gated_merging(vision)


def _omni_2_5(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower of Qwen2.5-VL, and Whisper's encoder, whole on every rank."""
    thinker = _thinker(outer)
    audio = audio_part(thinker)
    width, out = audio.positive("d_model"), audio.positive("output_dim", default=3584)
    return with_whole(gated_merging_tower(thinker, text), whisper(audio) + 2 * out + width * out + out)


def _omni_3(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower of Qwen3-VL, and a sound encoder split over ranks where its heads divide."""
    thinker = _thinker(outer)
    vision = thinker.mapping("vision_config")
    if not vision:
        raise unknown_kind("thinker_config.vision_config", None, "the tower's sizes")
    tower = stacked_merging(ConfigReader(vision), text)
    return replace(tower, num_heads=tower_heads(ConfigReader(vision)), beside=_sound(audio_part(thinker)))


def _sound(audio: ConfigReader) -> Encoder:
    """Return three convolutions over the bands, layers, and a projector of two matrices."""
    width, out = audio.positive("d_model"), audio.positive("output_dim", default=3584)
    depth, channels = audio.positive("encoder_layers"), audio.positive("downsample_hidden_size", default=480)
    split, whole = blocks(width, audio.positive("encoder_ffn_dim"))
    bands = audio.positive("num_mel_bins")
    for _ in range(3):
        bands = (bands + 1) // 2
    convolutions = 9 * channels + channels + 2 * (9 * channels * channels + channels) + channels * bands * width
    return Encoder(
        split_parameters=depth * split,
        whole_parameters=depth * (whole + 4 * width) + convolutions + 2 * width + sum(perceptron(width, width, out)),
        num_heads=audio.positive("encoder_attention_heads"),
        is_whole_where_uneven=True,
    )


def _thinker(outer: ConfigReader) -> ConfigReader:
    return ConfigReader(outer.mapping("thinker_config") or outer.values())


FAMILIES: Final = (
    Family(
        classes=("Qwen2VLForConditionalGeneration",),
        wraps=always("Qwen2ForCausalLM"),
        tower=seen(plain_merging),
        largest_item=FRAMES,
    ),
    Family(
        classes=("Qwen2_5_VLForConditionalGeneration",),
        wraps=always("Qwen2ForCausalLM"),
        tower=seen(_gated),
        largest_item=replace(FRAMES, is_gated=True),
    ),
    Family(
        classes=("Qwen3VLForConditionalGeneration",),
        attention=full_only,
        head_norms=on_heads,
        tower=divided(stacked_merging),
        largest_item=_VIDEO,
    ),
    Family(
        classes=("Qwen3VLMoeForConditionalGeneration",),
        attention=full_only,
        feed_forward=UNSHARED,
        head_norms=on_heads,
        tower=divided(stacked_merging),
        largest_item=_VIDEO,
    ),
    Family(
        classes=("Qwen2AudioForConditionalGeneration",),
        wraps=always("Qwen2ForCausalLM"),
        tower=whisper_projected,
    ),
    Family(
        classes=("Qwen2_5OmniModel", "Qwen2_5OmniForConditionalGeneration"),
        wraps=always("Qwen2ForCausalLM"),
        tower=_omni_2_5,
    ),
    Family(
        classes=("Qwen3OmniMoeForConditionalGeneration",),
        wraps=always("Qwen3MoeForCausalLM"),
        tower=_omni_3,
    ),
    # Another publisher's, with the tower of Qwen2.5-VL.
    Family(classes=("OpenCUAForConditionalGeneration",), wraps=named_inside, tower=gated_merging_tower),
)

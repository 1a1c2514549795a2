"""Towers for sound, alone or beside one for images.

Sources:
    vLLM 0.33 `model_executor/models/`: whisper.py, qwen2_audio.py, ultravox.py, qwen2_5_omni_thinker.py,
    qwen3_omni_moe_thinker.py, phi4mm_audio.py with phi4mm_utils.py.
"""

from dataclasses import replace

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.encoder import parse_encoder
from service.engine.families.parts.tower_parts import audio_part, blocks, perceptron, qwen25, tower_heads, with_whole
from service.engine.layers import Encoder

WIDTH_NAMES = ("d_model", "hidden_size")


def whisper(audio: ConfigReader) -> int:
    """Return Whisper's encoder without positions: two convolutions, layers without key bias, a norm."""
    width, size = audio.positive(*WIDTH_NAMES), audio.positive("encoder_ffn_dim", "intermediate_size")
    split, whole = blocks(width, size)
    layers = audio.positive("encoder_layers", "num_hidden_layers") * (split - width + whole + 4 * width)
    return 3 * audio.positive("num_mel_bins") * width + width + 3 * width * width + width + layers + 2 * width


def qwen_audio(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Whisper's encoder with positions and one projection, whole on every rank."""
    audio, out = audio_part(outer), text.positive("hidden_size")
    width = audio.positive("d_model")
    positions = audio.positive("max_source_positions", default=1500) * width
    return Encoder(split_parameters=0, whole_parameters=whisper(audio) + positions + width * out + out)


def audio_flamingo(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Whisper's encoder with positions and a projector of two matrices, whole on every rank."""
    audio, out = audio_part(outer), text.positive("hidden_size")
    width = audio.positive(*WIDTH_NAMES)
    positions = audio.positive("max_source_positions", default=1500) * width
    return Encoder(split_parameters=0, whole_parameters=whisper(audio) + positions + sum(perceptron(width, out, out)))


def qwen25_omni(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Qwen2.5-VL's tower, and Whisper's encoder, whole on every rank."""
    thinker = _thinker(outer)
    audio = audio_part(thinker)
    width, out = audio.positive("d_model"), audio.positive("output_dim", default=3584)
    return with_whole(qwen25(thinker, text), whisper(audio) + 2 * out + width * out + out)


def qwen3_omni(outer: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return Qwen3-VL's tower, and a sound encoder split over ranks where its heads divide."""
    thinker = _thinker(outer)
    vision = {"vision_config": thinker.mapping("vision_config") or {}}
    tower = parse_encoder(vision, "Qwen3VLMoeForConditionalGeneration")
    if tower is None:
        raise unknown_kind("thinker_config.vision_config", None, "the tower's sizes")
    audio = audio_part(thinker)
    width, out = audio.positive("d_model"), audio.positive("output_dim", default=3584)
    depth, channels = audio.positive("encoder_layers"), audio.positive("downsample_hidden_size", default=480)
    split, whole = blocks(width, audio.positive("encoder_ffn_dim"))
    bands = audio.positive("num_mel_bins")
    for _ in range(3):
        bands = (bands + 1) // 2
    convolutions = 9 * channels + channels + 2 * (9 * channels * channels + channels) + channels * bands * width
    sound = Encoder(
        split_parameters=depth * split,
        whole_parameters=depth * (whole + 4 * width) + convolutions + 2 * width + sum(perceptron(width, width, out)),
        num_heads=audio.positive("encoder_attention_heads"),
        is_whole_where_uneven=True,
    )
    return replace(tower, num_heads=tower_heads(ConfigReader(vision["vision_config"])), beside=sound)


def _thinker(outer: ConfigReader) -> ConfigReader:
    return ConfigReader(outer.mapping("thinker_config") or outer.values())


def ultravox(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Whisper's encoder with positions, split over ranks, and a gated projector of stacked frames."""
    audio, out = audio_part(outer), text.positive("hidden_size")
    width, depth = audio.positive("d_model"), audio.positive("encoder_layers")
    split, whole = blocks(width, audio.positive("encoder_ffn_dim"))
    around = whisper(audio) - depth * (split - width + whole + 4 * width)
    inner, stacked = outer.positive("hidden_size", default=4096), outer.positive("stack_factor", default=8) * width
    middle = inner // 2 if outer.text("projector_act", default="swiglu") == "swiglu" else inner
    norm = middle if outer.flag("projector_ln_mid") else out
    return Encoder(
        split_parameters=depth * split,
        whole_parameters=around
        + depth * (whole + 4 * width)
        + audio.positive("max_source_positions", default=1500) * width
        + (stacked + stacked * inner + middle * out + norm),
        num_heads=audio.positive("encoder_attention_heads"),
    )


def gemma4_sound(sound: ConfigReader, text: ConfigReader) -> int:
    """Return the parameters of Gemma 4's conformer and of its projection to the language model, on every rank.

    parameters = convolutions + layers x (24 w^2 + (9 + kernel) w + w / heads) + (w + 1) out + out x hidden

    Source: vLLM 0.33 `model_executor/models/gemma4_mm.py` (`audio_tower`, `embed_audio`), transformers 5.20
    `models/gemma4/modeling_gemma4.py` (`Gemma4AudioModel`).
    """
    width, depth = sound.positive("hidden_size", default=1024), sound.positive("num_hidden_layers", default=12)
    kernel, heads = sound.positive("conv_kernel_size", default=5), sound.positive("num_attention_heads", default=8)
    first, second = sound.integers("subsampling_conv_channels") or (128, 32)
    convolutions = (9 * first + first) + (9 * first * second + second) + first // 4 * second * width
    layer = 24 * width * width + (9 + kernel) * width + width // heads
    out = sound.positive("output_proj_dims", default=1536)
    return convolutions + depth * layer + (width + 1) * out + out * text.positive("hidden_size")


def conformer(sound: ConfigReader, width: int) -> int:
    """Return the conformer's parameters (vLLM 0.33 `phi4mm_audio.py`, `phi4mm_utils.py`)."""
    size, heads = sound.positive("linear_units", default=1536), sound.positive("attention_heads", default=16)
    bands, kernel = sound.positive("input_size", default=80), sound.positive("kernel_size", default=3)
    feed_forward = 2 * width + width * 2 * size + 2 * size + size * width + width
    attention = 4 * (width * width + width)
    convolution = (
        2 * width  # norm
        + 2 * width  # two biases of the gate
        + 2 * (width * width + width)
        + (width * width + width)
        + (kernel * width + width)
        + (width * width + width)
    )
    layers = sound.positive("num_blocks", default=24) * (2 * feed_forward + attention + convolution + 4 * width)
    depthwise = 3 * (9 * width + width) + 2 * (width * width + width)
    reduced = bands // sound.positive("time_reduction", default=8)
    embedding = depthwise + width * reduced * width + width + 2 * bands
    positions = _distances(sound) * heads
    return layers + embedding + positions


def _distances(sound: ConfigReader) -> int:
    """Return the relative distances with a bias of their own, in either direction."""
    stated = ConfigReader(sound.mapping("relative_attention_bias_args") or {})
    return 2 * stated.positive("t5_bias_max_distance", default=500)

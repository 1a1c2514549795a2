"""Whisper's encoder, as towers for sound are built on it.

Sources:
    vLLM 0.33 `model_executor/models/whisper.py`, `qwen2_audio.py`.
"""

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.towers import audio_part, blocks, perceptron
from service.engine.layers import Encoder

WIDTH_NAMES = ("d_model", "hidden_size")


def whisper(audio: ConfigReader) -> int:
    """Return Whisper's encoder without positions: two convolutions, layers without key bias, a norm."""
    width, size = audio.positive(*WIDTH_NAMES), audio.positive("encoder_ffn_dim", "intermediate_size")
    split, whole = blocks(width, size)
    layers = audio.positive("encoder_layers", "num_hidden_layers") * (split - width + whole + 4 * width)
    return 3 * audio.positive("num_mel_bins") * width + width + 3 * width * width + width + layers + 2 * width


def whisper_positions(audio: ConfigReader, width: int) -> int:
    """Return the table of positions."""
    return audio.positive("max_source_positions", default=1500) * width


def whisper_projected(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Whisper's encoder with positions and one projection, whole on every rank."""
    audio, out = audio_part(outer), text.positive("hidden_size")
    width = audio.positive("d_model")
    projection = width * out + out
    return Encoder(split_parameters=0, whole_parameters=whisper(audio) + whisper_positions(audio, width) + projection)


def whisper_perceptron(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Whisper's encoder with positions and a projector of two matrices, whole on every rank."""
    audio, out = audio_part(outer), text.positive("hidden_size")
    width = audio.positive(*WIDTH_NAMES)
    projector = sum(perceptron(width, out, out))
    return Encoder(split_parameters=0, whole_parameters=whisper(audio) + whisper_positions(audio, width) + projector)

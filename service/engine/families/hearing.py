"""Language models of any family that hear: Ultravox, Audio Flamingo 3, Voxtral.

Sources:
    vLLM 0.33 `model_executor/models/ultravox.py`, `audioflamingo3.py`, `voxtral.py`, `kimi_audio.py`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.family import Family
from service.engine.families.parts.sound import WIDTH_NAMES, whisper, whisper_perceptron, whisper_positions
from service.engine.families.parts.towers import audio_part, blocks
from service.engine.families.parts.wrappers import always, named_inside
from service.engine.layers import Encoder

WHISPER_LARGE: Final[Mapping[str, object]] = MappingProxyType({
    "d_model": 1280, "encoder_layers": 32, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120, "num_mel_bins": 128,
})  # fmt: skip
STACKED_FRAMES: Final = 4  # of Voxtral, where the config does not say


def _ultravox(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Whisper's encoder with positions, split over ranks, and a gated projector of stacked frames."""
    audio = audio_part(outer)
    return _split(audio, _projector(outer, audio.positive(*WIDTH_NAMES), text.positive("hidden_size")))


def _voxtral(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the same encoder, and a plain projector of stacked frames."""
    audio, out = audio_part(outer), text.positive("hidden_size")
    stacked = audio.positive("downsample_factor", default=STACKED_FRAMES) * audio.positive(*WIDTH_NAMES)
    return _split(audio, stacked * out + out * out)


def _kimi(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Whisper's large encoder, whose config lies in a folder of its own, and a projector of two matrices.

    Layers and a head that answer in sound are not loaded: the engine hears alone.
    """
    out, stacked = text.positive("hidden_size"), outer.positive("kimia_adaptor_input_dim", default=5120)
    return _split(ConfigReader(WHISPER_LARGE), stacked * out + out + out * out + out + 2 * out)


def _split(audio: ConfigReader, projector: int) -> Encoder:
    """Return Whisper's encoder with positions, split over ranks, and a projector of so many parameters."""
    width, depth = audio.positive(*WIDTH_NAMES), audio.positive("encoder_layers", "num_hidden_layers")
    split, whole = blocks(width, audio.positive("encoder_ffn_dim", "intermediate_size"))
    around = whisper(audio) - depth * (split - width + whole + 4 * width) + whisper_positions(audio, width)
    return Encoder(
        split_parameters=depth * split,
        whole_parameters=around + depth * (whole + 4 * width) + projector,
        num_heads=audio.positive("encoder_attention_heads", "num_attention_heads"),
    )


def _projector(outer: ConfigReader, width: int, out: int) -> int:
    inner, stacked = outer.positive("hidden_size", default=4096), outer.positive("stack_factor", default=8) * width
    middle = inner // 2 if outer.text("projector_act", default="swiglu") == "swiglu" else inner
    norm = middle if outer.flag("projector_ln_mid") else out
    return stacked + stacked * inner + middle * out + norm


FAMILIES: Final = (
    Family(classes=("MoonshotKimiaForCausalLM",), wraps=always("Qwen2ForCausalLM"), tower=_kimi),
    Family(classes=("UltravoxModel",), wraps=named_inside, tower=_ultravox),
    Family(
        classes=("AudioFlamingo3ForConditionalGeneration",),
        wraps=always("Qwen2ForCausalLM"),
        tower=whisper_perceptron,
    ),
    Family(
        classes=("VoxtralForConditionalGeneration",),
        wraps=always("LlamaForCausalLM"),
        tower=_voxtral,
    ),
)

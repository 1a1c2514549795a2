"""MiniCPM, and its multimodal classes around language models of several families.

Sources:
    vLLM 0.33 `model_executor/models/`: minicpm.py, minicpm3.py, minicpmv.py, minicpmo.py, minicpmv4_6.py,
    minicpmv4_7.py, minicpm_ocr.py.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import Mixers, full_only, repeated
from service.engine.families.parts.family import Family, LanguageModels, WrapRule
from service.engine.families.parts.latent import latent_attention
from service.engine.families.parts.siglip import siglip_tower
from service.engine.families.parts.sound import whisper, whisper_positions
from service.engine.families.parts.towers import audio_part, perceptron, vision_part, with_split, with_whole
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder

# The language model follows from the version that the config states.
VERSIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MiniCPMV 2.0": "MiniCPMForCausalLM",
        "MiniCPMV 2.5": "LlamaForCausalLM",
        "MiniCPMV 2.6": "Qwen2ForCausalLM",
        "MiniCPMV 4.0": "LlamaForCausalLM",
        "MiniCPMV 4.5": "Qwen3ForCausalLM",
        "MiniCPMO 2.6": "Qwen2ForCausalLM",
    }
)
RESAMPLED_QUERIES: Final = 64


def _inside(line: str) -> WrapRule:
    """Return the rule of one of the two lines, for images or for sound as well."""

    def rule(config: Mapping[str, object], _known: LanguageModels) -> str:
        version = f"{line} {float(ConfigReader(config).number('version', default=2.6))}"
        if version not in VERSIONS:
            raise unknown_kind("version", version, ", ".join(VERSIONS))
        return VERSIONS[version]

    return rule


def _keeping_heads(reader: ConfigReader) -> Mixers:
    """Return latent attention that keeps every head's key and value."""
    return repeated(reader, replace(latent_attention(reader), keeps_heads=True))


def _resampled(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP and a resampler: learnt queries that attend to the patches, whole on every rank."""
    vision = vision_part(outer)
    out, hidden = text.positive("hidden_size"), vision.positive("hidden_size")
    _check_layers(outer)
    queries = outer.positive("query_num", default=RESAMPLED_QUERIES)
    attention = 4 * out * out + 4 * out
    resampler = queries * out + out * out + (hidden * out if hidden != out else 0) + attention + 6 * out
    return with_whole(siglip_tower(vision), resampler)


def _with_sound(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the same tower, Whisper's encoder and a projector for sound, both whole."""
    audio, out = audio_part(outer), text.positive("hidden_size")
    width = audio.positive("d_model")
    sound = whisper(audio) + whisper_positions(audio, width)
    return with_whole(_resampled(outer, text), sound + sum(perceptron(width, out, out)))


def _check_layers(outer: ConfigReader) -> None:
    """Raise UnsupportedModelError where the engine leaves the tower's last layer out."""
    if outer.flag("drop_vision_last_layer"):
        raise unknown_kind("drop_vision_last_layer", True, "false: the tower is sized with all its layers")


def _merged_where_whole(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower of 4.6, whose last layer a config may leave out."""
    _check_layers(outer)
    return _merged(outer, text)


def _merged(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP, a merger of windows inside it (only its attention is split), and a merger of patches after it."""
    vision, out = vision_part(outer), text.positive("hidden_size")
    hidden, size = vision.positive("hidden_size"), vision.positive("intermediate_size")
    merged = 4 * hidden
    windows = 2 * hidden + 2 * merged + sum(perceptron(merged, 4 * size, hidden)) + hidden
    patches = 2 * merged + sum(perceptron(merged, merged, out))
    return with_split(with_whole(siglip_tower(vision), windows + patches), 4 * hidden * hidden + 3 * hidden)


FAMILIES: Final = (
    Family(classes=("MiniCPMForCausalLM",), attention=full_only),
    Family(classes=("MiniCPM3ForCausalLM",), attention=_keeping_heads),
    Family(classes=("MiniCPMV",), wraps=_inside("MiniCPMV"), tower=_resampled),
    Family(classes=("MiniCPMO",), wraps=_inside("MiniCPMO"), tower=_with_sound),
    Family(classes=("MiniCPMV4_6ForConditionalGeneration",), wraps=named_inside, tower=_merged_where_whole),
    Family(
        classes=("MiniCPMV4_7ForConditionalGeneration", "MiniCPMOcrForConditionalGeneration"),
        wraps=named_inside,
        tower=_merged,
    ),
)

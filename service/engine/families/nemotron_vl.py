"""Nemotron-H behind RADIO, and behind Parakeet where it hears.

Sources:
    vLLM 0.33 `model_executor/models/radio.py`, `parakeet.py` with `nano_nemotron_vl.py`; `transformers_utils/configs/`
    `radio.py`, `parakeet.py`; transformers 5.24 `models/parakeet/modeling_parakeet.py`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping, unknown_kind
from service.engine.families.parts.family import Family
from service.engine.families.parts.towers import merging_side, vision_part
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder

# Width, layers, heads and feed-forward columns by the name of the transformer.
RADIO_SIZES: Final[Mapping[str, tuple[int, int, int, int]]] = MappingProxyType(
    {
        "vit_small_patch16_224": (384, 12, 6, 1536),
        "vit_base_patch16_224": (768, 12, 12, 3072),
        "vit_large_patch16_224": (1024, 24, 16, 4096),
        "vit_huge_patch16_224": (1280, 32, 16, 5120),
        "vit_so400m_patch16_224": (1152, 27, 16, 4304),
    }
)


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return RADIO with its positions for the largest image, and what no rank splits: a projector, and Parakeet."""
    vision = vision_part(outer)
    stated = ConfigReader(vision.mapping("args") or {})
    name = stated.text("model")
    if name not in RADIO_SIZES:
        raise unknown_kind("vision_config.args.model", name, ", ".join(RADIO_SIZES))
    hidden, layers, heads, size = RADIO_SIZES[name]
    return Encoder(
        split_parameters=layers * (2 * hidden * size + size),
        whole_parameters=layers * 8 * hidden
        + _around(vision, stated, hidden)
        + _projector(outer, text, hidden)
        + _sound(outer, text),
        beside=Encoder(
            split_parameters=layers * (4 * hidden * hidden + 3 * hidden),
            whole_parameters=0,
            num_heads=heads,
            is_whole_where_uneven=True,
        ),
    )


def _around(vision: ConfigReader, stated: ConfigReader, hidden: int) -> int:
    """Return patches of images and of video, positions and class tokens."""
    patch = vision.positive("patch_size", default=16)
    frames = vision.positive("video_temporal_patch_size", default=1)
    patches = 3 * patch * patch * hidden * (1 + (frames if frames > 1 else 0))
    positions = round(stated.positive("cpe_max_size", default=2048) / patch) ** 2 * hidden
    return patches + positions + _class_tokens(stated) * hidden


def _projector(outer: ConfigReader, text: ConfigReader, hidden: int) -> int:
    merged = hidden * merging_side(outer) ** 2
    inner = outer.positive("projector_hidden_size")
    last = 2 * hidden if text.integer("num_nextn_predict_layers", default=0) else 0
    return merged + merged * inner + inner * text.positive("hidden_size") + last


def _sound(outer: ConfigReader, text: ConfigReader) -> int:
    """Return Parakeet, whose attention and networks have no biases here, and a projector; 0 where none is stated."""
    stated = outer.mapping("sound_config")
    if not stated:
        return 0
    sound, out = ConfigReader(stated), text.positive("hidden_size")
    width, inner = sound.positive("hidden_size"), sound.positive("projection_hidden_size")
    projector = width + width * inner + inner * out + (inner + out if sound.flag("projection_bias") else 0)
    return sound.positive("num_hidden_layers") * _conformer(sound, width) + _subsampling(sound, width) + projector


def _conformer(sound: ConfigReader, width: int) -> int:
    """Return one layer: two networks, attention with distances, a gated convolution, and a norm before and after each.

    The convolution's own norm keeps its means in buffers.
    """
    networks = 2 * 2 * width * sound.positive("intermediate_size")
    attention = 5 * width * width + 2 * width
    kernel = sound.positive("conv_kernel_size", default=9)
    biases = 4 * width if sound.flag("convolution_bias", default=True) else 0
    return networks + attention + 3 * width * width + kernel * width + 2 * width + biases + 5 * 2 * width


def _subsampling(sound: ConfigReader, width: int) -> int:
    """Return convolutions that each halve frames and bands, the first of one channel, and a projection with a bias."""
    channels = sound.positive("subsampling_conv_channels", default=256)
    kernel, factor = sound.positive("subsampling_conv_kernel_size", default=3), sound.positive("subsampling_factor")
    depthwise = (kernel * kernel + 1) * channels
    further = (factor.bit_length() - 2) * (depthwise + (channels + 1) * channels)
    return depthwise + further + (channels * (sound.positive("num_mel_bins", default=80) // factor) + 1) * width


def _class_tokens(stated: ConfigReader) -> int:
    """Return RADIO's class tokens, one or one per teacher, with registers up to a whole multiple."""
    teachers = stated.raw("teachers")
    names = {str(teacher.get("name")) for teacher in teachers if is_mapping(teacher)} if is_list(teachers) else set()
    tokens = len(names) if stated.flag("cls_token_per_teacher") else 1
    if (registers := stated.integer("num_registers", default=0)) > 0:
        return tokens + registers
    multiple = stated.integer("register_multiple", default=0)
    return tokens + (multiple - tokens % multiple if multiple else 0)


FAMILIES: Final = (
    Family(
        classes=(
            "NemotronH_Nano_VL_V2",
            "NemotronH_Nano_Omni_Reasoning_V3",
            "NemotronH_Super_Omni_Reasoning_V3",
            "NemotronH_Omni_Reasoning_V3",
        ),
        wraps=always("NemotronHForCausalLM"),
        tower=_tower,
        has_stages=False,
    ),
)

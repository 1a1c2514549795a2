"""Phi 1 to 4, with experts and behind towers.

Sources:
    vLLM 0.33 `model_executor/models/`: phi3.py, phimoe.py, phi3v.py, phi4mm.py, phi4mm_audio.py,
    phi4mm_utils.py, phi4siglip.py with lfm2_siglip2.py.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import full_only, windowed_as_stated
from service.engine.families.parts.biases import everywhere_unless
from service.engine.families.parts.clip import LARGE_HEADS, LARGE_HIDDEN, LARGE_PATCH, clip_large
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.rotary import rotating
from service.engine.families.parts.siglip import siglip, siglip_tower
from service.engine.families.parts.towers import perceptron, tower_heads, vision_part, with_whole
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder

SIGLIP_2: Final[Mapping[str, object]] = MappingProxyType({
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
    "num_patches": 256, "patch_size": 16,
})  # fmt: skip
TABLE_ROWS: Final = 64  # embeddings are padded to a multiple of this
CLIP_IMAGE: Final = 336  # on a side [pixels]
CLIP_LAYERS: Final = 23  # but for the last
SIGLIP_HIDDEN: Final = 1152
SIGLIP_LAYERS: Final = 26  # but for the last


def _third_tower(_outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return CLIP's published large tower but for its last layer and norm, two learnt separators and the projector.

    The engine also keeps a second table of embeddings beside the tower.
    """
    split, whole = clip_large(side=CLIP_IMAGE // LARGE_PATCH, layers=CLIP_LAYERS)
    merged, out = 4 * LARGE_HIDDEN, text.positive("hidden_size")
    table = -(-text.positive("vocab_size") // TABLE_ROWS) * TABLE_ROWS * out
    return Encoder(
        split_parameters=split + table,
        whole_parameters=whole + 2 * merged + sum(perceptron(merged, out, out)),
        num_heads=LARGE_HEADS,
    )


def _fourth_towers(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return a fixed SigLIP but for its last layer and norm, and a conformer for sound, whole.

    Vision adapters come as adapters at run time; their bytes are not among these.
    """
    out = text.positive("hidden_size")
    image = ConfigReader(
        {
            "hidden_size": SIGLIP_HIDDEN,
            "intermediate_size": 4304,
            "num_hidden_layers": SIGLIP_LAYERS + 1,
            "num_attention_heads": 16,
            "patch_size": 14,
            "image_size": 448,
        }
    )
    tower = siglip_tower(image, has_last_norm=False, layers=SIGLIP_LAYERS)
    separators = 2 * SIGLIP_HIDDEN
    sound = ConfigReader(ConfigReader(outer.mapping("audio_processor") or {}).mapping("config") or {})
    width = sound.positive("attention_dim", default=1024)
    projectors = sum(perceptron(SIGLIP_HIDDEN, out, out)) + 2 * sum(perceptron(width, out, out))
    return with_whole(tower, separators + projectors + _conformer(sound, width))


def _fourth_tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP 2 for images of any shape, but for its last layer and norm, and the projector.

    Fields that a config leaves out have the values of transformers' `Siglip2VisionConfig`.
    """
    vision = ConfigReader({**SIGLIP_2, **vision_part(outer).values()})
    layers, positions = vision.positive("num_hidden_layers") - 1, vision.positive("num_patches")
    split, whole = siglip(vision, positions=positions).parameters(layers=layers, has_last_norm=False)
    out = text.positive("hidden_size")
    projector, bias = perceptron(outer.positive("mm_hidden_size"), out, out)
    return Encoder(split_parameters=split + projector, whole_parameters=whole + bias, num_heads=tower_heads(vision))


def _conformer(sound: ConfigReader, width: int) -> int:
    """Return the conformer's parameters."""
    size, heads = sound.positive("linear_units", default=1536), sound.positive("attention_heads", default=16)
    bands, kernel = sound.positive("input_size", default=80), sound.positive("kernel_size", default=3)
    square = width * width + width
    feed_forward = 2 * width + width * 2 * size + 2 * size + size * width + width
    convolution = (
        2 * width  # norm
        + 2 * width  # two biases of the gate
        + 4 * square
        + (kernel * width + width)
    )
    layers = sound.positive("num_blocks", default=24) * (2 * feed_forward + 4 * square + convolution + 4 * width)
    depthwise = 3 * (9 * width + width) + 2 * square
    reduced = bands // sound.positive("time_reduction", default=8)
    embedding = depthwise + width * reduced * width + width + 2 * bands
    return layers + embedding + _distances(sound) * heads


def _distances(sound: ConfigReader) -> int:
    """Return the relative distances with a bias of their own, in either direction."""
    stated = ConfigReader(sound.mapping("relative_attention_bias_args") or {})
    return 2 * stated.positive("t5_bias_max_distance", default=500)


FAMILIES: Final = (
    Family(
        classes=("PhiForCausalLM",),
        model_types=("phi",),
        attention=full_only,
        feed_forward=FeedForward(is_gated=False, dense=Dense(biased_unless="enable_bias")),
        biases=everywhere_unless("attention_bias"),
        norms_per_layer=1,
        has_norm_biases=True,
        rotary=rotating(0.5),
        has_head_bias=True,  # registered when a checkpoint is loaded (`transformers/causal.py`, `load_weights`)
    ),
    Family(classes=("Phi3ForCausalLM",), model_types=("phi3",), attention=windowed_as_stated),
    Family(
        classes=("PhiMoEForCausalLM",),
        attention=windowed_as_stated,
        feed_forward=FeedForward(experts=Experts(has_own_routing=True)),
        has_norm_biases=True,
    ),
    Family(classes=("Phi3VForCausalLM",), wraps=always("LlamaForCausalLM"), tower=_third_tower),
    Family(classes=("Phi4MMForCausalLM",), wraps=always("Phi3ForCausalLM"), tower=_fourth_towers, has_stages=False),
    Family(classes=("Phi4ForCausalLMV",), wraps=always("Phi3ForCausalLM"), tower=_fourth_tower),
)

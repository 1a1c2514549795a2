"""Gemma 1 to 3, and Rnj 1, which took after the third: tied embeddings, and from the second on windows in most layers.

Sources:
    vLLM 0.33 `model_executor/models/`: gemma.py, gemma2.py, gemma3.py, gemma3_mm.py, rnj1.py.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import (
    Mixers,
    alone,
    base_attention,
    by_layer_types,
    full_only,
    not_stated,
    patterned,
)
from service.engine.families.parts.family import Family, whatever_stated
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.rotary import with_plain
from service.engine.families.parts.siglip import so400m
from service.engine.families.parts.towers import divided
from service.engine.layers import Encoder


def _tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP and the projection into the language model."""
    side = vision.positive("image_size", default=896) // vision.positive("patch_size", default=14)
    split, whole = so400m(vision, side * side).parameters()
    hidden = vision.positive("hidden_size", default=1152)
    projection = hidden * text.positive("hidden_size") + hidden
    return Encoder(split_parameters=split, whole_parameters=whole + projection)


def _in_chunks(reader: ConfigReader) -> Mixers:
    """Return a window in the layers that look back one chunk, full attention in the others."""
    kinds = reader.strings("layer_types")
    if kinds is None:
        raise not_stated("layer_types", "full_attention or chunked_attention per layer", every_layer=False)
    named = tuple("sliding_attention" if kind == "chunked_attention" else kind for kind in kinds)
    window = reader.positive("sliding_window") if "sliding_attention" in named else 0
    return alone(by_layer_types(reader, base_attention(reader), named, window))


_GEMMA3: Final = Family(
    classes=("Gemma3ForCausalLM",),
    model_types=("gemma3_text",),
    attention=patterned(6, 4096),
    unscaled_type="gemma3",  # of Gemma 3n as well (vLLM 0.33 `config/model.py`)
    head_norms=on_heads,
    norms_per_layer=4,
    ties_embeddings=True,
    rotary=with_plain,
    runs_in_float16=False,
)
FAMILIES: Final = (
    Family(classes=("GemmaForCausalLM",), model_types=("gemma",), attention=full_only, ties_embeddings=True),
    Family(
        classes=("Gemma2ForCausalLM",),
        model_types=("gemma2",),
        attention=patterned(2, 4096),
        norms_per_layer=4,
        ties_embeddings=True,
        runs_in_float16=False,
    ),
    Family(classes=("VaultGemmaForCausalLM",), attention=patterned(2, 4096), ties_embeddings=True),
    _GEMMA3,
    Family(
        classes=("Rnj1ForCausalLM",),
        attention=_in_chunks,
        head_norms=on_heads,
        norms_per_layer=4,
        ties_embeddings=True,
    ),
    replace(
        _GEMMA3,
        classes=("Gemma3ForConditionalGeneration",),
        model_types=(),
        tower=divided(_tower),
        largest_item=Item(tokens=260, patches_per_token=16),  # with four marks around it
        sees_images_both_ways=whatever_stated,
    ),
)

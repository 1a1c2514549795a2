"""InternVL and the multimodal models built on its tower or its way of merging patches.

Sources:
    vLLM 0.33 `model_executor/models/`: internvl.py, interns1.py, nvlm_d.py, h2ovl.py, skyworkr1v.py, qianfan_ocr.py,
    eagle2_5_vl.py.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.family import Family
from service.engine.families.parts.intern_vit import divided_attention, shuffled, whole_attention
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.siglip import siglip_tower
from service.engine.families.parts.towers import perceptron, seen, vision_part, with_whole
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder

NVLM_EXTRA_HEADS: Final = 7  # empty ones, so that 32 divide over ranks


def _merged(outer: ConfigReader, text: ConfigReader) -> int:
    """Return a norm with two matrices over merged patches."""
    merged, out = shuffled(outer), text.positive("hidden_size")
    return 2 * merged + sum(perceptron(merged, out, out))


def _chat(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return InternViT and a projector over merged patches."""
    projector = _merged(outer, text)
    return with_whole(divided_attention(outer), projector)


def _nvlm(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return InternViT with empty heads, and a projector as wide as the language model's feed-forward part."""
    merged, inner = shuffled(outer), text.positive("intermediate_size")
    projector = 2 * merged + merged * inner + inner * text.positive("hidden_size")
    return with_whole(divided_attention(outer, extra_heads=NVLM_EXTRA_HEADS), projector)


def _eagle(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP and a projector over merged patches."""
    projector = _merged(outer, text)
    return with_whole(siglip_tower(vision_part(outer)), projector)


FAMILIES: Final = (
    Family(
        classes=("InternVLForConditionalGeneration",),
        wraps=named_inside,
        tower=seen(whole_attention),
        largest_item=Item(tokens=3_328, patches_per_token=4),  # twelve tiles and a thumbnail
    ),
    Family(classes=("InternS1ForConditionalGeneration",), wraps=named_inside, tower=seen(whole_attention)),
    Family(
        classes=("InternVLChatModel", "SkyworkR1VChatModel", "H2OVLChatModel", "QianfanOCRForConditionalGeneration"),
        wraps=named_inside,
        tower=_chat,
    ),
    Family(classes=("NVLM_D",), wraps=named_inside, tower=_nvlm),
    Family(classes=("Eagle2_5_VLForConditionalGeneration",), wraps=named_inside, tower=_eagle),
)

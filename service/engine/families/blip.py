"""BLIP-2: a language model behind a vision transformer that learnt queries read.

Sources:
    vLLM 0.33 `model_executor/models/blip2.py`, `blip.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.family import Family
from service.engine.families.parts.qformer import query_transformer
from service.engine.families.parts.towers import blocks, vision_part
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the transformer with a class token, the queries with what reads them, and one projection.

    Fields that a config leaves out have the values of the config's own class: ViT-g of EVA-CLIP.
    """
    vision, queries = vision_part(outer), ConfigReader(outer.mapping("qformer_config") or {})
    hidden, depth = vision.positive("hidden_size", default=1408), vision.positive("num_hidden_layers", default=39)
    split, whole = blocks(hidden, vision.positive("intermediate_size", default=6144))
    patch = vision.positive("patch_size", default=14)
    positions = (vision.positive("image_size", default=224) // patch) ** 2 + 1
    around = (3 * patch * patch + 1) * hidden + (positions + 1) * hidden + 2 * hidden
    width = queries.positive("hidden_size", default=768)
    learnt = outer.positive("num_query_tokens", default=32) * width + query_transformer(queries)
    projection = (width + 1) * text.positive("hidden_size")
    return Encoder(
        split_parameters=depth * split,
        whole_parameters=depth * (whole + 4 * hidden) + around + learnt + projection,
        num_heads=vision.positive("num_attention_heads", default=16),
    )


FAMILIES: Final = (Family(classes=("Blip2ForConditionalGeneration",), wraps=named_inside, tower=_tower),)

"""LLaVA, its successors, and models that take after it.

Sources:
    vLLM 0.33 `model_executor/models/`: llava.py, llava_next.py, llava_next_video.py, llava_onevision.py,
    bee.py, rvl.py.
"""

from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping
from service.engine.families.parts.clip import clip
from service.engine.families.parts.family import Family
from service.engine.families.parts.pixtral import gated_layers
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.siglip import siglip, siglip_tower
from service.engine.families.parts.towers import (
    TowerRule,
    perceptron,
    seen,
    tower_heads,
    used_layers,
    vision_part,
    with_split,
    with_whole,
)
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder


def _first(outer: ConfigReader, text: ConfigReader) -> Encoder | None:
    """Return SigLIP up to the used layer, Pixtral's tower or CLIP, and a projector."""
    if not is_mapping(outer.raw("vision_config")):
        return None
    vision, out = vision_part(outer), text.positive("hidden_size")
    hidden, depth = vision.positive("hidden_size"), vision.positive("num_hidden_layers")
    used = used_layers(depth, outer.raw("vision_feature_layer"))
    if vision.raw("model_type") == "siglip_vision_model":
        tower = siglip_tower(vision, has_last_norm=False, layers=used)
    elif vision.raw("model_type") == "pixtral":
        split, whole = gated_layers(vision, used)
        tower = Encoder(split_parameters=split, whole_parameters=whole, num_heads=tower_heads(vision))
    else:
        return clip(vision, text)
    projector, bias = perceptron(hidden, out, out)
    return with_split(with_whole(tower, bias), projector)


def _next(outer: ConfigReader, text: ConfigReader) -> Encoder | None:
    """Return the same with one learnt end of line; the projector reads all used layers side by side."""
    tower = _first(outer, text)
    if tower is None:
        return None
    used, out = outer.raw("vision_feature_layer"), text.positive("hidden_size")
    beside = len(used) - 1 if is_list(used) and used else 0
    return with_split(with_whole(tower, out), beside * vision_part(outer).positive("hidden_size") * out)


def _video(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return CLIP with a projector that no rank splits."""
    tower, out = clip(vision, text), text.positive("hidden_size")
    projector, _ = perceptron(vision.positive("hidden_size"), out, out)
    return with_split(with_whole(tower, projector), -projector)


def _onevision(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP, one learnt end of line, and a projector that no rank splits."""
    split, whole = siglip(vision).parameters(has_last_norm=False)
    out = text.positive("hidden_size")
    projector = sum(perceptron(vision.positive("hidden_size"), out, out))
    return Encoder(split_parameters=split, whole_parameters=whole + out + projector, num_heads=tower_heads(vision))


def _widened(widening: int) -> TowerRule:
    """Return SigLIP up to the used layer, one learnt end of line, and a projector that widens the text's width."""

    def tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
        vision = vision_part(outer)
        hidden, out = vision.positive("hidden_size"), text.positive("hidden_size")
        layer = outer.raw("vision_feature_layer")
        used = vision.positive("num_hidden_layers") + layer + 1 if isinstance(layer, int) and layer < 0 else 0
        siglip_part = siglip_tower(vision, has_last_norm=False, layers=max(used, 0))
        return with_whole(siglip_part, out + 2 * hidden + sum(perceptron(hidden, widening * out, out)))

    return tower


FAMILIES: Final = (
    Family(
        classes=("LlavaForConditionalGeneration",),
        wraps=named_inside,
        tower=_first,
        largest_item=Item(tokens=576, patches_per_token=1),
    ),
    Family(
        classes=("LlavaNextForConditionalGeneration",),
        wraps=named_inside,
        tower=_next,
        largest_item=Item(tokens=2_880, patches_per_token=1),
    ),
    Family(classes=("LlavaNextVideoForConditionalGeneration",), wraps=named_inside, tower=seen(_video)),
    Family(
        classes=("LlavaOnevisionForConditionalGeneration",),
        wraps=named_inside,
        tower=seen(_onevision),
        largest_item=Item(tokens=7_290, patches_per_token=1),
    ),
    Family(classes=("BeeForConditionalGeneration",), wraps=named_inside, tower=_widened(4)),
    Family(classes=("RForConditionalGeneration",), wraps=named_inside, tower=_widened(1)),
)

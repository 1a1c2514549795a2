"""Mistral and Ministral, Mixtral, and Mistral 3 behind Pixtral's tower.

Sources:
    vLLM 0.33 `model_executor/models/`: mistral.py, mixtral.py, mistral3.py, mistral_large_3.py, pixtral.py,
    lightonocr.py.
"""

from collections.abc import Mapping
from typing import Final

from service.engine.config_reader import ConfigReader, text_reader
from service.engine.families.parts.attention import windowed_as_stated, windowed_by_default
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family, LanguageModels
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent
from service.engine.families.parts.pixtral import gated_layers, pixtral
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.sparsity import first_dense
from service.engine.families.parts.towers import divided, tower_heads, vision_part
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder


def _inside(config: Mapping[str, object], _known: LanguageModels) -> str:
    """Return Mistral 4 or Large 3 where the inner config says so, Ministral 3 elsewhere."""
    inner = {"mistral4": "Mistral4ForCausalLM", "deepseek_v3": "MistralLarge3ForCausalLM"}
    return inner.get(str(text_reader(config).own("model_type")), "Ministral3ForCausalLM")


def _own_tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Pixtral's tower in the publisher's own format: a projector that no rank splits, perhaps a patch merger."""
    vision, out = vision_part(outer), text.positive("hidden_size")
    split, whole = gated_layers(vision, vision.positive("num_hidden_layers"))
    hidden = vision.positive("hidden_size")
    merges = vision.raw("mm_projector_id") == "patch_merge"
    merger = vision.positive("spatial_merge_size", default=1) ** 2 * hidden * hidden if merges else 0
    norm = hidden if vision.flag("add_pre_mm_projector_layer_norm") else 0
    biases = 2 * out if vision.flag("adapter_bias", default=True) else 0
    projector = hidden * out + out * out + biases
    return Encoder(
        split_parameters=split, whole_parameters=whole + merger + norm + projector, num_heads=tower_heads(vision)
    )


FAMILIES: Final = (
    Family(
        classes=("MistralForCausalLM",),
        model_types=("mistral",),
        attention=windowed_by_default(4096),
    ),
    Family(classes=("MinistralForCausalLM", "Ministral3ForCausalLM"), attention=windowed_as_stated),
    Family(classes=("MixtralForCausalLM",), model_types=("mixtral",), attention=windowed_as_stated),
    Family(
        classes=("Mistral4ForCausalLM",),
        model_types=("mistral4",),
        attention=latent,
        feed_forward=FeedForward(experts=Experts(sparsity=first_dense)),
    ),
    Family(
        classes=("MistralLarge3ForCausalLM",),
        attention=latent,
        feed_forward=FeedForward(experts=Experts(sparsity=first_dense)),
    ),
    Family(
        classes=("Mistral3ForConditionalGeneration",),
        attention=windowed_as_stated,  # where another wrapper names it as its language model
        wraps=_inside,
        tower=divided(pixtral),
        largest_item=Item(tokens=3_025, patches_per_token=4),
    ),
    Family(classes=("PixtralForConditionalGeneration",), wraps=named_inside, tower=_own_tower),
    Family(classes=("LightOnOCRForConditionalGeneration",), wraps=named_inside, tower=divided(pixtral)),
)

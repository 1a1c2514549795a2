"""Mistral and Ministral, Mixtral, and Mistral 3 behind Pixtral's tower.

Sources:
    vLLM 0.33 `model_executor/models/`: mistral.py, mixtral.py, mistral3.py, mistral_large_3.py, pixtral.py,
    lightonocr.py.
"""

from collections.abc import Mapping
from typing import Final

from service.engine.config_reader import text_reader
from service.engine.families.llama import MEASURED_AS
from service.engine.families.parts.attention import windowed_as_stated, windowed_by_default
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family, LanguageModels
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent
from service.engine.families.parts.pixtral import pixtral
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.sparsity import first_dense
from service.engine.families.parts.towers import divided
from service.engine.families.parts.wrappers import named_inside


def _inside(config: Mapping[str, object], _known: LanguageModels) -> str:
    """Return Mistral 4 or Large 3 where the inner config says so, Ministral 3 elsewhere."""
    inner = {"mistral4": "Mistral4ForCausalLM", "deepseek_v3": "MistralLarge3ForCausalLM"}
    return inner.get(str(text_reader(config).own("model_type")), "Ministral3ForCausalLM")


FAMILIES: Final = (
    Family(
        classes=("MistralForCausalLM",),
        model_types=("mistral",),
        attention=windowed_by_default(4096),
        measured_as=MEASURED_AS,
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
    Family(classes=("LightOnOCRForConditionalGeneration",), wraps=named_inside, tower=divided(pixtral)),
)

"""openPangu, dense and with latents and experts.

Sources:
    vLLM 0.33 `model_executor/models/openpangu.py`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import windowed_as_stated
from service.engine.families.parts.biases import Biases
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent
from service.engine.families.parts.norms import four_where
from service.engine.families.parts.sparsity import first_dense


def _like_the_inputs(_reader: ConfigReader, stated: Biases) -> Biases:
    """Return an output with a bias where queries, keys and values have one."""
    return stated[0], stated[0]


FAMILIES: Final = (
    Family(
        classes=("PanguEmbeddedForCausalLM",),
        attention=windowed_as_stated,
        biases=_like_the_inputs,
        norms_per_layer=four_where("sandwich_norm"),
    ),
    Family(
        classes=("PanguUltraMoEForCausalLM",),
        attention=latent,
        feed_forward=FeedForward(experts=Experts(sparsity=first_dense)),
        norms_per_layer=four_where("sandwich_norm"),
    ),
)

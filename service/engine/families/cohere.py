"""Cohere's Command models and Aya: one norm a layer, tied embeddings.

Sources:
    vLLM 0.33 `model_executor/models/`: commandr.py, cohere2_moe.py, cohere2_vision.py.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import AttentionRule, Mixers, full_only, patterned
from service.engine.families.parts.dense import Dense, named
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.siglip import siglip_tower
from service.engine.families.parts.sparsity import first_dense
from service.engine.families.parts.towers import vision_part
from service.engine.families.parts.wrappers import named_inside
from service.engine.layers import Encoder, HeadDetails, Heads


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP, and a gated projector over merged patches, split over ranks."""
    vision = vision_part(outer)
    merged = outer.positive("downsample_factor", default=2) ** 2 * vision.positive("hidden_size")
    inner, out = outer.positive("alignment_intermediate_size", default=36864), text.positive("hidden_size")
    tower = siglip_tower(vision)
    return replace(
        tower,
        split_parameters=tower.split_parameters + merged * inner + inner + inner // 2 * out,
        whole_parameters=tower.whole_parameters + out,
    )


def _normed(rule: AttentionRule) -> AttentionRule:
    """Return the rule with a norm on each head of queries and keys where the config says so, which ranks split."""

    def normed(reader: ConfigReader) -> Mixers:
        mixers = rule(reader)
        if not reader.flag("use_qk_norm"):
            return mixers
        return tuple(tuple(mixer.detailed(_with_wide_norms) for mixer in layer) for layer in mixers)

    return normed


def _with_wide_norms(heads: Heads) -> HeadDetails:
    return HeadDetails(
        has_input_biases=heads.has_input_biases,
        has_output_bias=heads.has_output_bias,
        norm_elements=0,
        has_wide_norms=True,
    )


_COHERE2: Final = Family(
    classes=("Cohere2ForCausalLM",),
    model_types=("cohere2",),
    attention=_normed(patterned(4, 4096, extra=1)),
    norms_per_layer=1,
    ties_embeddings=True,
)
FAMILIES: Final = (
    Family(
        classes=("CohereForCausalLM",),
        model_types=("cohere",),
        attention=_normed(full_only),
        norms_per_layer=1,
        ties_embeddings=True,
    ),
    _COHERE2,
    replace(
        _COHERE2,
        classes=("Cohere2MoeForCausalLM",),
        model_types=(),
        feed_forward=FeedForward(
            dense=Dense(width=named("prefix_dense_intermediate_size")), experts=Experts(sparsity=first_dense)
        ),
    ),
    Family(classes=("Cohere2VisionForConditionalGeneration",), wraps=named_inside, tower=_tower),
)

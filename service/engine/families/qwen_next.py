"""Qwen3-Next, and Qwen 3.5 and its successors: gated delta nets, with softmax attention in every fourth layer.

Sources:
    vLLM 0.33 `model_executor/models/`: qwen3_next.py, qwen3_5.py, qwen3_next_mtp.py, interns2_preview.py.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list
from service.engine.families.parts.attention import Mixers, base_attention
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.mtp import Draft, last_with_softmax, under_mtp
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.patch_mergers import stacked_merging
from service.engine.families.parts.recurrent import delta_net, in_groups_of_four
from service.engine.families.parts.towers import divided
from service.engine.families.qwen_vl import IMAGE
from service.engine.layers import Architecture, DraftHead, GatedDeltaNet

# Outermost classes whose config's `mamba_ssm_dtype` the engine follows; any other keeps states in its model's dtype.
# Source: vLLM 0.33 `model_executor/models/config.py` (`MODELS_CONFIG_MAP`, `Qwen3_5ForConditionalGenerationConfig`).
_STATING: Final = frozenset(
    [
        "Qwen3_5ForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForCausalLM",
        "Qwen3_5MoeForConditionalGeneration",
    ]
)


def _states(reader: ConfigReader) -> GatedDeltaNet:
    """Return the gated delta net, whose states have the stated dtype where the outermost class reads it."""
    net, outermost = delta_net(reader), reader.outer("architectures") or reader.own("architectures")
    if is_list(outermost) and not _STATING.intersection(map(str, outermost)):
        return replace(net, state_dtype="auto")
    return net


def _attention(reader: ConfigReader) -> Mixers:
    """Return a gated delta net in most layers, gated attention in every fourth."""
    attention = replace(
        base_attention(reader),
        has_output_gate=reader.flag("attn_output_gate", default=True),
    )
    return in_groups_of_four(reader, _states(reader), attention)


def _modules(_reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return layers like the model's last with softmax attention."""
    return under_mtp(architecture, last_with_softmax(architecture), modules)


_EXPERTS: Final = FeedForward(experts=Experts(has_shared_gate=True, splits_tokens=True))
_DRAFT: Final = Draft(build=_modules, count_name="mtp_num_hidden_layers", default_count=1)

_NEXT: Final = Family(
    classes=("Qwen3NextForCausalLM",),
    attention=_attention,
    feed_forward=_EXPERTS,
    head_norms=on_heads,
    draft=Draft(build=_modules, default_count=1),
    drafts_beside_states=True,
)
_DENSE: Final = Family(
    classes=("Qwen3_5ForCausalLM",),
    model_types=("qwen3_5_text",),
    attention=_attention,
    head_norms=on_heads,
    draft=_DRAFT,
)
_MOE: Final = replace(
    _DENSE, classes=("Qwen3_5MoeForCausalLM",), model_types=("qwen3_5_moe_text",), feed_forward=_EXPERTS
)
FAMILIES: Final = (
    _NEXT,
    _DENSE,
    _MOE,
    replace(
        _DENSE,
        classes=("Qwen3_5ForConditionalGeneration",),
        model_types=(),
        tower=divided(stacked_merging),
        largest_item=IMAGE,
    ),
    replace(
        _MOE,
        # Another publisher's, whose tower for series of numbers the engine leaves out.
        classes=("Qwen3_5MoeForConditionalGeneration", "InternS2PreviewForConditionalGeneration"),
        model_types=(),
        tower=divided(stacked_merging),
        largest_item=IMAGE,
    ),
)

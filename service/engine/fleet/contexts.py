"""How long a context an engine serves of a model: each derives it from the same config, in its own way.

vLLM:    what a rope scaling reaches from the stated length, which YaRN is part of since 0.30
         (`families/parts/context.py`)
others:  what the config states, times the factor of a scaling that names no such length
"""

from service.engine.engines.rules import EngineRules
from service.engine.layers import Architecture


def longest_context(model: Architecture, rules: EngineRules) -> int:
    """Return the longest context that an engine accepts of a model. [tokens]."""
    return _by_other_rules(model, rules) or model.max_position_embeddings


def unasked_context(model: Architecture, rules: EngineRules) -> int:
    """Return what an engine serves of a model when nobody states a length. [tokens]."""
    return _by_other_rules(model, rules) or model.default_max_model_len


def _by_other_rules(model: Architecture, rules: EngineRules) -> int:
    """Return the context of other engines, and of vLLM's older versions where it is another one; else 0. [tokens]."""
    if not rules.rescales_contexts:
        return model.plain_max_model_len
    return model.former_max_model_len if rules.plan.rescales_yarn else 0

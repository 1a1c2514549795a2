"""How long a context an engine serves of a model: each derives it from the same config, in its own way.

vLLM:    what a rope scaling reaches from the length it starts at (`families/parts/context.py`)
others:  what the config states, times the factor of a scaling that names no such length
"""

from service.engine.engines.rules import EngineRules
from service.engine.layers import Architecture


def longest_context(model: Architecture, rules: EngineRules) -> int:
    """Return the longest context that an engine accepts of a model. [tokens]."""
    return (0 if rules.rescales_contexts else model.plain_max_model_len) or model.max_position_embeddings


def unasked_context(model: Architecture, rules: EngineRules) -> int:
    """Return what an engine serves of a model when nobody states a length. [tokens]."""
    return (0 if rules.rescales_contexts else model.plain_max_model_len) or model.default_max_model_len

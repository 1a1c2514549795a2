"""How long a context an engine serves of a model: each derives it from the same config, in its own way.

vLLM:    what a rope scaling reaches from the stated length, which YaRN is part of since 0.30
         (`families/parts/context.py`)
others:  what the config states, times the factor of a scaling that names no such length
"""

from service.engine.engines.rules import EngineRules
from service.engine.errors import InvalidQuestionError
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


def check_lengths(longest: int, stated: int | None, context_tokens: int, output_tokens: int) -> None:
    """Raise where the stated context is longer than the model's, or requests are longer than either.

    Args:
        longest: context of the model. [tokens]
        stated: max_model_len; None where nobody states it. [tokens]
        context_tokens: input and output of one request. [tokens]
        output_tokens: of them: a refusal names the longer part. [tokens]

    Raises:
        InvalidQuestionError: it is so.
    """
    if stated is not None and stated > longest:
        raise InvalidQuestionError(
            f"max_model_len {stated} is longer than the {longest} tokens of the model's config",
            field="max_model_len",
            accepted=f"1 to {longest}, or a model_config with a larger max_position_embeddings (--hf-overrides)",
        )
    most, whose = (stated, "of max_model_len") if stated else (longest, "the model accepts")
    if context_tokens > most:
        longer = "output_tokens" if 2 * output_tokens > context_tokens else "input_tokens"
        raise InvalidQuestionError(
            f"a request of {context_tokens} tokens, input and output, exceeds the {most} tokens {whose}",
            field="max_model_len" if stated else longer,
            accepted=f"input_tokens + output_tokens of at most {most}",
        )

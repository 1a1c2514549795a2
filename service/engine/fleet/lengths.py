"""The lengths of requests that given GPUs are asked to carry: as stated, or those that fill a context."""

from dataclasses import replace
from typing import Final

from service.engine.fleet.planned import planned, surely_planned, surely_served
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.settings import Resolved
from service.engine.inputs import Layout, Load
from service.engine.memory.plan import MemoryPlan

OUTPUT_SHARE: Final = 8  # of a context, where the caller states no lengths
MOST_OUTPUT_TOKENS: Final = 512
SHORTEST_CONTEXT: Final = 2_048  # that is worth serving, where the caller states none [tokens]


def has_lengths(question: CapacityQuestion) -> bool:
    """Return whether the caller says how long requests are."""
    return question.input_tokens is not None or question.output_tokens is not None


def lengths_of(question: CapacityQuestion, plan: MemoryPlan) -> Load:
    """Return the asked load with the lengths that are timed: without any, a long prompt and a short answer."""
    if not has_lengths(question):
        return split_of(question.load, plan.context_tokens)
    return replace(question.load, input_tokens=question.input_tokens or 0, output_tokens=question.output_tokens or 0)


def split_of(load: Load, context_tokens: int) -> Load:
    """Return a load whose requests fill a context, an eighth of it or 512 tokens with output."""
    prompt, answer = lengths_within(context_tokens)
    return replace(load, input_tokens=prompt, output_tokens=answer)


def lengths_within(context_tokens: int) -> tuple[int, int]:
    """Return the prompt and the answer of a request that fills a context. [tokens].

    >>> lengths_within(2_048), lengths_within(131_072)
    ((1792, 256), (130560, 512))
    """
    output = max(min(context_tokens // OUTPUT_SHARE, MOST_OUTPUT_TOKENS), 1)
    return max(context_tokens - output, 1), output


def plan_at(question: CapacityQuestion, resolved: Resolved, layout: Layout) -> MemoryPlan:
    """Return the plan for requests of the asked lengths, or of the longest context served, if it is worth serving."""
    if has_lengths(question):
        return surely_planned(resolved, layout, question.input_tokens or 0, question.output_tokens or 0)
    stated = resolved.settings.max_model_len
    if not resolved.shorten_to_fit:
        return planned(resolved, layout, stated, 0)
    context = max(surely_served(resolved, layout), min(SHORTEST_CONTEXT, stated))
    served = replace(resolved, settings=replace(resolved.settings, max_model_len=context))
    return surely_planned(served, layout, context, 0)

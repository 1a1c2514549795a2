"""What an answer rests on of a load: how many requests, their lengths, and how they are noted."""

from service.engine.fleet.results import Assumption, Origin, Scalar
from service.engine.inputs import LengthDistribution, Load

KV_REQUEST_SOURCE = "every request is held at its full length, input and output together"
PREFIX_SOURCE = "shared prefixes are not counted on: every request holds its own cache"
LENGTHS_SOURCE = "requests that are all alike would keep in step; real ones do not"
BENCHMARK_SOURCE = "vllm bench serve sends random prompts all as long as stated, and has answers made as long"


def length(name: str, tokens: int | None) -> Assumption:
    """Return a length that may not be stated. [tokens]."""
    if tokens is None:
        return note(name, 0, "default", "not stated, so only the other length counts")
    return note(name, tokens, "request", None)


def load_notes(load: Load) -> tuple[Assumption, ...]:
    """Return lengths, amount and spread of a load."""
    return (
        note("input_tokens", load.input_tokens, "request", None),
        note("output_tokens", load.output_tokens, "request", None),
        note("tokens_held_per_request", load.input_tokens + load.output_tokens, "default", KV_REQUEST_SOURCE),
        *amount(load),
        *spread(load),
    )


def amount(load: Load) -> list[Assumption]:
    """Return how many requests there are, and how they arrive."""
    notes = []
    if load.concurrent_requests is not None:
        notes.append(note("concurrent_requests", load.concurrent_requests, "request", None))
    if load.request_rate_per_s is not None:
        notes.append(note("request_rate_per_s", load.request_rate_per_s, "request", None))
        if load.request_duration_s is None:
            notes.append(stated_or_default("burstiness", load.burstiness, 1.0, "arrivals are Poisson unless asked"))
        else:
            notes.append(note("request_duration_s", load.request_duration_s, "request", "Little's law"))
    return notes


def spread(load: Load, lengths: LengthDistribution = "uniform") -> list[Assumption]:
    """Return how lengths spread, which decides percentiles more than means, and what of them is spared.

    Args:
        load: what is sent.
        lengths: how they spread where nobody says it.
    """
    return [
        *_lengths(load, lengths),
        *_drafts(load),
        stated_or_default("prefix_cache_hit_fraction", load.prefix_cache_hit_fraction, 0.0, PREFIX_SOURCE),
    ]


def _lengths(load: Load, default: LengthDistribution) -> list[Assumption]:
    why = BENCHMARK_SOURCE if default == "fixed" else LENGTHS_SOURCE
    distribution = stated_or_default("length_distribution", load.length_distribution, default, why)
    if load.length_distribution == "fixed":  # nothing varies
        return [distribution]
    variation = load.length_variation_fraction
    return [distribution, stated_or_default("length_variation_fraction", variation, 0.1, LENGTHS_SOURCE)]


def _drafts(load: Load) -> list[Assumption]:
    if load.speculative_acceptance_fraction is None:
        return []
    return [note("speculative_acceptance_fraction", load.speculative_acceptance_fraction, "request", None)]


def note(name: str, value: Scalar, origin: Origin, source: str | None) -> Assumption:
    """Return one thing that an answer rests on."""
    return Assumption(name=name, value=value, origin=origin, source=source)


def stated_or_default(name: str, value: Scalar, default: Scalar, why: str) -> Assumption:
    """Return a value with the reason of the default, unless somebody stated another."""
    return note(name, value, "default", why) if value == default else note(name, value, "request", None)

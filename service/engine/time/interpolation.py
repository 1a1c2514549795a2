"""Step times from their tables, compiled: what simulations ask for most often."""

import numpy as np
from numpy.typing import NDArray

from service.engine.time.compiled import compiled
from service.engine.time.records import Record

Floats = NDArray[np.float64]


@compiled
def _behind(knots: Floats, x: float) -> int:
    """Return the first index, from 1 to the last, whose knot is above x."""
    last = len(knots) - 1
    right = 1
    while right < last and knots[right] <= x:
        right += 1
    return right


@compiled
def curve_at(knots: Floats, values: Floats, x: float) -> float:
    """Return a curve's value: linear between knots and beyond the last, constant before the first."""
    if x <= knots[0]:
        return float(values[0])
    right = _behind(knots, x)
    left = right - 1
    slope = (values[right] - values[left]) / (knots[right] - knots[left])
    return float(values[left] + slope * (x - knots[left]))


@compiled
def _surface_beside_shortest(steps: Record, requests: float, context_tokens: float) -> tuple[float, float]:
    """Return seconds of an iteration that decodes, and of one at the shortest context: both between the same rows.

    Bilinear between knots and beyond the last ones.
    """
    rows, columns, values = steps.requests, steps.contexts, steps.decode_s
    below, right = _behind(rows, requests), _behind(columns, context_tokens)
    above, left = rows[below - 1], columns[right - 1]
    share = (requests - above) / (rows[below] - above) if requests > above else 0.0
    part = (context_tokens - left) / (columns[right] - left) if context_tokens > left else 0.0
    high, low = values[below - 1, right - 1], values[below, right - 1]
    high += part * (values[below - 1, right] - high)
    low += part * (values[below, right] - low)
    first, second = values[below - 1, 0], values[below, 0]
    return float(high + share * (low - high)), float(first + share * (second - first))


@compiled
def _surface_at(steps: Record, requests: float, context_tokens: float) -> float:
    """Return seconds of an iteration that decodes."""
    return _surface_beside_shortest(steps, requests, context_tokens)[0]


@compiled
def _model_s(steps: Record, requests: float, context_tokens: float) -> float:
    overhead = steps.step_overhead_s + steps.sequence_overhead_s * requests
    return float(overhead + _surface_at(steps, requests, context_tokens))


@compiled
def _drafts_s(steps: Record, requests: float, context_tokens: float) -> float:
    return float(steps.drafted_tokens * _model_s(steps, requests, context_tokens) * steps.drafter_fraction)


@compiled
def decode_step_s(steps: Record, requests: float, context_tokens: float) -> float:
    """Return the seconds of an iteration that only decodes."""
    if steps.drafted_tokens == 0:
        return _model_s(steps, requests, context_tokens)
    verified = steps.drafted_tokens + 1
    return _model_s(steps, verified * requests, context_tokens / verified) + _drafts_s(steps, requests, context_tokens)


@compiled
def _read_s(
    steps: Record, prefill_tokens: float, attended_tokens: float, requests: float, context_tokens: float
) -> float:
    tokens_s = curve_at(steps.batch_tokens, steps.tokens_s, prefill_tokens + requests)
    seconds = steps.step_overhead_s + steps.mixed_overhead_s + tokens_s
    seconds += prefill_tokens * curve_at(steps.attended, steps.attention_s, attended_tokens)
    if requests > 0:
        decode, shortest = _surface_beside_shortest(steps, requests, context_tokens)
        seconds += (steps.sequence_overhead_s + steps.mixed_sequence_overhead_s) * requests
        seconds += decode - shortest
        # An iteration with prompts does everything that one without them does.
        seconds = max(seconds, steps.step_overhead_s + steps.sequence_overhead_s * requests + decode)
    return float(seconds)


@compiled
def mixed_step_s(
    steps: Record, prefill_tokens: float, attended_tokens: float, requests: float, context_tokens: float
) -> float:
    """Return the seconds of an iteration that also reads prompts."""
    if steps.drafted_tokens == 0:
        return _read_s(steps, prefill_tokens, attended_tokens, requests, context_tokens)
    verified = steps.drafted_tokens + 1
    context = context_tokens / verified if requests > 0 else 0.0
    seconds = _read_s(steps, prefill_tokens, attended_tokens, verified * requests, context)
    return seconds + (_drafts_s(steps, requests, context_tokens) if requests > 0 else 0.0)

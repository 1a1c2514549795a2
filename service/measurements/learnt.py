"""From predicted towards measured: of a ledger term by term, of step times by what users saw."""

from collections.abc import Mapping
from dataclasses import replace
from math import log
from statistics import fmean
from typing import Any, Final

from service.engine.engines.measured_here import MeasuredMemory, MeasuredSteps
from service.measurements.terms import at

# Which figures speak for prompts and for decoding; the first that was measured.
OF_PROMPTS: Final = ("ttft_s.mean", "ttft_s.p50")
OF_DECODING: Final = ("tpot_s.mean", "tpot_s.p50", "itl_s.mean", "itl_s.p50")
OF_BOTH: Final = ("end_to_end_s.mean", "end_to_end_s.p50")
RATES: Final = ("output_tokens_per_s", "requests_per_s")
MOST_APART: Final = 1.5  # one factor over the other
AT_BOUND: Final = 0.98  # of it, as the other factor still moves
DAMPED: Final = 0.7  # waiting for one another grows faster than steps do
LEDGER: Final = frozenset(
    {"weight_bytes", "non_torch_bytes", "weight_and_non_torch_bytes", "activation_bytes", "cuda_graph_bytes"}
)
CACHE: Final = ("kv_cache_bytes", "kv_cache.tokens", "kv_cache.num_gpu_blocks")
Figures = Mapping[str, float]
Answer = Mapping[str, Any]  # of /capacity


def with_terms(change: MeasuredMemory, figures: Figures, answer: Answer) -> MeasuredMemory:
    """Return the change with every term of the ledger that was measured apart. [bytes].

    Args:
        change: of nothing yet.
        figures: what was measured.
        answer: what is predicted without it.
    """
    memory = answer["memory_per_gpu"]
    weights, non_torch = figures.get("weight_bytes") or None, figures.get("non_torch_bytes")
    both = figures.get("weight_and_non_torch_bytes") or None
    if non_torch is None and both is not None:
        non_torch = both - (memory["weight_bytes"] if weights is None else weights)
    return replace(
        change,
        weight_bytes=0 if weights is None else round(weights) - memory["weight_bytes"],
        non_torch_bytes=0 if non_torch is None else round(non_torch) - memory["non_torch_bytes"],
        activation_factor=_factor(figures.get("activation_bytes"), memory["activation_bytes"]),
        graph_factor=_factor(figures.get("cuda_graph_bytes"), memory["cuda_graph_bytes"]),
    )


def _factor(measured: float | None, predicted: int) -> float:
    return measured / predicted if measured and predicted else 1.0


def cache_bytes(figures: Figures, answer: Answer) -> float | None:
    """Return the measured pool; by its tokens or blocks where no line states its bytes. [bytes]."""
    for name in CACHE:
        predicted = at(answer, name if "." in name else f"memory_per_gpu.{name}")
        if figures.get(name) and predicted:
            return figures[name] / predicted * float(answer["memory_per_gpu"]["kv_cache_bytes"])
    return None


def memory_left(figures: Figures, answer: Answer) -> float:
    """Return how far the predicted pool is from the measured one; 0 where none was measured. [fraction]."""
    measured = cache_bytes(figures, answer)
    return 0.0 if measured is None else abs(answer["memory_per_gpu"]["kv_cache_bytes"] / measured - 1)


def unexplained_bytes(figures: Figures, answer: Answer, share: float) -> int:
    """Return what the measured terms leave open: how much more is taken than they say. [bytes].

    Args:
        figures: what was measured.
        answer: what is predicted with the measured terms.
        share: what a byte outside the framework takes from the pool. [fraction]
    """
    measured = cache_bytes(figures, answer)
    return 0 if measured is None else round((answer["memory_per_gpu"]["kv_cache_bytes"] - measured) / share)


def latencies_left(figures: Figures, answer: Answer) -> float | None:
    """Return the mean distance of the latencies that speak, or of a rate where none does. [fraction]."""
    told = [_ratio(figures, answer, names) for names in (OF_PROMPTS, OF_DECODING, OF_BOTH)]
    known = [ratio for ratio in told if ratio is not None]
    if not known:
        rate = _ratio(figures, answer, RATES)
        return None if rate is None else abs(log(rate))
    return fmean(abs(log(ratio)) for ratio in known)


def next_steps(change: MeasuredSteps, figures: Figures, answer: Answer) -> MeasuredSteps:
    """Return factors nearer to what was measured.

    Prompts follow TTFT, decoding TPOT; where one of them was not measured both follow the other, the end-to-end
    latency, or the rate. Prompts are read beside tokens that are decoded, so the two factors stay near each other:
    a first token that comes later still has waited outside the steps.
    """
    prompts, decoding = _ratio(figures, answer, OF_PROMPTS), _ratio(figures, answer, OF_DECODING)
    rate = _ratio(figures, answer, RATES)
    both = decoding or prompts or _ratio(figures, answer, OF_BOTH) or (None if rate is None else 1 / rate) or 1.0
    decode = change.decode_factor * (decoding or both)
    wanted = change.prefill_factor * (prompts or both) ** DAMPED
    most, late_s = decode * MOST_APART, _late_s(figures, answer)
    # One of them at a time: what steps cannot explain is waited for, once they are as slow as they may be.
    if change.request_overhead_s or (late_s > 0 and change.prefill_factor >= AT_BOUND * most):
        waited_s = max(change.request_overhead_s + late_s, 0.0)
        return replace(change, prefill_factor=most, decode_factor=decode, request_overhead_s=waited_s)
    return replace(change, prefill_factor=min(max(wanted, decode / MOST_APART), most), decode_factor=decode)


def _late_s(figures: Figures, answer: Answer) -> float:
    """Return by how much the first token comes later than predicted. [s]."""
    for name in OF_PROMPTS:
        predicted = at(answer, f"latency.{name}")
        if figures.get(name) and predicted:
            return figures[name] - predicted
    return 0.0


def _ratio(figures: Figures, answer: Answer, names: tuple[str, ...]) -> float | None:
    """Return measured over predicted of the first figure that both state."""
    for name in names:
        predicted = at(answer, f"at_load.{name}" if name in RATES else f"latency.{name}")
        if figures.get(name) and predicted:
            return figures[name] / predicted
    return None

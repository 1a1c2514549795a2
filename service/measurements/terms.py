"""Predicted beside measured, term by term, and what would bring them together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Final

from service.catalog.measurement_rows import Kind
from service.measurements.observed import Figure

# Where an answer of /capacity says what a log or a benchmark measured.
PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "gpu_total_bytes": ("memory_per_gpu.total_bytes",),
    "weight_bytes": ("memory_per_gpu.weight_bytes",),
    "weight_and_non_torch_bytes": ("memory_per_gpu.weight_bytes", "memory_per_gpu.non_torch_bytes"),
    "activation_bytes": ("memory_per_gpu.activation_bytes",),
    "non_torch_bytes": ("memory_per_gpu.non_torch_bytes",),
    "cuda_graph_bytes": ("memory_per_gpu.cuda_graph_bytes",),
    "kv_cache_bytes": ("memory_per_gpu.kv_cache_bytes",),
    "kv_cache.tokens": ("kv_cache.tokens",),
    "kv_cache.num_gpu_blocks": ("kv_cache.num_gpu_blocks",),
    "kv_cache.max_concurrency": ("kv_cache.max_concurrency",),
    "kv_cache.estimated_max_model_len": ("kv_cache.estimated_max_model_len",),
    "requests_per_s": ("at_load.requests_per_s",),
    "output_tokens_per_s": ("at_load.output_tokens_per_s",),
    **{
        f"{time}.{statistic}": (f"latency.{time}.{statistic}",)
        for time in ("ttft_s", "tpot_s", "itl_s", "end_to_end_s")
        for statistic in ("mean", "p50", "p95", "p99")
    },
}
# By which terms a change is judged: those that follow from what was deployed, not from how a version accounts for it.
JUDGED: Final[Mapping[Kind, tuple[str, ...]]] = {
    "start-up log": ("weight_bytes", "weight_and_non_torch_bytes", "kv_cache_bytes", "kv_cache.tokens",
                     "kv_cache.max_concurrency"),
    "benchmark": ("ttft_s.mean", "ttft_s.p50", "tpot_s.mean", "tpot_s.p50", "requests_per_s"),
}  # fmt: skip
WORTH_TELLING: Final = 0.02  # mean error that a change must take away [fraction]
BETTER: Final = 0.6  # and the share of it that may be left
MOST_TOLD: Final = 3
# Settings that a text may well state wrong; every other one is only tried where nobody stated it.
ALWAYS_TRIED: Final = frozenset({"weight_format", "kv_cache_dtype"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One measured figure beside its prediction."""

    name: str
    measured: float
    predicted: float | None  # None: the answer does not say it
    error_fraction: float | None  # predicted / measured - 1
    line: int  # of the text, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A setting that, had it been stated, would bring prediction and measurement together."""

    change: Mapping[str, str | int | float | bool]
    error_fraction: float  # mean distance that is left
    error_fraction_now: float


def terms(figures: Mapping[str, Figure], answer: Mapping[str, Any]) -> tuple[Term, ...]:
    """Return every measured figure beside what the answer says of it."""
    return tuple(_term(figure, answer) for figure in figures.values() if figure.name in PATHS)


def _term(figure: Figure, answer: Mapping[str, Any]) -> Term:
    parts = [at(answer, path) for path in PATHS[figure.name]]
    known = [part for part in parts if part is not None]
    predicted = sum(known) if len(known) == len(parts) else None
    comparable = predicted is not None and figure.value > 0
    return Term(
        name=figure.name,
        measured=figure.value,
        predicted=predicted,
        error_fraction=predicted / figure.value - 1 if comparable and predicted is not None else None,
        line=figure.line,
    )


def at(answer: Mapping[str, Any], path: str) -> float | None:
    """Return the number that an answer has at a path; None where it has none."""
    node: Any = answer
    for name in path.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return float(node) if isinstance(node, int | float) else None


def distances(compared: Sequence[Term], kind: Kind) -> dict[str, float]:
    """Return |ln(predicted / measured)| of each term that judges, and is both measured and predicted."""
    return {
        term.name: abs(log(term.predicted / term.measured))
        for term in compared
        if term.name in JUDGED[kind] and term.predicted and term.measured > 0
    }


def distance(compared: Sequence[Term], kind: Kind) -> float | None:
    """Return the mean of |ln(predicted / measured)| over the terms that judge; None where none was measured."""
    judged = distances(compared, kind).values()
    return sum(judged) / len(judged) if judged else None


def changes(asked: Mapping[str, Any], kind: Kind, formats: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield settings that a text may have left out, each with one value other than the one asked with."""
    ranks = asked.get("tensor_parallel_size") or 1
    several: dict[str, Sequence[str | int | float]] = {
        "weight_format": formats,
        "kv_cache_dtype": ("fp8", "bf16"),
        "tensor_parallel_size": tuple(size for size in (1, 2, 4, 8) if size != ranks),
    }
    if kind == "start-up log":
        several["gpu_memory_utilization"] = (0.8, 0.85, 0.9, 0.92, 0.95)
        several["max_num_batched_tokens"] = (2048, 8192, 16384)
    else:
        several["prefix_cache_hit_fraction"] = (0.5, 0.9)
    for name, values in several.items():
        for value in values:
            if asked.get(name) != value and (name not in asked or name in ALWAYS_TRIED):
                yield {name: value}


def worth_telling(now: float, tried: Sequence[tuple[Mapping[str, Any], float]]) -> tuple[Explanation, ...]:
    """Return the changes that take most of a difference away, the best first."""
    better = [(change, left) for change, left in tried if left <= BETTER * now and now - left >= WORTH_TELLING]
    better.sort(key=lambda each: each[1])
    return tuple(
        Explanation(change=change, error_fraction=left, error_fraction_now=now) for change, left in better[:MOST_TOLD]
    )

"""GuideLLM's report as JSON, of one benchmark.

Sources:
    https://github.com/vllm-project/guidellm, `schemas/generative/benchmark.py` up to 0.5, of August 2026
    `benchmark/schemas/benchmark.py`, `scheduler/strategies.py`.
"""

from collections.abc import Mapping
from typing import Any, Final

from service.measurements.guidellm import OPEN
from service.measurements.keeping import MS, check_answered, inside, keep_load, mapping_in, number_in, put, state
from service.measurements.observed import Observed, UnreadableTextError


def _strategy(run: Mapping[str, Any]) -> str:
    """Return what GuideLLM calls a benchmark, with its rate or the number that runs at once."""
    strategy = mapping_in(inside(run, "args", "strategy"), inside(run, "config", "strategy"))
    kind = strategy.get("type_") or strategy.get("kind")
    amount = number_in(strategy.get("rate")) or number_in(strategy.get("streams"))
    return f"{kind}@{amount:.4g}" if kind and amount else str(kind or "")


def report(document: Mapping[str, Any]) -> Observed:
    """Return what the report of one benchmark says.

    Raises:
        UnreadableTextError: it is of several, too many requests failed, or it names no load.
    """
    observed = Observed(what="GuideLLM report", kind="benchmark")
    runs = [run for run in document["benchmarks"] if isinstance(run, Mapping)]
    if len(runs) != 1:
        told = ", ".join(filter(None, map(_strategy, runs[:12])))
        accepted = "the report with one object under benchmarks, one at a time"
        raise UnreadableTextError(1, f"the report holds {len(runs)} benchmarks: {told or 'none'}", accepted)
    run, metrics = runs[0], runs[0].get("metrics")
    strategy = mapping_in(inside(run, "args", "strategy"), inside(run, "config", "strategy"))
    models = (
        ("args", "model"), ("config", "model"), ("config", "spec", "backend", "model"), ("config", "backend", "model"),
        ("model",), ("worker", "backend_model"),
    )  # fmt: skip
    state(
        observed,
        "model",
        next((name for each in (document, run) for path in models if (name := inside(each, *path))), None),
    )
    made = mapping_in(inside(run, "run_stats", "requests_made"), inside(metrics, "request_totals"))
    check_answered(number_in(made.get("errored")), number_in(made.get("total")))
    _load(observed, strategy, inside(metrics, "request_concurrency", "successful", "mean"))
    for name, field in GUIDELLM_TIMES.items():
        stated = mapping_in(inside(metrics, name, "successful"))
        scale = MS if name.endswith("_ms") else 1.0
        put(observed, f"{field}.mean", stated.get("mean"), scale)
        put(observed, f"{field}.p50", stated.get("median"), scale)
        for percentile in ("p95", "p99"):
            put(observed, f"{field}.{percentile}", inside(stated, "percentiles", percentile), scale)
    put(observed, "requests_per_s", inside(metrics, "requests_per_second", "successful", "mean"))
    put(observed, "output_tokens_per_s", inside(metrics, "output_tokens_per_second", "successful", "mean"))
    for name, field in (("prompt_token_count", "input_tokens"), ("output_token_count", "output_tokens")):
        state(observed, field, round(number_in(inside(metrics, name, "successful", "mean"))))
    return observed


def _load(observed: Observed, strategy: Mapping[str, Any], running: object) -> None:
    """Keep the load: of an open loop its rate, else how many ran at once, which nothing but the run says without limit.

    Raises:
        UnreadableTextError: requests came as in a trace, whose rate is not one.
    """
    kind = strategy.get("type_") or strategy.get("kind")
    if kind == "trace":
        sentence = "requests came as in a trace, whose rate and lengths change as it goes"
        raise UnreadableTextError(
            1, sentence, "a run of one load: synchronous, concurrent, throughput, constant or poisson"
        )
    most = None if kind in OPEN else strategy.get("streams") or strategy.get("max_concurrency")
    alone = {"synchronous": 1, "throughput": running}.get(str(kind))
    keep_load(observed, most or alone, strategy.get("rate"))


# The mean between the tokens of a request is TPOT by vLLM's definition; what GuideLLM calls so holds the first token's
# time too: https://github.com/vllm-project/guidellm, `schemas/request_stats.py`.
GUIDELLM_TIMES: Final[Mapping[str, str]] = {
    "time_to_first_token_ms": "ttft_s",
    "inter_token_latency_ms": "tpot_s",
    "request_latency": "end_to_end_s",
}

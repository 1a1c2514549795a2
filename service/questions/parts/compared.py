"""One combination of many, as a flat row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from service.engine.answers.results import Capacity, Sizing
from service.engine.fleet.results import Assumption
from service.engine.inputs import KvCacheDtype, WeightFormat
from service.engine.layers.cache import CacheSharing
from service.questions.lines import checkpoint_of, counted, latency_of

Cell = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """One combination: what was asked, what it takes, what it costs and how fast it is."""

    model: str
    gpu: str
    weight_format: WeightFormat | None
    kv_cache_dtype: KvCacheDtype | None
    context_tokens: int
    input_tokens: int | None  # None: requests of the whole context
    output_tokens: int | None
    concurrent_requests: int | None
    request_rate_per_s: float | None
    feasible: bool
    gpus: int
    replicas: int
    tensor_parallel_size: int | None
    pipeline_parallel_size: int | None
    data_parallel_size: int | None
    expert_parallel: bool | None
    decode_context_parallel_size: int | None
    checkpoint: str | None  # what is loaded, where the catalog knows its id
    query_heads: int | None
    key_value_heads: int | None  # 1 where all heads share one latent
    kv_saved_fraction: float | None  # against a key and a value for every query head
    kv_bytes_per_token: int | None  # whole model, while windows fill
    kv_bytes_per_request: int | None  # of the whole context, over the GPUs that hold it
    kv_bytes_of_load: int | None  # of all requests at once; None at a rate
    kv_gpu_fraction: float | None  # the same, of the memory of the GPUs used
    weight_bytes: int | None  # whole model
    max_concurrent_requests: int  # of the whole deployment, within limits
    ttft_p95_s: float | None
    tpot_p95_s: float | None
    requests_per_s: float | None  # at the asked load, else at the largest
    output_tokens_per_s: float | None
    gpus_paid: int | None
    usd_per_hour: float | None
    usd_per_month: float | None
    usd_per_million_output_tokens: float | None
    provider: str | None  # whose price it is; None: no price, or the caller's own
    as_of: str | None  # the day of the price
    is_stale: bool | None
    why: str | None  # what is missing, or binds


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All combinations, in the order of the lists."""

    feasible: bool  # any of them
    rows: tuple[ComparedRow, ...]
    assumptions: tuple[Assumption, ...]  # names and values that were understood other than literally
    warnings: tuple[str, ...]
    rules_version: str


def stale_prices(rows: Iterable[ComparedRow]) -> tuple[str, ...]:
    """Return a sentence for each provider whose prices of a day are too old to rely on, with the GPUs they are of."""
    told: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if row.is_stale and row.as_of and row.provider:
            told.setdefault((row.as_of, row.provider), {})[row.gpu] = None
    return tuple(
        f"the price of {', '.join(gpus)} is of {as_of}, more than 60 days ago: ask {provider} again"
        for (as_of, provider), gpus in told.items()
    )


def line_of(row: ComparedRow) -> str:
    """Return a row on one line."""
    load = "" if row.concurrent_requests is None else f" x {row.concurrent_requests}"
    load = load if row.request_rate_per_s is None else f" at {row.request_rate_per_s:g} per s"
    cache = "" if row.kv_cache_dtype in (None, "bf16", row.weight_format) else f", cache {row.kv_cache_dtype},"
    own = "" if row.weight_format is None else f" {row.weight_format}"
    head = f"{row.model}{own}{cache} on {row.gpu}, {row.context_tokens} tokens{load}"
    if not row.feasible:
        return f"{head}: not on {counted(row.gpus, 'GPU')}; {row.why}" if row.gpus else f"{head}: {row.why}"
    speed = ""
    if row.ttft_p95_s is not None and row.tpot_p95_s is not None:
        speed = f", {latency_of(row.ttft_p95_s, row.tpot_p95_s)}"
    price = "no price" if row.usd_per_hour is None else f"{row.usd_per_hour:.2f} USD/h"
    layout = f"{row.replicas} x TP{row.tensor_parallel_size} PP{row.pipeline_parallel_size}"
    layout += f" DP{row.data_parallel_size}" if (row.data_parallel_size or 1) > 1 else ""
    layout += " EP" if row.expert_parallel else ""
    loaded = "" if row.checkpoint is None else f", {row.checkpoint}"
    return (
        f"{head}: {counted(row.gpus, 'GPU')}, {layout}, {row.max_concurrent_requests} at once{speed}, {price}{loaded}"
    )


def _asked(cell: Cell) -> dict[str, Any]:
    """Return what was asked of a cell, as its row names it."""
    context = cell.get("max_model_len") or cell["input_tokens"] + cell["output_tokens"]
    names = ("input_tokens", "output_tokens", "concurrent_requests", "request_rate_per_s")
    return {"context_tokens": context, **{name: cell.get(name) for name in names}}


def refused(cell: Cell, why: str, model: str, gpu: str) -> ComparedRow:
    """Return the row of a combination that the engine refuses."""
    known = {
        **_asked(cell), "model": model, "gpu": gpu, "weight_format": cell["weight_format"],
        "kv_cache_dtype": cell["kv_cache_dtype"], "feasible": False, "gpus": 0, "replicas": 0,
        "max_concurrent_requests": 0, "why": why,
    }  # fmt: skip
    unknown = {name: None for name in ComparedRow.__dataclass_fields__ if name not in known}
    return ComparedRow(**{**unknown, **known})


def answered(cell: Cell, told: Sizing | Capacity, sharing: CacheSharing | None) -> ComparedRow:
    """Return the row of one answer."""
    cost, state, latency, cache, layout = told.cost, told.at_load, told.latency, told.kv_cache, told.layout
    tokens = cost.at_load.usd_per_million_output_tokens if cost and cost.at_load else None
    per_request = cache.bytes_per_request
    users = cell.get("concurrent_requests")
    loaded = checkpoint_of(told.assumptions)
    missing = [warning for warning in told.warnings if warning.startswith("no price")]
    return ComparedRow(
        **_asked(cell),
        model=told.model,
        gpu=told.gpu,
        weight_format=told.weight_format,
        kv_cache_dtype=told.kv_cache_dtype,
        feasible=told.feasible,
        gpus=told.gpus,
        replicas=told.replicas,
        tensor_parallel_size=layout.tensor_parallel_size,
        pipeline_parallel_size=layout.pipeline_parallel_size,
        data_parallel_size=layout.data_parallel_size,
        expert_parallel=layout.expert_parallel,
        decode_context_parallel_size=layout.decode_context_parallel_size,
        checkpoint=None if loaded is None else str(loaded),
        query_heads=sharing.query_heads if sharing else None,
        key_value_heads=sharing.key_value_heads if sharing else None,
        kv_saved_fraction=sharing.saved_fraction if sharing else None,
        kv_bytes_per_token=cache.bytes_per_token_within_windows,
        kv_bytes_per_request=per_request,
        kv_bytes_of_load=None if users is None else users * per_request,
        kv_gpu_fraction=users * per_request / (told.gpus * told.memory_per_gpu.total_bytes)
        if users and told.gpus
        else None,
        weight_bytes=told.weights.weight_bytes,
        max_concurrent_requests=told.saturation.concurrent_requests,
        ttft_p95_s=latency.ttft_s.p95 if latency else None,
        tpot_p95_s=latency.tpot_s.p95 if latency else None,
        requests_per_s=state.requests_per_s if state else None,
        output_tokens_per_s=state.output_tokens_per_s if state else None,
        gpus_paid=cost.gpus_paid if cost else None,
        usd_per_hour=cost.usd_per_hour if cost else None,
        usd_per_month=cost.usd_per_month if cost else None,
        usd_per_million_output_tokens=tokens,
        provider=cost.provider if cost else None,
        as_of=cost.as_of if cost else None,
        is_stale=cost.is_stale if cost else None,
        why="; ".join([*told.would_fit, *missing]) or None,
    )

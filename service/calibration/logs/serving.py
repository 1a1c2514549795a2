"""A published serving run as values: what was served, what was sent, and what its users saw."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from service.calibration.logs.rows import Row, UnstatedError
from service.engine import EngineName, WeightFormat
from service.engine.time.lengths import FixedLength, Length, UniformLength

ENGINES: Final[Mapping[str, EngineName]] = {"vllm": "vllm", "tensorrt-llm": "tensorrt-llm", "sglang": "sglang"}
FORMATS: Final[Mapping[str, WeightFormat]] = {
    "bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "int8": "int8", "int4": "int4", "fp4": "nvfp4", "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
}  # fmt: skip
HALVES: Final = ("bf16", "fp16")
# InferenceX: lengths uniform between 0.8 and 1.0 of nominal.
SHORTEST_FRACTION: Final = 0.8
OPEN_REQUESTS: Final = 500
MILLISECONDS_PER_S: Final = 1e3
STATISTICS: Final[Mapping[str, float | None]] = {
    "mean": None, "p50": 50.0, "median": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One latency that a run reports."""

    quantity: str  # ttft, tpot
    percent: float | None  # None: the mean
    value_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLog:
    """One published run as its source states it; None where it states nothing."""

    case: str
    tier: str
    engine: EngineName
    version: str | None
    model: str
    gpu: str
    weight_format: WeightFormat | None
    weight_words: str  # as the source writes it
    is_cache_fp8: bool | None
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    expert_parallel: bool
    spreads_attention: bool  # attention is replicated and requests are dealt out, if the model has experts
    is_inferencex: bool
    input_tokens: int
    output_tokens: int
    inputs: Length
    outputs: Length
    request_rate_per_s: float | None
    num_requests: int
    concurrency: int | None
    latencies: tuple[Seen, ...]
    reports_latency: bool
    tokens_per_s: float | None
    tokens_per_s_per_gpu: float | None


def read_serving(row: Row) -> ServingLog:
    """Return a run as values.

    Raises:
        UnstatedError: its engine has no rules.
    """
    engine = ENGINES.get(str(row["engine"]).lower())
    if engine is None:
        raise UnstatedError(f"engine {row['engine']} has no profile")
    reported, basis, words = row["reported"], str(row.get("length_basis")), str(row["weight_precision"])
    rate = row.get("request_rate_per_s") or row.get("request_rate")
    return ServingLog(
        case=str(row["id"]),
        tier=str(row.get("quality_tier")),
        engine=engine,
        version=_version(row),
        model=str(row["model"]),
        gpu=str(row["gpu"]),
        weight_format=FORMATS.get(words.lower()),
        weight_words=words,
        is_cache_fp8=_is_fp8(row.get("kv_precision")),
        tensor_parallel_size=int(row["tp"]),
        pipeline_parallel_size=int(row.get("pp") or 1),
        data_parallel_size=int(row.get("dp") or 1),
        expert_parallel=int(row.get("ep") or 1) > 1,
        spreads_attention="attention DP" in str(row.get("notes")),
        is_inferencex="InferenceX" in str(row.get("dataset")),
        input_tokens=int(row["isl"]),
        output_tokens=int(row["osl"]),
        inputs=_length(int(row["isl"]), basis),
        outputs=_length(int(row["osl"]), basis),
        request_rate_per_s=None if rate is None else float(rate),
        num_requests=int(row.get("num_prompts") or OPEN_REQUESTS),
        concurrency=int(row["concurrency"]) if row.get("concurrency") else None,
        latencies=_latencies(reported),
        reports_latency="ttft_ms" in reported or "tpot_ms" in reported,
        tokens_per_s=reported.get("output_tokens_per_s"),
        tokens_per_s_per_gpu=reported.get("output_tokens_per_s_per_gpu"),
    )


def _version(row: Row) -> str | None:
    version = str(row.get("engine_version") or "").split()
    return version[0] if version and version[0][:1].isdigit() else None


def _is_fp8(stated: object) -> bool | None:
    return None if stated is None else str(stated).lower().startswith("fp8")


def _length(nominal_tokens: int, basis: str) -> Length:
    if f"{SHORTEST_FRACTION}x" in basis:
        return UniformLength(shortest_tokens=int(SHORTEST_FRACTION * nominal_tokens), longest_tokens=nominal_tokens)
    return FixedLength(tokens=nominal_tokens)


def _latencies(reported: Row) -> tuple[Seen, ...]:
    """Return the statistics that are known by name, of the first tokens and of those after."""
    return tuple(
        Seen(quantity=quantity, percent=STATISTICS[statistic], value_s=float(value) / MILLISECONDS_PER_S)
        for quantity in ("ttft", "tpot")
        for statistic, value in (reported.get(f"{quantity}_ms") or {}).items()
        if statistic in STATISTICS and value
    )

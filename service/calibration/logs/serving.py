"""A published serving run as values: what was served, what was sent, and what its users saw."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from service.calibration.logs.cookbook import EVENLY
from service.calibration.logs.datasets import DataSet, data_set, mean_input_tokens, spread
from service.calibration.logs.engines import LOGS, logs_of
from service.calibration.logs.ranks import Ranks, decode_workers, read_ranks
from service.calibration.logs.rows import Row, UnstatedError, remarks
from service.calibration.logs.sent import Sent, Served, read_sent, read_served, shared_tokens
from service.calibration.logs.unlike import is_doubtful, paced, refuse_contradiction, refuse_unlike
from service.engine import MILLISECONDS_PER_S, EngineName, Length, UniformLength, WeightFormat

FORMATS: Final[Mapping[str, WeightFormat]] = {
    "bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "fp8": "fp8", "int8": "int8", "int4": "int4", "uint4": "int4",
    "fp4": "nvfp4", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "awq-int4": "int4", "autoround-int4": "int4",
}  # fmt: skip
# What a checkpoint's name says where the row says nothing.
NAMED_FORMATS: Final[Mapping[str, WeightFormat]] = {
    "fp8": "fp8", "awq": "int4", "int4": "int4", "nvfp4": "nvfp4", "mxfp4": "mxfp4",
}  # fmt: skip
# InferenceX: lengths uniform between 0.8 and 1.0 of nominal.
SHORTEST_FRACTION: Final = 0.8
# What a document advises in the end: its further cases are run so, beside those without any of it.
ADVISED_FP8: Final = ("performance-lab/qwen3.5-35b-a3b/h200.md", "--performance-mode=throughput")
QUANTITIES: Final[Mapping[str, str]] = {"ttft_ms": "ttft", "tpot_ms": "tpot", "e2e_ms": "e2e"}
STATISTICS: Final[Mapping[str, float | None]] = {
    "mean": None, "p50": 50.0, "median": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One latency that a run reports."""

    quantity: str  # ttft, tpot, e2e
    percent: float | None  # None: the mean
    value_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLog:
    """One published run as its source states it; None where it states nothing."""

    case: str
    source: str
    tier: str
    engine: EngineName
    version: str | None
    stated_version: str
    model: str
    gpu: str
    weight_format: WeightFormat | None  # None: the model's own
    is_cache_fp8: bool | None
    ranks: Ranks
    is_inferencex: bool
    input_tokens: int
    output_tokens: int
    unknown_tokens: int  # by how much prompts may be longer or shorter on average
    shared_tokens: int
    inputs: Length
    outputs: Length
    sent: Sent
    arrives_read: bool  # into a pool that decodes alone
    served: Served
    limits_s: Mapping[str, float]  # that the run had to keep, by quantity, at p99
    saturated: bool | None
    is_doubtful: bool  # its source, or whoever collected it, says what makes it unlike others
    latencies: tuple[Seen, ...]
    reports_latency: bool
    tokens_per_s: float | None
    tokens_per_s_per_gpu: float | None


def read_serving(row: Row) -> ServingLog:
    """Return a run as values.

    Raises:
        UnstatedError: its engine has no rules, or the row lacks what a simulation needs.
    """
    logs = logs_of(str(row["engine"]))
    if logs is None:
        raise UnstatedError(f"engine {row['engine']} has no profile")
    refuse_unlike(row)
    reported, basis, name = row["reported"], str(row.get("length_basis")), str(row.get("dataset"))
    known = data_set(row)
    refuse_contradiction(row)
    input_tokens, output_tokens = mean_input_tokens(row.get("isl"), known, name), float(row["osl"])
    return ServingLog(
        case=str(row["id"]),
        source=str(row["source"]),
        tier=str(row.get("quality_tier")),
        engine=logs.engine,
        version=_version(row, logs.engine),
        stated_version=str(row.get("engine_version")),
        model=str(row["model"]).lstrip("- "),
        gpu=str(row["gpu"]),
        weight_format=_format(row),
        is_cache_fp8=_is_fp8(row),
        ranks=read_ranks(row),
        is_inferencex="InferenceX" in name,
        input_tokens=round(input_tokens),
        output_tokens=max(round(output_tokens), 1),
        unknown_tokens=0 if known is None or row.get("isl") is not None else known.unknown_tokens,
        shared_tokens=shared_tokens(row),
        inputs=_length(input_tokens, basis, known, "input"),
        outputs=_length(output_tokens, basis, known, "output"),
        sent=read_sent(row),
        arrives_read=decode_workers(row) > 0,
        served=read_served(row),
        limits_s=_limits(row),
        saturated=row.get("saturated"),
        is_doubtful=is_doubtful(row),
        latencies=tuple(_told(row)) or _of_full_batch(row),
        reports_latency=any(name in reported for name in QUANTITIES) or "energy" in row,
        tokens_per_s=None if decode_workers(row) else reported.get("output_tokens_per_s"),
        tokens_per_s_per_gpu=reported.get("output_tokens_per_s_per_gpu"),
    )


def _version(row: Row, engine: EngineName) -> str | None:
    version = str(row.get("engine_version") or "").removeprefix("v").split()
    if version and version[0][:1].isdigit():
        return version[0]
    return LOGS[engine].newest_of_day(str(row.get("date") or ""))


def _format(row: Row) -> WeightFormat | None:
    """Return the format as stated, else as the checkpoint's name has it; None: the model's own.

    Raises:
        UnstatedError: the words mean no format.
    """
    words, name = row.get("weight_precision"), str(row["model"]).lower()
    if words is None:
        by_name = next((known for part, known in NAMED_FORMATS.items() if part in name), None)
        return by_name or ("fp8" if _is_quantized(row) else None)
    stated = FORMATS.get(str(words).lower().split(" (")[0])
    if stated is None:
        raise UnstatedError(f"weight precision {words} has no format")
    # AMD's matrix cores know the open form of four bits alone.
    return "mxfp4" if stated == "nvfp4" and "AMD" in str(row["gpu"]) else stated


def _is_quantized(row: Row) -> bool:
    """Return whether a run's heading, or its document's advice, says that the checkpoint in fp8 was served.

    Source:
        GPUStack docs/performance-lab: sections named "Quantization", after which "Serving Command" is in fp8.
    """
    section = remarks(row).partition("Section: ")[2].partition(". Requests")[0]
    page, advised = ADVISED_FP8
    return "Quantization" in section or (str(row.get("source_url")).endswith(page) and advised in remarks(row))


def _is_fp8(row: Row) -> bool | None:
    stated = str(row.get("kv_precision") or "auto").lower()
    if "kv-cache-dtype=fp8" in str(row.get("notes")) or "kv-cache-dtype fp8" in str(row.get("notes")):
        return True
    return None if stated == "auto" else stated.startswith("fp8")


def _length(mean_tokens: float, basis: str, known: DataSet | None, side: str) -> Length:
    if f"{SHORTEST_FRACTION}x" in basis:
        nominal = int(mean_tokens)
        return UniformLength(shortest_tokens=int(SHORTEST_FRACTION * nominal), longest_tokens=nominal)
    if basis == EVENLY:
        return UniformLength(shortest_tokens=1, longest_tokens=max(round(2 * mean_tokens) - 1, 1))
    return spread(mean_tokens, 0.0 if known is None else getattr(known, f"{side}_variation"))


def _limits(row: Row) -> dict[str, float]:
    stated = row.get("slo_ms") or {}
    return {name.removesuffix("_p99"): float(limit) / MILLISECONDS_PER_S for name, limit in stated.items()}


def _told(row: Row) -> Iterator[Seen]:
    """Yield the latencies of a row; of pools, those between tokens alone: what moving caches takes is in no row."""
    for seen in _latencies(paced(row)):
        if seen.quantity == "tpot" or not decode_workers(row):
            yield seen


def _latencies(reported: Row) -> Iterator[Seen]:
    """Yield the statistics that are known by name: of first tokens, of those after, and of whole requests."""
    for name, quantity in QUANTITIES.items():
        for statistic, value in (reported.get(name) or {}).items():
            if statistic in STATISTICS and value:
                seconds = float(value) / MILLISECONDS_PER_S
                yield Seen(quantity=quantity, percent=STATISTICS[statistic], value_s=seconds)


def _of_full_batch(row: Row) -> tuple[Seen, ...]:
    """Return the pace of a batch that is always full: requests in it / tokens per second."""
    batch, tokens_per_s = row.get("avg_batch_size"), row["reported"].get("output_tokens_per_s")
    if not batch or not tokens_per_s:
        return ()
    return (Seen(quantity="tpot", percent=None, value_s=float(batch) / float(tokens_per_s)),)

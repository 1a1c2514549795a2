"""What the serving engine itself computed, against the engine's cache plan and weights."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.calibration.logs.oracle_rows import oracle_configs, row_quantization
from service.calibration.logs.rows import Row, Skipped
from service.catalog.engine_rules import rules_for
from service.engine import (
    Architecture,
    Checkpoint,
    EngineError,
    Gpu,
    Layout,
    ModelFacts,
    StatedSettings,
    parse_architecture,
    plan_replica,
    rank_weights,
)


@dataclass(slots=True, kw_only=True)
class OracleReport:
    """Equality of cache plans by kinds of layers, relative errors of weights by case, and what was left out."""

    caches: dict[str, list[bool]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)


def compare_oracle(rows: Sequence[Row], gpu: Gpu) -> OracleReport:
    """Return how far the engine is from the planner's rows, which were computed on such a GPU."""
    configs = oracle_configs(rows)
    architectures = dict(_architectures(rows, configs))
    report = OracleReport()
    for row in rows:
        architecture = architectures[str(row["config"])]
        if isinstance(architecture, Skipped):
            report.skipped.append(architecture)
        else:
            model = _model(row, configs[row["config"]], architecture)
            _compare(row, model, gpu, report)
    return report


def _compare(row: Row, model: ModelFacts, gpu: Gpu, report: OracleReport) -> None:
    """Note whether a row's cache plan is equal, and how far its weights are off."""
    kinds = " + ".join(sorted({spec["kind"] for spec in row["layer_specs"]}))
    report.caches.setdefault(kinds, []).append(cache_is_equal(row, model, gpu))
    expected = (row.get("weights") or {}).get("param_bytes")
    case = f"{row['config']} tp{row['tp']}"
    if expected and case not in report.weights:
        quantization = model.checkpoints[0].quantization
        layout = Layout(tensor_parallel_size=row["tp"])
        report.weights[case] = (
            rank_weights(model.architecture, layout=layout, quantization=quantization).param_bytes / expected - 1
        )


def cache_is_equal(row: Row, model: ModelFacts, gpu: Gpu) -> bool:
    """Return whether blocks, tokens and concurrency (or the estimated length) are the engine's own."""
    stated = StatedSettings(
        kv_cache_dtype="fp8" if row["cache_dtype"].startswith("fp8") else "auto",
        kv_cache_memory_bytes=row["available_kv_bytes"],
        max_model_len=row["max_model_len"],
        max_num_batched_tokens=row["max_num_batched_tokens"],
        max_num_seqs=row["max_num_seqs"],
    )
    cache = plan_replica(model, gpu, Layout(tensor_parallel_size=row["tp"]), stated, rules_for("vllm")).kv_cache
    if cache.num_gpu_blocks != row["num_gpu_blocks"]:
        return False
    if not row["fits"]:
        return cache.estimated_max_model_len == int(row["estimated_max_model_len"])
    same_concurrency = round(cache.max_concurrency, 2) == round(float(row["max_concurrency"]), 2)
    return cache.tokens == int(row["kv_cache_size_tokens"]) and same_concurrency


def _architectures(
    rows: Sequence[Row], configs: Mapping[str, dict[str, Any]]
) -> Iterator[tuple[str, Architecture | Skipped]]:
    """Yield each config's architecture by name, or why there is none."""
    for name in dict.fromkeys(str(row["config"]) for row in rows):
        if name not in configs:
            yield name, Skipped(case=name, reason="its config is not at hand")
            continue
        try:
            yield name, parse_architecture(configs[name])
        except EngineError as refusal:
            yield name, Skipped(case=name, reason=refusal.detail)


def _model(row: Row, config: dict[str, Any], architecture: Architecture) -> ModelFacts:
    """Return what a row's planner had loaded."""
    checkpoint = Checkpoint(
        weight_format="bf16",
        quantization=row_quantization(row, config),
        hf_id=None,
        is_default=True,
        kv_cache_dtype="fp8" if row["cache_dtype"] == "fp8_e4m3" else None,
        source=None,
    )
    return ModelFacts(id=str(row["config"]), architecture=architecture, checkpoints=(checkpoint,), source=None)

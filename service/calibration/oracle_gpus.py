"""What the serving engine computed on other GPUs and under other settings: posed to the engine row by row."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from service.calibration.logs.oracle_rows import gpu_configs
from service.calibration.logs.rows import Row, Skipped
from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import (
    Checkpoint,
    EngineError,
    Layout,
    MemoryPlan,
    ModelFacts,
    StatedSettings,
    check_layout,
    parse_architecture,
    parse_quantization,
    plan_replica,
    rank_weights,
    stated_quantization,
)

VERSION: Final = "0.33"  # that computed the rows
# GPUs as the rows name them, and as the catalog does.
GPUS: Final[Mapping[str, str]] = {
    "H100": "h100-sxm-80gb",
    "H200": "h200",
    "B200": "b200",
    "A100-80GB": "a100-sxm-80gb",
    "L40S": "l40s",
    "RTX3090": "rtx-3090",
    "RTX4090": "rtx-4090",
    "RTX5090": "rtx-5090",
    "RTXPRO6000": "rtx-pro-6000",
}
BATCHED_TOKENS: Final = 8_192  # where a row was refused before it had any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One row beside our answer."""

    case: str
    gpu: str
    is_equal: bool  # the plan, or that both refuse
    weight_error: float | None  # of one rank's parameters; None where a row states none or either refuses


def compare_gpus(rows: Sequence[Row], older: Sequence[Row], catalog: Snapshot) -> tuple[list[Answered], list[Skipped]]:
    """Return every row beside our answer, and those without a config at hand."""
    configs = gpu_configs(rows, older)
    skipped = [
        Skipped(case=row["config"], reason="its config is not at hand") for row in rows if row["config"] not in configs
    ]
    return [_answered(row, configs[row["config"]], catalog) for row in rows if row["config"] in configs], skipped


def _answered(row: Row, config: Mapping[str, Any], catalog: Snapshot) -> Answered:
    case = f"{row['gpu']} {row['config'].removesuffix('_config.json')} tp{row['tp']} {row['kv_cache_dtype']}"
    try:
        plan = _posed(row, config, catalog)
    except EngineError:
        return Answered(case=case, gpu=row["gpu"], is_equal=not row["ok"], weight_error=None)
    is_equal = row["ok"] and _is_equal(row, plan)
    return Answered(case=case, gpu=row["gpu"], is_equal=is_equal, weight_error=_weight_error(row, plan))


def _posed(row: Row, config: Mapping[str, Any], catalog: Snapshot) -> MemoryPlan:
    """Return the plan of what is deployed.

    Raises:
        EngineError: we refuse it.
    """
    case = row["case"]
    stated = StatedSettings(
        kv_cache_dtype=row["kv_cache_dtype"],
        quantization="fp8" if case.startswith("quantization=fp8") else None,
        max_model_len=row.get("max_model_len") or row["requested_max_model_len"],
        max_num_batched_tokens=row.get("max_num_batched_tokens", BATCHED_TOKENS),
        max_num_seqs=row.get("max_num_seqs"),
        block_size=row["block_size"] if case.startswith("block_size=") else None,
        enable_prefix_caching=False if case == "prefix caching off" else None,
        kv_cache_memory_bytes=row["available_kv_bytes"],
    )
    layout = Layout(
        tensor_parallel_size=row["tp"],
        expert_parallel=case == "expert_parallel",
        decode_context_parallel_size=2 if case == "decode_context_parallel" else 1,
    )
    model, gpu = _facts(config), catalog.gpu(GPUS[row["gpu"]])
    plan = plan_replica(model, gpu, layout, stated, rules_for("vllm", VERSION), input_tokens=1, output_tokens=1)
    check_layout(plan.model.architecture, plan.checkpoint.quantization, layout, plan.device)
    return plan


def _facts(config: Mapping[str, Any]) -> ModelFacts:
    quantization = parse_quantization(stated_quantization(config))
    own = Checkpoint(
        weight_format=quantization.weight_format or "bf16",
        quantization=quantization,
        hf_id=None,
        is_default=True,
        kv_cache_dtype=quantization.kv_cache_dtype,
        source=None,
    )
    architecture = parse_architecture(config)
    return ModelFacts(
        id=architecture.name,
        architecture=architecture,
        checkpoints=(own,),
        source=None,
        config_json=json.dumps(config, sort_keys=True),
    )


def _is_equal(row: Row, plan: MemoryPlan) -> bool:
    """Return whether blocks and tokens (or the estimated length) are the engine's own."""
    cache = plan.kv_cache
    if cache.num_gpu_blocks != row["num_gpu_blocks"] or cache.block_size != row["block_size"]:
        return False
    if not row["fits"]:
        return bool(cache.estimated_max_model_len == int(row["estimated_max_model_len"]))
    return bool(cache.tokens == int(row["kv_cache_size_tokens"]))


def _weight_error(row: Row, plan: MemoryPlan) -> float | None:
    expected = (row.get("weights") or {}).get("param_bytes")
    if not expected:
        return None
    quantization = plan.checkpoint.quantization
    ours = rank_weights(plan.model.architecture, layout=plan.layout, quantization=quantization, device=plan.device)
    return ours.param_bytes / float(expected) - 1

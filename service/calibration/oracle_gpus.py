"""What the serving engine computed on other GPUs and under other settings: posed to the engine row by row."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from service.calibration.startups import Skipped
from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.errors import EngineError
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.families import parse_architecture, stated_quantization
from service.engine.fleet.planned import legal_layouts, planned
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import Resolved, resolve
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import Layout, StatedLayout
from service.engine.memory.plan import MemoryPlan
from service.engine.memory.weights import rank_weights

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


def gpu_configs(rows: Sequence[Mapping[str, Any]], older: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return configs by the rows' names: inline in any row, as a dependency ships them, or in the older file."""
    before = {row["config"].replace("/", "--") + "_config.json": row["config_json"] for row in inline(older)}
    found = {row["config"]: row["config_json"] for row in inline(rows)}
    folder = resources.files("aiconfigurator_core").joinpath("model_configs")
    for name in {row["config"] for row in rows} - set(found):
        if folder.joinpath(name).is_file():
            found[name] = json.loads(folder.joinpath(name).read_text(encoding="utf-8"))
        elif name in before:
            found[name] = before[name]
    return found


def inline(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows that hold their config."""
    return (row for row in rows if row.get("config_json"))


def compare_gpus(
    rows: Sequence[Mapping[str, Any]], older: Sequence[Mapping[str, Any]], catalog: Snapshot
) -> tuple[list[Answered], list[Skipped]]:
    """Return every row beside our answer, and those without a config at hand."""
    configs = gpu_configs(rows, older)
    skipped = [
        Skipped(case=row["config"], reason="its config is not at hand") for row in rows if row["config"] not in configs
    ]
    return [_answered(row, configs[row["config"]], catalog) for row in rows if row["config"] in configs], skipped


def _answered(row: Mapping[str, Any], config: Mapping[str, Any], catalog: Snapshot) -> Answered:
    case = f"{row['gpu']} {row['config'].removesuffix('_config.json')} tp{row['tp']} {row['kv_cache_dtype']}"
    try:
        resolved, layout = _posed(row, config, catalog)
        plan = planned(resolved, layout, 1, 1)
    except EngineError:
        return Answered(case=case, gpu=row["gpu"], is_equal=not row["ok"], weight_error=None)
    is_equal = row["ok"] and _is_equal(row, plan)
    return Answered(case=case, gpu=row["gpu"], is_equal=is_equal, weight_error=_weight_error(row, resolved, layout))


def _posed(row: Mapping[str, Any], config: Mapping[str, Any], catalog: Snapshot) -> tuple[Resolved, Layout]:
    """Return what is deployed.

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
    layout = StatedLayout(
        tensor_parallel_size=row["tp"],
        pipeline_parallel_size=1,
        expert_parallel=case == "expert_parallel",
        decode_context_parallel_size=2 if case == "decode_context_parallel" else None,
    )
    resolved = resolve(_facts(config), catalog.gpu(GPUS[row["gpu"]]), stated, rules_for("vllm", VERSION))
    return resolved, legal_layouts(resolved, layout)[0]


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


def _is_equal(row: Mapping[str, Any], plan: MemoryPlan) -> bool:
    """Return whether blocks and tokens (or the estimated length) are the engine's own."""
    cache = plan.kv_cache
    if cache.num_gpu_blocks != row["num_gpu_blocks"] or cache.block_size != row["block_size"]:
        return False
    if not row["fits"]:
        return bool(cache.estimated_max_model_len == int(row["estimated_max_model_len"]))
    return bool(cache.tokens == int(row["kv_cache_size_tokens"]))


def _weight_error(row: Mapping[str, Any], resolved: Resolved, layout: Layout) -> float | None:
    expected = (row.get("weights") or {}).get("param_bytes")
    if not expected:
        return None
    quantization = resolved.checkpoint.quantization
    device = device_of(resolved.gpu, resolved.rules)
    ours = rank_weights(resolved.model.architecture, layout=layout, quantization=quantization, device=device)
    return ours.param_bytes / float(expected) - 1

"""What the serving engine itself computed, against the engine's cache plan and weights."""

import json
from importlib import resources
from typing import Any

from service.calibration.startups import Skipped
from service.engine.errors import EngineError
from service.engine.families import parse_architecture, stated_quantization
from service.engine.formats.quantization import Quantization, parse_quantization, standard_quantization
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import Architecture
from service.engine.memory.shared_pool import plan_kv_cache
from service.engine.memory.weights import rank_weights

MODELOPT_FOUR_BITS = "modelopt_fp4"  # as the serving engine names the method
QUANTIZED_DTYPES = frozenset({"uint8", "float8_e4m3fn"})


def oracle_configs(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return each row's config by name: inline, or as a dependency ships it.

    A quantization that stands in a file beside the config was loaded for some rows; their dtypes say which.
    """
    quantized = {
        row["config"]
        for row in rows
        if QUANTIZED_DTYPES & set((row.get("weights") or {}).get("param_bytes_by_dtype", {}))
    }
    configs = {row["config"]: row["config_json"] for row in rows if row.get("config_json")}
    shipped = resources.files("aiconfigurator_core").joinpath("model_configs")
    for name in {row["config"] for row in rows}:
        stem = name.replace("/", "--")
        if name not in configs:
            file = shipped.joinpath(f"{stem}_config.json")
            if not file.is_file():
                continue
            configs[name] = json.loads(file.read_text(encoding="utf-8"))
        beside = shipped.joinpath(f"{stem}_hf_quant_config.json")
        if name in quantized and beside.is_file() and "quantization_config" not in configs[name]:
            configs[name] = {**configs[name], "hf_quant_config": json.loads(beside.read_text(encoding="utf-8"))}
    return configs


def row_quantization(row: dict[str, Any], config: dict[str, Any]) -> Quantization:
    """Return how a row's checkpoint was loaded: as its config states, or the usual recipe of the method the row names.

    A row may name ModelOpt's four bits where the file that says so stands beside the config and is not at hand.
    """
    stated = stated_quantization(config)
    if stated is None and row.get("quantization") == MODELOPT_FOUR_BITS:
        return standard_quantization("nvfp4")
    return parse_quantization(stated)


def cache_is_equal(row: dict[str, Any], architecture: Architecture) -> bool:
    """Return whether blocks, tokens and concurrency (or the estimated length) are the engine's own."""
    plan = plan_kv_cache(
        architecture,
        layout=Layout(tensor_parallel_size=row["tp"]),
        settings=EngineSettings(
            gpu_memory_utilization=1.0,
            kv_cache_dtype="fp8" if row["cache_dtype"].startswith("fp8") else "auto",
            is_checkpoints_cache_dtype=row["cache_dtype"] == "fp8_e4m3",
            max_model_len=row["max_model_len"],
            max_num_batched_tokens=row["max_num_batched_tokens"],
            max_num_seqs=row["max_num_seqs"],
        ),
        available_bytes=row["available_kv_bytes"],
    )
    if plan.num_gpu_blocks != row["num_gpu_blocks"]:
        return False
    if not row["fits"]:
        return plan.estimated_max_model_len == int(row["estimated_max_model_len"])
    same_concurrency = round(plan.max_concurrency, 2) == round(float(row["max_concurrency"]), 2)
    return plan.tokens == int(row["kv_cache_size_tokens"]) and same_concurrency


def compare_oracle(
    rows: list[dict[str, Any]],
) -> tuple[dict[str, list[bool]], list[tuple[str, float]], list[Skipped]]:
    """Return equality of cache plans by family, relative errors of weights, and what was skipped."""
    configs = oracle_configs(rows)
    architectures: dict[str, Architecture | EngineError] = {}
    caches: dict[str, list[bool]] = {}
    weights: dict[str, float] = {}
    skipped: list[Skipped] = []
    for row in rows:
        name = str(row["config"])
        if name not in configs:
            skipped.append(Skipped(case=name, reason="its config is not at hand"))
            continue
        if name not in architectures:
            architectures[name] = _parsed(configs[name])
        architecture = architectures[name]
        if isinstance(architecture, EngineError):
            skipped.append(Skipped(case=name, reason=architecture.detail))
            continue
        family = " + ".join(sorted({spec["kind"] for spec in row["layer_specs"]}))
        caches.setdefault(family, []).append(cache_is_equal(row, architecture))
        expected = (row.get("weights") or {}).get("param_bytes")
        case = f"{name} tp{row['tp']}"
        if expected and case not in weights:
            ours = rank_weights(
                architecture,
                layout=Layout(tensor_parallel_size=row["tp"]),
                quantization=row_quantization(row, configs[name]),
            ).param_bytes
            weights[case] = ours / expected - 1
    return caches, list(weights.items()), skipped


def _parsed(config: dict[str, Any]) -> Architecture | EngineError:
    try:
        return parse_architecture(config)
    except EngineError as refusal:
        return refusal

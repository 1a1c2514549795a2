"""Rows that a serving engine's own planner computed: their configs, and how their checkpoints were loaded."""

import json
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any, Final

from service.calibration.logs.rows import Row
from service.engine import Quantization, parse_quantization, standard_quantization, stated_quantization

MODELOPT_FOUR_BITS: Final = "modelopt_fp4"  # as the serving engine names the method
QUANTIZED_DTYPES: Final = frozenset({"uint8", "float8_e4m3fn"})


def oracle_configs(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
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


def row_quantization(row: Row, config: dict[str, Any]) -> Quantization:
    """Return how a row's checkpoint was loaded: as its config states, or the usual recipe of the method the row names.

    A row may name ModelOpt's four bits where the file that says so stands beside the config and is not at hand.
    """
    stated = stated_quantization(config)
    if stated is None and row.get("quantization") == MODELOPT_FOUR_BITS:
        return standard_quantization("nvfp4")
    return parse_quantization(stated)


def gpu_configs(rows: Sequence[Row], older: Sequence[Row] = ()) -> dict[str, Any]:
    """Return configs by the rows' names: inline in any row, as a dependency ships them, or in the older file."""
    before = {row["config"].replace("/", "--") + "_config.json": row["config_json"] for row in inline(older)}
    configs = {row["config"]: row["config_json"] for row in inline(rows)}
    folder = resources.files("aiconfigurator_core").joinpath("model_configs")
    for name in {row["config"] for row in rows} - set(configs):
        if folder.joinpath(name).is_file():
            configs[name] = json.loads(folder.joinpath(name).read_text(encoding="utf-8"))
        elif name in before:
            configs[name] = before[name]
    return configs


def inline(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows that hold their config."""
    return (row for row in rows if row.get("config_json"))

"""Weights of one rank against the parameters that vLLM 0.33 instantiated."""

from collections.abc import Callable
from typing import Any

import pytest

from service.calibration.logs.oracle_rows import oracle_configs, row_quantization
from service.engine.errors import UnsupportedModelError
from service.engine.families import parse_architecture
from service.engine.inputs import Layout
from service.engine.memory.weights import rank_weights
from tests.conftest import referee_rows

ROWS = [row for row in referee_rows("vllm_kv_oracle.jsonl") if "param_bytes" in (row.get("weights") or {})]
CONFIGS = oracle_configs(ROWS)
CASES = {(row["config"], row["tp"]): row for row in ROWS}


def loaded(row: dict[str, Any]) -> int:
    config = CONFIGS[row["config"]]
    return rank_weights(
        parse_architecture(config),
        layout=Layout(tensor_parallel_size=row["tp"]),
        quantization=row_quantization(row, config),
    ).param_bytes


def test_most_are_equal_and_all_others_are_close(record_property: Callable[[str, object], None]) -> None:
    errors: dict[tuple[str, int], float] = {}
    for case, row in CASES.items():
        errors[case] = loaded(row) / row["weights"]["param_bytes"] - 1
    equal = sum(error == 0 for error in errors.values())
    record_property("compared", f"weights: {equal} of {len(CASES)} equal, none left out")

    assert equal >= 0.8 * len(CASES)
    assert {case: error for case, error in errors.items() if abs(error) > 0.005} == {}


def test_a_model_without_a_rule_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModelError, match="MadeUpForCausalLM"):
        parse_architecture({"architectures": ["MadeUpForCausalLM"]})

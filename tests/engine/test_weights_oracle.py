"""Weights of one rank against the parameters that vLLM 0.33 instantiated."""

from collections.abc import Callable
from typing import Any

import pytest

from service.calibration.oracle import oracle_configs
from service.engine.config import parse_architecture
from service.engine.config.quantization import parse_quantization, standard_quantization, stated_quantization
from service.engine.errors import UnsupportedModelError
from service.engine.inputs import Layout
from service.engine.weights import rank_weights
from tests.conftest import referee_rows

ROWS = [row for row in referee_rows("vllm_kv_oracle.jsonl") if "param_bytes" in (row.get("weights") or {})]
CONFIGS = oracle_configs(ROWS)
CASES = {(row["config"], row["tp"]): row["weights"]["param_bytes"] for row in ROWS}
MISSES = frozenset({"nvidia/Qwen3-30B-A3B-NVFP4"})  # its quantization is in no file that is at hand


def loaded(config: dict[str, Any], tensor_parallel_size: int) -> int:
    return rank_weights(
        parse_architecture(config),
        layout=Layout(tensor_parallel_size=tensor_parallel_size),
        quantization=parse_quantization(stated_quantization(config)),
    ).param_bytes


def test_most_are_equal_and_all_others_are_close(record_property: Callable[[str, object], None]) -> None:
    errors: dict[tuple[str, int], float] = {}
    for (config, tp), expected in CASES.items():
        if config in MISSES:
            continue
        errors[config, tp] = loaded(CONFIGS[config], tp) / expected - 1
    equal = sum(error == 0 for error in errors.values())
    record_property("compared", f"weights: {equal} of {len(CASES)} equal, {len(MISSES)} configs left out")

    assert equal >= 0.8 * len(CASES)
    assert {case: error for case, error in errors.items() if abs(error) > 0.005} == {}


def test_the_standard_recipe_equals_a_published_checkpoint() -> None:
    config = CONFIGS["nvidia/Qwen3-30B-A3B-NVFP4"]

    ours = rank_weights(
        parse_architecture(config), layout=Layout(), quantization=standard_quantization("nvfp4")
    ).param_bytes

    assert ours == CASES["nvidia/Qwen3-30B-A3B-NVFP4", 1]


def test_a_model_without_a_rule_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModelError, match="MadeUpForCausalLM"):
        parse_architecture({"architectures": ["MadeUpForCausalLM"]})

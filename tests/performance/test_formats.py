"""Formats obey physics: where a GPU has no tensor cores for a precision, it saves bytes and no multiplications."""

from collections.abc import Mapping
from typing import Final

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.formats.quantization import UNQUANTIZED, Quantization, parse_quantization
from service.engine.inputs import Gpu, Layout
from service.engine.time.records import TOKENS
from service.performance.roofline import FLOOR, roofline_tables
from service.performance.workload import workload_of

# Configs as checkpoints state them, and the precision whose tensor cores would multiply faster; None: none does.
FORMATS: Final[Mapping[str, tuple[Mapping[str, object], str | None]]] = {
    "fp8": ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "fp8"),
    "block-fp8": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 128}, None),
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 128}, None),
    "nvfp4": ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_without_tensor_cores_multiplies_no_faster_than_two_bytes(catalog: Snapshot, name: str) -> None:
    config, operand = FORMATS[name]
    quantization, compared = parse_quantization(dict(config)), 0
    for gpu in catalog.gpus.values():
        if gpu.peak_flop_per_s and (operand is None or operand not in gpu.peak_flop_per_s):
            assert longest_step(catalog, gpu, quantization) >= 0.999 * longest_step(catalog, gpu, UNQUANTIZED), gpu.id
            compared += 1

    assert compared >= 10


def longest_step(catalog: Snapshot, gpu: Gpu, quantization: Quantization) -> float:
    """Return the least seconds of the largest batch, which multiplications bound."""
    work = workload_of(catalog.model("llama-3.1-8b").architecture, quantization, gpu, Layout(), "auto")
    return roofline_tables(work, gpu, Layout(), FLOOR).tokens[TOKENS.index(TOKENS[-1])]

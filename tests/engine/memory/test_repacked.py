"""What loading adds to weights, against what start-ups print."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.inputs import Layout
from service.engine.memory.weights import rank_weights

GIB = 1 << 30
# Qwen3.8-27B in fp8 blocks with its draft layer, vLLM 0.27: `gpu: GiB that loading took`. On Blackwell text alone, one
# of two ranks (github.com/vllm-project/recipes pull request 810); on an A100 a public start-up of 2026.
PRINTED = {"a100-80gb": (1, 29.36), "rtx-5090": (2, 14.28)}


@pytest.mark.parametrize("gpu", PRINTED)
def test_scales_of_blocks_are_spread_where_no_fp8_is_multiplied(catalog: Snapshot, gpu: str) -> None:
    """vLLM's `prepare_fp8_layer_for_marlin`: scales of a block are repeated for each of its rows, in two bytes."""
    model = catalog.model("qwen3.8-27b")
    fp8 = next(each for each in model.checkpoints if each.weight_format == "fp8")
    ranks, printed = PRINTED[gpu]
    weights = rank_weights(
        model.architecture,
        layout=Layout(tensor_parallel_size=ranks),
        quantization=fp8.quantization,
        draft=model.architecture.mtp,
        device=device_of(catalog.gpu(gpu), rules_for("vllm", "0.27.1")),
    )

    loaded = weights.loaded_bytes
    if gpu == "rtx-5090":
        loaded -= weights.by_component["encoder"]
    assert loaded / GIB == pytest.approx(printed, rel=0.005)

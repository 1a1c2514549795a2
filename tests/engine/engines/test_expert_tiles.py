"""gpt-oss's experts in kernels of an engine's own: TensorRT-LLM 1.1 and 1.2.

`_torch/modules/fused_moe/quantization.py` (`create_weights`) and `fused_moe_triton.py` of both.
"""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.engines.expert_kernels import expert_kernels
from service.engine.formats.matrix import Matrix
from service.engine.inputs import Layout
from service.engine.memory.weights import rank_weights

UP = Matrix(module="experts.gate_up_proj", rows=5_760, columns=2_880, parts=2, inner_side="rows", own_multiple=64)
DOWN = Matrix(module="experts.down_proj", rows=2_880, columns=2_880, inner_side="columns", own_multiple=64)


def test_cutlass_pads_gpt_oss_to_what_tensorrt_llm_says_it_uses(catalog: Snapshot) -> None:
    """A DGX Spark of December 2025, `moe_backend='CUTLASS'`, as its log says.

    "[TensorRT-LLM] TensorRT-LLM version: 1.1.0rc3 … [TRT-LLM] [I] Use 63.32 GB for model weights."; 60.77 unpadded.
    """
    model = catalog.model("gpt-oss-120b")
    own = next(each for each in model.checkpoints if each.weight_format == "mxfp4")
    held, unpadded = (
        rank_weights(
            model.architecture,
            layout=Layout(),
            quantization=own.quantization,
            device=device_of(catalog.gpu("gb10"), rules_for("tensorrt-llm", version)),
        )
        for version in ("1.1.0rc3", "1.0")
    )

    assert round(held.param_bytes / 2**30, 2) == 63.32
    assert round(unpadded.param_bytes / 2**30, 2) == 60.77


@pytest.mark.parametrize(
    ("gpu", "version", "up", "down"),
    [
        ("gb10", "1.2", (5_888, 2_944), (2_944, 2_944)),
        ("h100", "1.2", (5_888, 2_944), (3_072, 2_944)),
        # Pull request 9025: "FC1 [5888, 3072]", and of what comes out 2944.
        ("b200", "1.2", (5_888, 3_072), (2_944, 2_944)),
        ("b200", "1.1", (5_888, 2_944), (2_944, 2_944)),
        ("b200", "1.0", (5_760, 2_880), (2_880, 2_880)),
    ],
)
def test_tensorrt_llm_pads_by_generation(
    catalog: Snapshot, gpu: str, version: str, up: tuple[int, int], down: tuple[int, int]
) -> None:
    storage = expert_kernels(device_of(catalog.gpu(gpu), rules_for("tensorrt-llm", version))).storage
    held = [storage.padded(matrix, "mxfp4") for matrix in (UP, DOWN)]

    assert [(matrix.rows, matrix.columns) for matrix in held] == [up, down]


def test_other_experts_stay_as_they_are_in_tensorrt_llm(catalog: Snapshot) -> None:
    storage = expert_kernels(device_of(catalog.gpu("b200"), rules_for("tensorrt-llm", "1.2"))).storage
    other = Matrix(module="experts.gate_up_proj", rows=5_760, columns=2_880, parts=2, inner_side="rows")

    assert storage.padded(other, "mxfp4") == other

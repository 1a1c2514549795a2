"""What the engine refuses to start on a GPU."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.fleet.starts import lacks_kernels


@pytest.mark.parametrize(
    ("gpu", "weight_format", "lacks"),
    # docs.vllm.ai/en/latest/features/quantization: by compute capability 7.0 (V100), 7.5 (T4), 8.0 (A100), 9.0 (H100)
    [
        ("t4", "fp8", False),
        ("t4", "mxfp4", True),
        ("t4", "bf16", True),
        ("a100-sxm-80gb", "nvfp4", False),
        ("h100", "int4", False),
    ],
)
def test_formats_without_kernels_on_a_gpu(catalog: Snapshot, gpu: str, weight_format: str, lacks: bool) -> None:  # noqa: FBT001 - a column
    assert lacks_kernels(catalog.gpu(gpu), weight_format) is lacks  # type: ignore[arg-type]

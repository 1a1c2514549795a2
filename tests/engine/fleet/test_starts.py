"""What the engine refuses to start on a GPU."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.errors import EngineError, RefusedStartError
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.fleet.starts import check_block_size, lacks_kernels


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


@pytest.mark.parametrize("version", ["0.8.5", "0.33"])
def test_vllm_reads_blocks_of_whole_multiples_of_sixteen(catalog: Snapshot, version: str) -> None:
    """vLLM 0.33 `v1/attention/backend.py` (`supports_block_size`); 0.8.5 `flash_attn.py` (`get_kv_cache_shape`)."""
    device = device_of(catalog.gpu("h100"), rules_for("vllm", version))

    check_block_size(16, device)
    check_block_size(128, device)
    with pytest.raises(EngineError, match="no attention kernel that reads blocks of 8 tokens"):
        check_block_size(8, device)


@pytest.mark.parametrize("gpu", ["mi300x", "gaudi3"])
def test_no_platform_reads_blocks_of_eight_tokens_by_heads(catalog: Snapshot, gpu: str) -> None:
    """vLLM 0.33 `v1/attention/backends/rocm_attn.py` and beside it: multiples of 16; latents on AMD in any."""
    part, rules = catalog.gpu(gpu), rules_for("vllm")

    with pytest.raises(RefusedStartError, match="blocks of 8 tokens"):
        resolve(catalog.model("llama-3.1-8b"), part, StatedSettings(block_size=8), rules)

    assert resolve(catalog.model("deepseek-v3"), part, StatedSettings(block_size=1), rules).settings.block_size == 1

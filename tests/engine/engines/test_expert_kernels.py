"""How GPUs' kernels hold experts, as vLLM 0.33 `fused_moe/oracle/mxfp4.py` and `unquantized.py` say."""

import pytest
from packaging.version import Version

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import AMPERE, HOPPER, Device, device_of
from service.engine.engines.expert_kernels import expert_kernels
from service.engine.engines.plans import plan_of


def test_triton_on_hopper_keeps_loaded_scales_before_0_25() -> None:
    """Pull request 46549."""
    new = expert_kernels(Device(capability=HOPPER))
    old = expert_kernels(Device(capability=HOPPER, plan=plan_of(Version("0.24"))))

    assert (old.keeps_loaded_scales, new.keeps_loaded_scales) == (True, False)
    assert (new.widens_biases, new.scale_rows) == (True, 256)


def test_other_kernels_pad_to_tiles_of_128_and_256() -> None:
    for capability in (AMPERE, (10, 0)):
        storage = expert_kernels(Device(capability=capability)).storage
        assert (storage.mxfp4_inner, storage.mxfp4_width) == (128, 256)


def test_plain_experts_are_padded_on_capability_10_alone() -> None:
    inner = {version: expert_kernels(Device(capability=version)).storage.plain_inner for version in (AMPERE, (10, 0))}

    assert inner == {AMPERE: 1, (10, 0): 128}


@pytest.mark.parametrize(
    ("gpu", "version", "tile"),
    [
        ("b200", "0.5.16", 256),
        ("b200", "0.5.17", 128),
        ("rtx-pro-6000", "0.5.13", 0),
        ("rtx-pro-6000", "0.5.14", 128),
        ("h100", "0.5.16", 0),
        ("mi355x", "0.5.16", 0),
    ],
)
def test_sglang_pads_experts_of_gpt_oss_on_blackwell(catalog: Snapshot, gpu: str, version: str, tile: int) -> None:
    """SGLang 0.5.13 to 0.5.17 `layers/quantization/mxfp4.py` (`create_weights`) and what picks its kernels.

    ovg-project/kvcached, issue 198, gpt-oss-20b in SGLang 0.5.3 on a B200: "mem usage=14.53 GB"; unpadded 12.9 GiB.
    """
    storage = expert_kernels(device_of(catalog.gpu(gpu), rules_for("sglang", version))).storage

    assert storage.own_inner == tile
    assert storage.mxfp4_inner is None


def test_sglang_keeps_the_loaded_scales_beside_those_that_hopper_s_kernels_read(catalog: Snapshot) -> None:
    """SGLang 0.5.12 to 0.5.23 `layers/quantization/mxfp4.py`: after `_swizzle_mxfp4` it deletes the weights alone.

    Of gpt-oss-120b on four H100 its own nightly test of July 2026 expects 24.6 GiB of full layers, 0.99 of the least.
    """
    h100, b200 = (catalog.gpu(gpu) for gpu in ("h100", "b200"))

    assert expert_kernels(device_of(h100, rules_for("sglang", "0.5.15"))).keeps_loaded_scales
    assert not expert_kernels(device_of(b200, rules_for("sglang", "0.5.15"))).keeps_loaded_scales
    assert not expert_kernels(device_of(h100, rules_for("vllm", "0.33"))).keeps_loaded_scales

"""How GPUs' kernels hold experts, as vLLM 0.33 `fused_moe/oracle/mxfp4.py` and `unquantized.py` say."""

from packaging.version import Version

from service.engine.engines.device import AMPERE, HOPPER, Device
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

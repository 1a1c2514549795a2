"""How GPUs' kernels hold experts, as vLLM 0.33 `fused_moe/oracle/mxfp4.py` and `unquantized.py` say."""

import pytest
from packaging.version import Version

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import AMPERE, HOPPER, Device, device_of
from service.engine.engines.expert_kernels import expert_kernels
from service.engine.engines.plans import plan_of
from service.engine.inputs import Layout
from service.engine.memory.weights import rank_weights


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


@pytest.mark.parametrize(
    ("version", "line_bytes", "rows", "groups"),
    [("0.5.10", 1, 1, 2), ("0.5.12", 64, 1, 2), ("0.5.18", 64, 1, 2), ("0.5.21", 64, 1, 4), ("0.5.22", 64, 256, 4)],
)
def test_sglang_shuffles_by_the_kernels_of_its_version(
    catalog: Snapshot, version: str, line_bytes: int, rows: int, groups: int
) -> None:
    """The wheels of sglang-kernel, `triton_kernels/tensor_details/layout_details/hopper_value.py`.

    0.4.2.post2 to 0.4.7, of SGLang 0.5.12 to 0.5.21: `SWIZZLE_ALIGN_M = 64`. 0.4.9, of 0.5.22: "align_m, align_k = 64,
    256". Of scales SGLang 0.5.19 `layers/quantization/mxfp4.py`: `_pad_hopper_mxfp4_scale` rounds up to 128 columns.
    """
    kernels = expert_kernels(device_of(catalog.gpu("h100"), rules_for("sglang", version)))

    assert (kernels.value_line_bytes, kernels.value_rows, kernels.scale_groups) == (line_bytes, rows, groups)


def test_sglang_s_padded_values_count(catalog: Snapshot) -> None:
    """gpt-oss-20b: rows of 1440 bytes become 1472 in either matrix of 32 experts in 24 layers."""
    model = catalog.model("gpt-oss-20b")
    quantization = next(it.quantization for it in model.checkpoints if it.is_default)
    h100 = catalog.gpu("h100")
    old, padded, newest = (
        rank_weights(
            model.architecture,
            layout=Layout(),
            quantization=quantization,
            device=device_of(h100, rules_for("sglang", version)),
        ).by_component["experts"]
        for version in ("0.5.10", "0.5.18", "0.5.22")
    )

    assert padded - old == 24 * 32 * (5_760 + 2_880) * 32
    values = (5_888 - 5_760 + 3_072 - 2_880) * 1_472  # rows to whole 256
    scales = (5_888 + 3_072) * 2  # 90 groups to 92
    assert newest - padded == 24 * 32 * (values + scales)

"""What a GPU is to an engine, by the compute capabilities that NVIDIA publishes (developer.nvidia.com/cuda-gpus)."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import HOPPER, device_of


@pytest.mark.parametrize(
    ("name", "capability"),
    [("t4", (7, 5)), ("a100-sxm-80gb", (8, 0)), ("l40s", (8, 9)), ("h100-sxm-80gb", (9, 0)), ("b200", (10, 0))],
)
def test_a_gpu_is_its_published_generation(catalog: Snapshot, name: str, capability: tuple[int, int]) -> None:
    device = device_of(catalog.gpu(name), rules_for("vllm"))

    assert device.capability == capability
    assert device.generation == capability[0]
    assert device.dotted == f"{capability[0]}.{capability[1]}"
    assert device.is_vllm_on_cuda


def test_other_vendors_and_engines_are_planned_as_hopper(catalog: Snapshot) -> None:
    amd = device_of(catalog.gpu("mi300x"), rules_for("vllm"))
    sglang = device_of(catalog.gpu("b200"), rules_for("sglang"))

    assert (amd.capability, amd.is_vllm_on_cuda) == (HOPPER, False)
    assert (sglang.capability, sglang.is_vllm_on_cuda) == (HOPPER, False)


def test_equal_gpus_under_one_row_are_one_device(catalog: Snapshot) -> None:
    rules = rules_for("vllm", "0.30")

    assert device_of(catalog.gpu("h100"), rules) is device_of(catalog.gpu("h100"), rules)
    assert device_of(catalog.gpu("h100"), rules).engine == "vLLM 0.30"

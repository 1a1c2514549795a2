"""What communication takes beside the framework's allocator, as start-up logs print it."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.inputs import Layout
from service.engine.memory.ledger import non_torch_bytes

GIB = 1 << 30


# As printed, with the context: vLLM issue 15014, pull request 14447, a log of 0.7.2 on two A40; Qwen3-Next on two H20.
@pytest.mark.parametrize(
    ("gpu", "tp", "version", "logged_gib", "tolerance_gib"),
    [
        ("rtx-4090", 8, "0.8.0", 0.24, 0.13),
        ("rtx-3090", 16, "0.8.0", 0.20, 0.17),
        ("a40", 2, "0.7.2", 0.32, 0.05),
        ("h20-sxm-141gb", 2, "0.10.2", 1.38, 0.07),
    ],
)
def test_gpus_without_nvlink_hold_few_buffers_of_communication(
    catalog: Snapshot, gpu: str, tp: int, version: str, logged_gib: float, tolerance_gib: float
) -> None:
    taken = non_torch_bytes(catalog.gpu(gpu), Layout(tensor_parallel_size=tp), rules_for("vllm", version)) / GIB

    assert logged_gib <= taken <= logged_gib + tolerance_gib


def test_a_version_that_sets_up_communication_first_says_nothing_else_of_slots(catalog: Snapshot) -> None:
    both = (catalog.gpu("rtx-4090"), catalog.gpu("h100"))

    first, other = (non_torch_bytes(gpu, Layout(tensor_parallel_size=2), rules_for("vllm", "0.14.0")) for gpu in both)

    assert first == other

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


def test_all_reduce_is_fused_where_graphs_are_compiled(catalog: Snapshot) -> None:
    """GLM-5.1-FP8 on eight H200 with `--enforce-eager`, a published start-up of vLLM 0.20.1: weights of 89.39 GiB and a
    cache of 34.86 leave 1.58 GiB of 0.9 x 139.81 to all else, less than the fused all-reduce's buffers alone take.
    """
    h200, rules, layout = catalog.gpu("h200"), rules_for("vllm", "0.20.1"), Layout(tensor_parallel_size=8)
    eager = non_torch_bytes(h200, layout, rules, is_compiled=False)

    assert non_torch_bytes(h200, layout, rules) / GIB > 1.58 > eager / GIB
    # Elsewhere nothing is fused, however it runs.
    a100 = catalog.gpu("a100")
    assert non_torch_bytes(a100, layout, rules) == non_torch_bytes(a100, layout, rules, is_compiled=False) == eager

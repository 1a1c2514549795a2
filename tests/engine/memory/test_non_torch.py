"""What communication takes beside the framework's allocator, as start-up logs print it."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.fleet.given_gpus import as_started, resolve_capacity
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import Layout
from service.engine.memory.ledger import non_torch_bytes
from tests.engine.conftest import Asked, capacity_of, users

GIB = 1 << 30
EAGER_T4 = StatedSettings(max_model_len=4_096, max_num_seqs=1, gpu_memory_utilization=0.85, enforce_eager=True)


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


# Pools as printed: leadawon/LAMBO and trietnguyeminh/Submission---EXACT--IJCNN on GitHub; four L40S of vLLM 0.19.0.
@pytest.mark.parametrize(
    ("model", "gpu", "tp", "version", "settings", "logged_gib"),
    [
        ("qwen3.5-9b", "rtx-3090", 4, "0.19.0", StatedSettings(max_model_len=32_768), 15.36),
        ("qwen2.5-72b-instruct", "l40s", 4, "0.19.0", StatedSettings(max_model_len=8_192), 5.11),
        ("qwen3-8b", "t4", 2, "0.22.1", EAGER_T4, 4.37),
        ("qwen3-8b", "t4", 2, "0.22.1", replace(EAGER_T4, max_num_batched_tokens=4_096), 4.22),
    ],
)
def test_without_nvlink_little_is_taken_once_communication_is_set_up_before_the_look_at_what_is_free(
    asked: Asked, model: str, gpu: str, tp: int, version: str, settings: StatedSettings, logged_gib: float
) -> None:
    settings = replace(settings, enable_prefix_caching=False)
    question = capacity_of(asked(model, gpu, load=users(None), settings=settings, rules=rules_for("vllm", version)), tp)
    started = as_started(question, resolve_capacity(question), Layout(tensor_parallel_size=tp))

    assert started.plan.memory.kv_cache_bytes / GIB == pytest.approx(logged_gib, abs=0.2)


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

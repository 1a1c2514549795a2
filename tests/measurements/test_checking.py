"""A published start-up is answered with predicted beside measured, and with what would explain a difference."""

import pytest

from service.catalog.snapshot import Snapshot
from service.measurements.checking import check, lines_of
from service.performance.kernel_tables import InProcess, KernelTables
from service.performance.stored import TableFiles
from service.performance.timers import KernelTimers
from service.questions.asked import Desk
from service.questions.refusals import RefusalError

# Logged on an A100 of 80 GB (idx-llama31-8b-a100-80-v031 of the referee's vllm_startups.jsonl).
LLAMA_ON_A100 = (
    "LLM engine (v0.31.0)\nModel loading took 15.0 GiB memory\nGPU KV cache size: 460,496 tokens\n"
    "Maximum concurrency for 131,072 tokens per request: 3.51x\nFree memory on device (78.84/79.25 GiB)\n"
    "Desired (0.92, 72.91 GiB)\nAvailable KV cache memory: 56.21 GiB"
)


def test_a_start_up_is_answered_term_by_term(catalog: Snapshot) -> None:
    checked = check(LLAMA_ON_A100, {"model": "llama-3.1-8b", "gpu": "a100"}, catalog, Desk(None))

    errors = {term.name: term.error_fraction for term in checked.terms}
    assert errors["weight_bytes"] == pytest.approx(0, abs=0.01)
    assert errors["kv_cache.tokens"] == pytest.approx(0, abs=0.01)
    assert not checked.explanations
    assert "line 3: kv_cache.tokens 460496, predicted" in "\n".join(lines_of(checked))


def test_a_start_up_is_checked_without_a_question_of_time(catalog: Snapshot) -> None:
    desk = Desk(KernelTimers(KernelTables(TableFiles(None), InProcess())))
    asked = {"model": "llama-3.1-8b", "gpu": "a100"}

    checked = check(LLAMA_ON_A100, asked, catalog, desk)

    assert not desk.kept
    assert checked.terms == check(LLAMA_ON_A100, asked, catalog, Desk(None)).terms


def test_what_was_left_out_is_found_by_what_was_measured(catalog: Snapshot) -> None:
    halved = LLAMA_ON_A100.replace("460,496", "920,992").replace("3.51x", "7.03x")

    checked = check(halved, {"model": "llama-3.1-8b", "gpu": "a100"}, catalog, Desk(None))

    assert checked.explanations[0].change == {"kv_cache_dtype": "fp8"}


def test_a_stated_setting_explains_nothing(catalog: Snapshot) -> None:
    checked = check(LLAMA_ON_A100, {"model": "llama-3.1-8b", "gpu": "a100", "tensor_parallel_size": 2}, catalog,
                    Desk(None))  # fmt: skip

    assert all("tensor_parallel_size" not in each.change for each in checked.explanations)


def test_without_a_gpu_the_cards_of_the_logged_memory_are_named(catalog: Snapshot) -> None:
    with pytest.raises(RefusalError, match="does not say which gpu") as refusal:
        check(LLAMA_ON_A100, {"model": "llama-3.1-8b"}, catalog, Desk(None))

    assert "a100-sxm-80gb" in str(refusal.value.faults[0].accepted)


def test_a_wrong_field_beside_the_text_is_refused_with_its_neighbour(catalog: Snapshot) -> None:
    with pytest.raises(RefusalError) as refusal:
        check(LLAMA_ON_A100, {"model": "llama-3.1-8b", "gpu": "a100", "tp": 2}, catalog, Desk(None))

    assert refusal.value.faults[0].field == "question.tp"
    assert "tensor_parallel_size" in str(refusal.value.faults[0].accepted)


def test_what_the_question_says_otherwise_than_the_text_is_told(catalog: Snapshot) -> None:
    text = (
        f"non-default args: {{'model': 'meta-llama/Llama-3.1-8B-Instruct', 'tensor_parallel_size': 2}}\n{LLAMA_ON_A100}"
    )
    asked = {"model": "llama-3.1-8b", "gpu": "a100"}
    agreed, overruled = (
        check(text, {**asked, "tensor_parallel_size": ranks}, catalog, Desk(None)).warnings for ranks in (2, 4)
    )

    assert not any("which was compared" in each for each in agreed)
    assert "line 1 says tensor_parallel_size 2, and the question 4, which was compared" in overruled


def test_a_share_that_leaves_no_room_for_a_cache_explains_nothing(catalog: Snapshot) -> None:
    """Qwen2.5-72B on four L40S as vLLM 0.19.0 starts it: with a share of 0.8 only its weights would be predicted."""
    text = (
        "(EngineCore pid=271) INFO 04-16 11:16:23 [core.py:105] Initializing a V1 LLM engine (v0.19.0) with config: "
        "model='Qwen/Qwen2.5-72B-Instruct', max_seq_len=8192, tensor_parallel_size=4\n"
        "(Worker_TP0 pid=374) INFO 04-16 11:17:54 [gpu_model_runner.py:4820] Model loading took 33.98 GiB memory\n"
        "(Worker_TP0 pid=374) INFO 04-16 11:18:41 [gpu_worker.py:436] Available KV cache memory: 5.11 GiB"
    )

    explained = check(text, {"gpu": "l40s"}, catalog, Desk(None)).explanations

    assert all(each.change != {"gpu_memory_utilization": 0.8} for each in explained)

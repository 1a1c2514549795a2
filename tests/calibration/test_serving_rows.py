"""Rows of published serving runs, in whatever way their sources sent prompts."""

from typing import Any

import pytest

from service.calibration.logs.rows import UnstatedError
from service.calibration.logs.serving import read_serving

ROW: dict[str, Any] = {
    "id": "one", "source": "a source", "engine": "vLLM", "engine_version": "v0.13.0", "tp": 1, "num_gpus": 1,
    "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "NVIDIA H100 SXM 80GB", "weight_precision": "fp16",
    "osl": 248, "dataset": "random", "reported": {"ttft_ms": {"mean": 25.2}, "e2e_ms": {"p99": 2138.2}},
}  # fmt: skip


def test_a_stated_prompt_is_taken_as_stated() -> None:
    log = read_serving({**ROW, "isl": 547, "concurrency": 4})

    assert (log.input_tokens, log.output_tokens, log.version) == (547, 248, "0.13.0")
    assert [(seen.quantity, seen.percent) for seen in log.latencies] == [("ttft", None), ("e2e", 99.0)]


def test_a_data_set_s_published_mean_stands_for_a_prompt_that_no_log_states() -> None:
    log = read_serving({**ROW, "dataset": "MLPerf llama3_1-8b", "request_rate_per_s": 10, "quality_tier": "B-mlperf"})

    assert log.input_tokens == 778
    assert log.sent.is_steady


def test_a_data_set_whose_mean_nobody_publishes_is_left_out_by_name() -> None:
    with pytest.raises(UnstatedError, match="mixtral"):
        read_serving({**ROW, "dataset": "MLPerf mixtral-8x7b", "request_rate_per_s": 10})


def test_arrivals_by_the_clock_are_even_and_counted_by_the_notes() -> None:
    row = {**ROW, "isl": 547, "request_rate_per_s": 8, "arrival": "constant", "notes": "100 prompts at 8/s"}
    sent = read_serving(row).sent

    assert (sent.how, sent.count) == ("arrivals", 100)
    assert sent.burstiness > 1e6


def test_all_at_once_is_one_burst_and_not_ten_prompts_a_user() -> None:
    burst = read_serving({**ROW, "isl": 547, "concurrency": 1000.0, "notes": "Requests 1000, duration 72.75 s"})
    closed = read_serving({**ROW, "isl": 547, "concurrency": 16})

    assert burst.sent.count == 1_000
    assert closed.sent.count == 160


def test_a_stated_number_of_prompts_includes_ramp_and_drain() -> None:
    assert read_serving({**ROW, "isl": 547, "concurrency": 16, "num_prompts": 48}).sent.count == 48


def test_a_batch_that_is_always_full_tells_pace_by_its_tokens() -> None:
    row = {
        **ROW, "concurrency": 8, "energy": {"avg_power_w": 400}, "avg_batch_size": 8.0, "dataset": "gpqa",
        "reported": {"output_tokens_per_s": 800.0},
    }  # fmt: skip
    log = read_serving(row)

    assert log.sent.how == "full"
    assert [(seen.quantity, seen.value_s) for seen in log.latencies] == [("tpot", 0.01)]


def test_ranks_without_experts_spread_over_them_are_copies() -> None:
    log = read_serving({**ROW, "isl": 547, "dp": 8, "num_gpus": 8})

    assert (log.data_parallel_size, log.copies) == (1, 8)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"tp": None}, "how many GPUs"),
        ({"speculative_decoding": True}, "drafted"),
        ({"disaggregated": {"prefill_workers": 1}}, "transfer"),
        ({"weight_precision": "int3"}, "no format"),
        ({"engine": "LLMBoost"}, "no profile"),
    ],
)
def test_what_cannot_be_simulated_says_why(more: dict[str, Any], why: str) -> None:
    with pytest.raises(UnstatedError, match=why):
        read_serving({**ROW, "isl": 547, **more})

"""Rows of published serving runs, in whatever way their sources sent prompts."""

from typing import Any

import pytest

from service.calibration.logs.datasets import data_set
from service.calibration.logs.rows import UnstatedError, without_copies
from service.calibration.logs.serving import read_serving

ROW: dict[str, Any] = {
    "id": "one", "source": "a source", "engine": "vLLM", "engine_version": "v0.13.0", "tp": 1, "num_gpus": 1,
    "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "NVIDIA H100 SXM 80GB", "weight_precision": "fp16",
    "osl": 248, "dataset": "random", "reported": {"ttft_ms": {"mean": 25.2}, "e2e_ms": {"p99": 2138.2}},
}  # fmt: skip

FEW = "MLPerf llama3_1-70b-fp8_dyn (OpenOrca)"


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

    assert (log.ranks.data_parallel_size, log.ranks.copies) == (1, 8)


def test_experts_spread_within_a_replica_leave_the_others_copies() -> None:
    ranks = read_serving({**ROW, "isl": 547, "tp": 4, "dp": 2, "ep": 4, "num_gpus": 8}).ranks

    assert (ranks.tensor_parallel_size, ranks.data_parallel_size, ranks.copies) == (4, 1, 2)
    assert ranks.expert_parallel


def test_sglang_counts_ranks_of_dealt_attention_among_those_of_tensor_parallelism() -> None:
    row = {**ROW, "engine": "SGLang", "isl": 547, "tp": 8, "dp": 8, "num_gpus": 8}
    dealt = read_serving({**row, "notes": "Parameters: --tp-size=8 --dp-size=8 --enable-dp-attention"}).ranks
    deep = read_serving({**row, "notes": "--enable-dp-attention --moe-a2a-backend=deepep"}).ranks

    assert (dealt.tensor_parallel_size, dealt.data_parallel_size, dealt.copies) == (1, 8, 1)
    assert (dealt.expert_parallel, deep.expert_parallel) == (False, True)


def test_a_run_whose_version_nobody_states_is_of_the_newest_of_its_day() -> None:
    def version(**more: Any) -> str | None:
        return read_serving({**ROW, "isl": 547, "engine_version": None, **more}).version

    assert version(date="2025-10-29") == "0.11.0"  # 0.11.1 was uploaded on 2025-11-19
    assert version(date="2025-12") == "0.12.0"
    assert version(date="2024") is None
    assert version() is None


def test_a_pool_that_decodes_alone_tells_of_the_time_between_tokens_for_those_who_decode() -> None:
    # dstack's 1P3D at 32 users: 15.5 s of 24.4 s pass before the first token.
    row = {
        **ROW, "engine": "SGLang", "isl": 32_784, "osl": 1_246.5, "tp": 2, "num_gpus": 8, "concurrency": 32.0,
        "disaggregated": {"prefill_workers": 1, "decode_workers": 3, "tp_per_worker": 2},
        "reported": {"ttft_ms": {"mean": 15_532.8}, "tpot_ms": {"mean": 7.144}, "output_tokens_per_s": 1_615.15},
    }  # fmt: skip
    log = read_serving(row)

    assert [seen.quantity for seen in log.latencies] == ["tpot"]
    assert (log.arrives_read, log.ranks.copies, log.sent.users, log.tokens_per_s) == (True, 3, 12, None)


def test_users_who_were_not_there_by_the_run_s_own_figures_are_left_out() -> None:
    # dstack's first row: 0.94 requests a second x 61.3 s are 58 in flight, of 300.
    figures = {"requests_per_s": 0.94, "ttft_ms": {"mean": 4_545.25}, "tpot_ms": {"mean": 380.74}}
    row = {**ROW, "isl": 918, "osl": 150.0, "concurrency": 300.0, "dataset": "sonnet"}

    with pytest.raises(UnstatedError, match="19 % of its users"):
        read_serving({**row, "reported": figures})
    assert read_serving({**row, "reported": {**figures, "requests_per_s": 4.7}}).sent.users == 300


def test_mlperf_s_settings_are_read_by_its_harness_s_names() -> None:
    notes = "Settings: kv=fp8, max_num_tokens=4608, gpu_batch_size=512 accelerator_model_name: NVIDIA B300"
    log = read_serving({**ROW, "isl": 800, "tp": 8, "ep": 8, "quality_tier": "B-mlperf", "notes": notes})

    assert (log.served.max_num_batched_tokens, log.served.max_num_seqs) == (4_608, 512)
    assert log.ranks.spreads_attention  # 'enable_attention_dp': True in NVIDIA's config of DeepSeek-R1
    assert log.sent.is_in_process


def test_a_time_per_token_that_includes_the_first_is_read_from_the_time_between_tokens() -> None:
    # GPUStack's GLM-5.2 on H200: 540.8 ms x 1,024 tokens are the 553.8 s of the whole request, 499.4 s of it a wait.
    figures = {"ttft_ms": {"mean": 499_353.1}, "e2e_ms": {"mean": 553_770.0}, "itl_ms": {"mean": 53.19}}
    row = {**ROW, "isl": 8_204, "osl": 1_024.0, "concurrency": 512}
    log = read_serving({**row, "reported": {**figures, "tpot_ms": {"mean": 540.79, "p50": 659.16}}})
    own = read_serving({**row, "reported": {**figures, "tpot_ms": {"mean": 53.2, "p50": 53.1}}})

    assert [seen.value_s for seen in log.latencies if seen.quantity == "tpot"] == [0.05319]
    assert [seen.value_s for seen in own.latencies if seen.quantity == "tpot"] == pytest.approx([0.0532, 0.0531])


def test_figures_of_two_gpus_that_are_alike_to_the_digit_count_for_neither() -> None:
    other = {**ROW, "id": "two", "gpu": "NVIDIA A100 SXM 80GB"}
    own, copied = without_copies([ROW, other, {**ROW, "id": "three", "reported": {"ttft_ms": {"mean": 30.0}}}])

    assert [row["id"] for row in own] == ["three"]
    assert [skipped.case for skipped in copied] == ["one", "two"]


CASE = "Section: Experiment Results > Other Benchmark Cases > ShareGPT. Requests 1000, duration {} s. Parameters: --tp-size=8. Hardware line: H."


def test_of_one_case_twice_with_the_same_parameters_the_first_ran_without_them() -> None:
    page = {**ROW, "source_url": "page.md"}
    first = {**page, "id": "21", "notes": CASE.format(99), "reported": {"ttft_ms": {"mean": 20.0}}}
    then = {**page, "id": "22", "notes": CASE.format(65), "reported": {"ttft_ms": {"mean": 17.0}}}
    other = {**page, "id": "23", "notes": CASE.format(70).replace("ShareGPT", "Long"), "reported": {"itl_ms": {}}}

    own, left_out = without_copies([first, then, other])

    assert [row["id"] for row in own] == ["22", "23"]
    assert [skipped.case for skipped in left_out] == ["21"]


def test_a_mode_without_graphs_is_left_out_by_name() -> None:
    with pytest.raises(UnstatedError, match="without graphs"):
        read_serving({**ROW, "isl": 547, "notes": "--moe-a2a-backend=deepep --deepep-mode=normal"})


def test_ranks_of_deepseek_read_together_and_servers_of_one_harness_take_arrivals_in_turn() -> None:
    row = {
        **ROW, "engine": "TensorRT-LLM", "dataset": "MLPerf deepseek-r1", "tp": 8, "ep": 8, "quality_tier": "B-mlperf",
        "request_rate_per_s": 4,
    }  # fmt: skip

    sent = read_serving(row).sent

    assert (sent.read_every, sent.is_dealt_evenly) == (9, True)
    assert read_serving({**row, "dataset": "MLPerf llama3_1-8b"}).sent.read_every == 1
    assert not read_serving({**row, "engine": "vLLM"}).sent.is_dealt_evenly


def test_a_benchmark_keeps_no_conversation_of_fewer_than_four_tokens() -> None:
    answers = read_serving({**ROW, "isl": 219.1, "osl": 196.6, "dataset": "ShareGPT", "concurrency": 1_000}).outputs

    assert answers.quantile(0.0) >= 4


def test_what_a_source_calls_a_trial_is_doubtful() -> None:
    assert read_serving({**ROW, "isl": 547, "notes": "the source calls this work experimental"}).is_doubtful
    assert read_serving({**ROW, "isl": 547, "quality_tier": "C"}).is_doubtful
    assert not read_serving({**ROW, "isl": 547, "quality_tier": "B"}).is_doubtful


def test_a_scenario_that_may_draft_is_left_out_by_name() -> None:
    row = {
        **ROW,
        "source": "MLPerf Inference v6.0 results",
        "quality_tier": "B-mlperf",
        "dataset": "MLPerf deepseek-r1",
    }

    with pytest.raises(UnstatedError, match="draft"):
        read_serving({**row, "id": "b300-deepseek-r1-interactive"})
    assert read_serving({**row, "id": "b300-deepseek-r1-server"}).input_tokens == 800


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"tp": None}, "how many GPUs"),
        ({"speculative_decoding": True}, "drafted"),
        ({"weight_precision": "int3"}, "no format"),
        ({"engine": "LLMBoost"}, "no profile"),
    ],
)
def test_what_cannot_be_simulated_says_why(more: dict[str, Any], why: str) -> None:
    with pytest.raises(UnstatedError, match=why):
        read_serving({**ROW, "isl": 547, **more})


def test_a_section_on_quantization_served_the_quantized_checkpoint() -> None:
    # GPUStack's Qwen3.5-35B-A3B on H200: 5.3 s for a whole answer without it, 3.5 s with it.
    notes = "Section: Experiment Results > Prefix Cache && Quantization. Requests 1000, duration 66.14 s."
    row = {**ROW, "isl": 342, "concurrency": 512, "model": "Qwen/Qwen3.5-35B-A3B", "weight_precision": None}

    assert read_serving({**row, "notes": notes}).weight_format == "fp8"
    assert read_serving({**row, "notes": notes.replace(" && Quantization", "")}).weight_format is None


def test_a_batch_that_only_decodes_at_an_uneven_pace_waited_for_its_host() -> None:
    # ML.ENERGY's Qwen3-30B-A3B on B200, at a third of the GPU's power; its Nemotron Nano 12B v2 on H100.
    row = {**ROW, "concurrency": 8, "osl": 7_972.0, "dataset": "gpqa", "energy": {"avg_power_w": 305.0}}
    faltering = {**row, "reported": {"output_tokens_per_s": 231.1, "itl_ms": {"p50": 35.001, "p90": 49.48}}}
    steady = {**row, "reported": {"output_tokens_per_s": 677.4, "itl_ms": {"p50": 11.661, "p90": 12.109}}}

    assert read_serving(faltering).is_doubtful
    assert not read_serving(steady).is_doubtful
    # Where one iteration in ten reads a prompt, times between tokens spread by themselves.
    assert not read_serving({**faltering, "osl": 75.0}).is_doubtful


def test_answers_whose_pace_by_token_is_far_from_that_by_request_differ_in_length() -> None:
    # vLLM's recipe of Kimi-K2-Thinking on H200: 381 ms by request, 111 ms by token.
    figures = {"ttft_ms": {"mean": 271_196.7}, "tpot_ms": {"mean": 381.29}, "itl_ms": {"mean": 111.22}}
    row = {**ROW, "isl": 8_000, "osl": 389.5, "request_rate_per_s": 100.0, "reported": figures}

    with pytest.raises(UnstatedError, match="differ in length"):
        read_serving(row)
    assert read_serving({**row, "dataset": "ShareGPT"}).output_tokens == 390


def test_a_comment_in_a_script_names_no_data_set() -> None:
    # GPUStack's Qwen3-14B-FP8 on H100 with another attention kernel: 252 ms by request, 77 ms by token.
    figures = {"ttft_ms": {"mean": 7_320.6}, "tpot_ms": {"mean": 251.7}, "itl_ms": {"mean": 77.1}}
    row = {**ROW, "isl": 217.4, "osl": 201.8, "concurrency": 1_000.0, "reported": figures}

    assert data_set({**row, "dataset": "# --attention-backend=triton"}) == data_set({**row, "dataset": "ShareGPT"})
    assert data_set({**row, "dataset": "# random 128 input"}) is None
    # Its DeepSeek-V3.2 on H200: 45.8 ms at p50 and 47.4 at p99 of 100 answers.
    assert data_set({**row, "isl": 1_000.0, "osl": 2_000.0, "dataset": "ShareGPT"}) is None


def test_what_benchmarks_keep_of_sharegpt_spreads_as_it_was_counted() -> None:
    # Of the 2,104 requests on SGLang's page "Production Metrics" 24 % read 20 tokens or fewer and 17 % more than 500;
    # 21 % wrote 20 or fewer and 11 % more than 500.
    row = {**ROW, "isl": 237.9, "osl": 201.8, "concurrency": 1_000.0, "dataset": "ShareGPT", "reported": {}}
    kept = read_serving(row)

    assert [round(kept.inputs.quantile(share)) for share in (0.24, 0.83)] == pytest.approx([20, 500], rel=0.1)
    assert [round(kept.outputs.quantile(share)) for share in (0.21, 0.89)] == pytest.approx([20, 500], rel=0.1)
    # Another sample, of other means, is not theirs.
    assert read_serving({**row, "isl": 342.1, "osl": 281.4}).outputs.quantile(0.5) > 0.8 * 281.4


def test_answers_of_mlperf_spread_as_the_ends_of_its_requests_do() -> None:
    # Broadcom's eight B200 under Llama 3.1 405B, Interactive, v5.1: 654.7 tokens on average at a pace of 61.7 ms, the
    # first after 0.99 s; 43.97 s end to end at p50.
    row = {**ROW, "dataset": "MLPerf llama3_1-405b", "osl": 653.0, "request_rate_per_s": 1.15}
    long, few = (read_serving({**row, "dataset": name}).outputs for name in ("MLPerf llama3_1-405b", FEW))

    assert long.quantile(0.5) == pytest.approx((43.97 - 0.99) / 0.0617, rel=0.02)
    assert long.mean() == pytest.approx(653, rel=0.01)
    assert few.mean() == pytest.approx(653, rel=0.01)
    assert few.quantile(0.99) > 3 * 653


def test_drafts_that_the_remarks_tell_of_are_drafts() -> None:
    with pytest.raises(UnstatedError, match="drafted"):
        read_serving({**ROW, "isl": 8_000, "notes": "32 prompts at 10/s; serve command uses MTP (see file)"})


def test_few_requests_and_minutes_are_counted_as_the_remarks_have_them() -> None:
    row = {**ROW, "isl": 1_024, "request_rate_per_s": 16.0}
    few = "Poisson arrivals, max concurrency 64, few requests (8-32 per run x 3 runs): short runs; median of 3."

    assert read_serving({**row, "notes": few}).sent.count == 32
    assert read_serving({**row, "notes": "Poisson, seed 42, 60 s per point"}).sent.count == 960

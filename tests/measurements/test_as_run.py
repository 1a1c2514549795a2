"""What nobody states is what the engine, or the benchmark, takes by default; what its commands state is read."""

import json

import pytest

from service.catalog.snapshot import Snapshot
from service.measurements.checking import check
from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement
from service.questions.asked import Desk
from service.questions.refusals import RefusalError

GIB = 1 << 30
# vllm-project/vllm issue 23278, 0.10.1 on one H100.
FAILED = (
    "INFO 08-20 18:04:10 [gpu_model_runner.py:2007] Model loading took 65.9651 GiB and 12.8 seconds\n"
    "INFO 08-20 18:04:22 [gpu_worker.py:276] Available KV cache memory: -2.14 GiB"
)
ON_H100 = {"model": "gpt-oss-120b", "gpu": "h100", "engine_version": "0.10.1"}
LLAMA = {"model": "llama-3.1-8b", "gpu": "h100"}
# vLLM 0.33 `benchmarks/serve.py`: neither an infinite rate nor a limit that is none is printed.
RESULT = """============ Serving Benchmark Result ============
Successful requests:                     1000
Failed requests:                         0
Benchmark duration (s):                  60.00
Total input tokens:                      1024000
Total generated tokens:                  128000
Request throughput (req/s):              16.67
Mean TTFT (ms):                          9000.00
Mean TPOT (ms):                          60.00
"""
# TensorRT-LLM docs/source/performance/perf-benchmarking.md, its lines of load apart.
OVERVIEW = """===========================================================
= PERFORMANCE OVERVIEW
===========================================================
Number of requests:             3000
Average Input Length (tokens):  128.0
Average Output Length (tokens): 128.0
Request Throughput (req/sec):   237.6
"""
# sgl-project/sglang `benchmark/serving.py`: a line of its file has no num_prompts.
LINE = {
    "backend": "sglang", "request_rate": float("inf"), "max_concurrency": None, "completed": 300,
    "total_input_tokens": 300_000, "total_output_tokens": 30_000, "mean_ttft_ms": 9000.0, "mean_tpot_ms": 14.7,
}  # fmt: skip


def test_a_server_ran_with_its_engine_s_own_settings(catalog: Snapshot) -> None:
    checked = check(FAILED, ON_H100, catalog, Desk(None))
    told = {each["name"]: (each["value"], each["origin"]) for each in checked.assumptions}

    own = {"max_num_seqs": 1024, "max_num_batched_tokens": 8192, "max_model_len": 131_072}
    assert own.items() <= checked.question.items()
    assert own.keys() <= told.keys()
    assert {name: told[name] for name in own} == {name: (value, "default") for name, value in own.items()}
    assert any("failed for want of 2.14 GiB; none is predicted" in each for each in checked.warnings)


def test_what_is_stated_is_posed_as_it_is(catalog: Snapshot) -> None:
    checked = check(FAILED, {**ON_H100, "max_num_seqs": 64}, catalog, Desk(None))

    assert checked.question["max_num_seqs"] == 64


@pytest.mark.parametrize(("text", "prompts"), [(RESULT, 1000), (OVERVIEW, 3000)], ids=["vllm", "trtllm"])
def test_without_a_rate_and_a_limit_all_prompts_came_at_once_and_that_is_told(
    text: str, prompts: int, catalog: Snapshot
) -> None:
    checked = check(text, LLAMA, catalog, Desk(None))

    assert checked.question["concurrent_requests"] == checked.question["num_prompts"] == prompts
    assert "concurrent_requests" not in {said.name for said in checked.settings}
    assert any(f"so {prompts} prompts are taken to have been sent all at once" in each for each in checked.warnings)


@pytest.mark.parametrize(
    ("answered", "beside", "lengths"),
    [
        ("128000", {}, None),  # each of 1,000 answers as long as the next: vLLM's benchmark says no more either
        ("127955", {}, "uniform"),
        ("127955", {"length_distribution": "lognormal"}, "lognormal"),
        ("127955", {"length_variation_fraction": 0.5}, None),
    ],
)
def test_totals_tell_whether_answers_were_all_alike(
    answered: str, beside: dict[str, str | float], lengths: str | None, catalog: Snapshot
) -> None:
    checked = check(RESULT.replace("128000", answered), {**LLAMA, **beside}, catalog, Desk(None))

    assert checked.question.get("length_distribution") == lengths
    assert checked.question.get("length_variation_fraction") == beside.get("length_variation_fraction")


@pytest.mark.parametrize("load", [{"request_rate_per_s": 5.0}, {"concurrent_requests": 64}])
def test_a_load_beside_the_text_comes_first(load: dict[str, float], catalog: Snapshot) -> None:
    limited = RESULT.replace("Failed requests:                         0", "Maximum request concurrency:         32")
    for text in (RESULT, limited):
        checked = check(text, {**LLAMA, **load}, catalog, Desk(None))
        asked = {name: checked.question.get(name) for name in ("request_rate_per_s", "concurrent_requests")}
        assert {name: value for name, value in asked.items() if value} == load
        assert not any("all at once" in each for each in checked.warnings)


def test_sglang_s_line_without_a_rate_is_a_burst_of_what_was_answered() -> None:
    settings = read_measurement(json.dumps(LINE)).settings

    assert (settings["concurrent_requests"], settings["num_prompts"]) == (300, 300)


@pytest.mark.parametrize(
    "layout", [{"tensor_parallel_size": 8}, {"gpu": "4xh100"}, {"gpu_count": 2, "tensor_parallel_size": 2}]
)
def test_an_open_loop_has_the_gpus_of_its_layout(layout: dict[str, int | str], catalog: Snapshot) -> None:
    text = RESULT.replace("Benchmark duration", "Request rate configured (RPS):           5.00\nBenchmark duration")

    checked = check(text, {**LLAMA, **layout}, catalog, Desk(None))

    assert checked.question["request_rate_per_s"] == 5
    assert checked.question.get("gpu_count") == layout.get("gpu_count")


SERVED = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        # sgl-project/sglang issues 1060 and 4918.
        (f"python -m sglang.launch_server --model-path {SERVED} --tp 8", {"engine": "sglang", "tensor_parallel_size": 8}),
        (f"python3 -m sglang.launch_server \\\n  --model-path {SERVED} \\\n  --tp-size 2", {"tensor_parallel_size": 2}),
        (f"sglang serve --model-path {SERVED} --mem-fraction-static 0.8", {"gpu_memory_utilization": 0.8}),
        (f"trtllm-serve {SERVED} --tp_size 2 --max_batch_size 256", {"engine": "tensorrt-llm", "max_num_seqs": 256}),
        (f"vllm serve {SERVED} -tp 2\nvllm bench serve --model served-name --request-rate 12 --num-prompts 1000",
         {"engine": "vllm", "tensor_parallel_size": 2, "request_rate_per_s": 12.0}),
    ],
)  # fmt: skip
def test_a_server_s_command_beside_a_result_says_what_ran(command: str, settings: dict[str, object]) -> None:
    said = read_measurement(f"{command}\n{RESULT}").settings

    assert {"model": SERVED, **settings}.items() <= said.items()


@pytest.mark.parametrize(
    "other", [f"python -m sglang.launch_server --model-path {SERVED}", f"vllm serve {SERVED} --kv-cache-dtype fp8"]
)
def test_two_servers_beside_one_result_are_refused(other: str) -> None:
    text = f"vllm serve {SERVED} -tp 2\n{other}\n{RESULT}"

    with pytest.raises(UnreadableTextError, match="a second server's command") as refusal:
        read_measurement(text)

    assert refusal.value.line == 2


def test_a_server_that_is_named_twice_is_one() -> None:
    said = read_measurement(f"vllm serve {SERVED} hangs:\nvllm serve {SERVED} -tp 2\n{RESULT}").settings

    assert (said["model"], said["tensor_parallel_size"]) == (SERVED, 2)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (RESULT + "Acceptance rate (%): 60.0\n", "speculative_acceptance_fraction"),
        (json.dumps({"time_to_first_token": {"avg": 90.0}, "input_config": {"loadgen": {"request_count": 64}}}),
         "concurrent_requests"),
    ],
    ids=["drafts", "load"],
)  # fmt: skip
def test_what_no_text_says_is_asked_for_by_its_name(text: str, field: str, catalog: Snapshot) -> None:
    drafted = f'vllm serve {SERVED} --speculative-config \'{{"method":"ngram","num_speculative_tokens":3}}\'\n'

    with pytest.raises(RefusalError) as refusal:
        check(drafted + text if text.startswith("=") else text, LLAMA, catalog, Desk(None))

    assert refusal.value.faults[0].field == f"question.{field}"


def test_what_was_sent_and_not_answered_has_failed() -> None:
    # sgl-project/sglang issue 2805: 1,648 of 3,000, and no line of what failed.
    text = f"python3 -m sglang.bench_serving --backend sglang --num-prompts 3000\n{RESULT}"

    with pytest.raises(UnreadableTextError, match=r"1,352 of 3,000 requests failed"):
        read_measurement(
            text.replace("Failed requests:                         0\n", "").replace(
                "requests:                     1000", "requests: 1648"
            )
        )


# https://github.com/flashinfer-ai/flashinfer/issues/1180: the same server with and without it, 4.00 and 2.49 GiB.
FLASHINFER = (
    "INFO 06-26 00:11:32 [topk_topp_sampler.py:49] Using FlashInfer for top-p & top-k sampling.\n"
    "INFO 06-26 00:14:16 [gpu_worker.py:227] Available KV cache memory: 4.00 GiB"
)


@pytest.mark.parametrize(("version", "is_told"), [("0.9.1", True), ("0.11.0", True), ("0.33.0", False)])
def test_a_line_of_flashinfer_s_sampler_is_told_where_the_sort_is_counted(
    version: str, *, is_told: bool, catalog: Snapshot
) -> None:
    asked: dict[str, str | int] = {
        "model": "gemma-3-12b-it",
        "gpu": "rtx-5090",
        "engine_version": version,
        "max_num_seqs": 256,
    }

    told = [each for each in check(FLASHINFER, asked, catalog, Desk(None)).warnings if "FlashInfer samples" in each]

    # (38 - 14) bytes x 256 sequences x 262,208 tokens.
    assert len(told) == is_told
    assert all("1.50 GiB more beside the cache" in each for each in told)


def test_a_table_of_memory_without_verbs_is_read() -> None:
    # vllm-project/vllm pull request 10511.
    text = (
        "INFO 12-13 19:55:25 worker.py:243] total_gpu_memory     79.22GiB\n"
        "INFO 12-13 19:55:25 worker.py:243] gpu_memory_utilization       0.90\n"
        "INFO 12-13 19:55:25 worker.py:243] model weights take   7.48GiB\n"
        "INFO 12-13 19:55:25 worker.py:243] non_torch_memory     3.58GiB\n"
        "INFO 12-13 19:55:25 worker.py:243] PyTorch activation peak memory       1.26GiB\n"
        "INFO 12-13 19:55:25 worker.py:243] available_kv_cache_memory    58.98GiB\n"
    )
    observed = read_measurement(text)

    assert {name: round(figure.value / GIB, 2) for name, figure in observed.figures.items()} == {
        "gpu_total_bytes": 79.22, "weight_bytes": 7.48, "non_torch_bytes": 3.58, "activation_bytes": 1.26,
        "kv_cache_bytes": 58.98,
    }  # fmt: skip
    assert observed.settings["gpu_memory_utilization"] == 0.9


def test_an_overview_that_was_copied_from_a_spreadsheet_is_read() -> None:
    # NVIDIA/TensorRT-LLM issue 4043.
    text = (
        "=   PERFORMANCE OVERVIEW |   |  \nTP   Size:                8 |   |   |   |  \n"
        "Number   of requests:             3000 |  \nRequest   Throughput (req/sec):      1.65 |  \n"
    )
    observed = read_measurement(text)

    assert {"tensor_parallel_size": 8, "num_prompts": 3000}.items() <= observed.settings.items()
    assert observed.figures["requests_per_s"].value == 1.65


def test_a_result_below_its_servers_log_is_of_the_arguments_that_the_server_printed() -> None:
    """As vLLM's `log_non_default_args` prints them, one server for one result."""
    said = "INFO 11-20 10:10:10 [utils.py:253] non-default args: {{'model': '{}', 'tensor_parallel_size': {}}}\n"
    text = said.format(SERVED, 2)

    settings = read_measurement(text + RESULT).settings
    assert (settings["model"], settings["tensor_parallel_size"], settings["engine"]) == (SERVED, 2, "vllm")
    with pytest.raises(UnreadableTextError, match="a second server"):
        read_measurement(text + said.format(SERVED, 4) + RESULT)


def test_a_result_below_its_servers_log_is_of_the_version_that_the_server_printed() -> None:
    said = "INFO 11-20 10:10:09 [api_server.py:1839] vLLM API server version {}\n"
    arguments = f"INFO 11-20 10:10:10 [utils.py:253] non-default args: {{'model': '{SERVED}'}}\n"

    assert read_measurement(said.format("0.12.0") + arguments + RESULT).settings["engine_version"] == "0.12.0"
    with pytest.raises(UnreadableTextError):
        read_measurement(said.format("0.12.0") + said.format("0.13.0") + arguments + RESULT)


def test_a_result_below_a_log_of_sglang_is_of_the_arguments_that_it_printed() -> None:
    """As SGLang prints them: `server_args=ServerArgs(model_path=..., tp_size=...)`."""
    said = f"[2026-11-20 10:10:10] server_args=ServerArgs(model_path='{SERVED}', tp_size=4, mem_fraction_static=0.85)\n"

    settings = read_measurement(said + RESULT).settings
    assert (settings["model"], settings["tensor_parallel_size"], settings["engine"]) == (SERVED, 4, "sglang")

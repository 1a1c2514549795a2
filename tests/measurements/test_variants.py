"""Logs and results of older and newer versions of the same tools; what is no steady load is refused by its reason."""

import json
from typing import Any

import pytest

from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement

GIB = 1 << 30
# The example of inference-perf's README; lengths are made up.
INFERENCE_PERF: dict[str, Any] = {
    "load_summary": {"count": 480, "send_duration": 59.98128472798271, "requested_rate": 8.0, "achieved_rate": 8.002},
    "successes": {
        "count": 480,
        "latency": {
            "request_latency": {"mean": 3.31325431142327, "median": 2.11507539497688, "p90": 5.94717199734878},
            "time_per_output_token": {"mean": 0.0836929455635872, "median": 0.0611870964678625},
            "time_to_first_token": {"mean": 0.800974442732916, "median": 0.203539535985328},
        },
        "throughput": {"output_tokens_per_sec": 265.0, "requests_per_sec": 7.9},
        "prompt_len": {"mean": 512.3},
        "output_len": {"mean": 33.2},
    },
    "failures": {"count": 0},
}
VLLM = {
    "backend": "openai", "model_id": "Qwen/Qwen3-8B", "num_prompts": 100, "request_rate": "inf", "max_concurrency": None,
    "completed": 100, "failed": 0, "total_input_tokens": 51_200, "total_output_tokens": 12_800, "mean_ttft_ms": 120.0,
}  # fmt: skip


def test_a_report_of_inference_perf_is_read_in_seconds() -> None:
    observed = read_measurement(json.dumps(INFERENCE_PERF))

    assert observed.settings == {
        "request_rate_per_s": 8.0, "num_prompts": 480, "input_tokens": 512, "output_tokens": 33,
    }  # fmt: skip
    assert observed.figures["ttft_s.p50"].value == pytest.approx(0.2035395)
    assert observed.figures["tpot_s.mean"].value == pytest.approx(0.0836929)
    assert observed.figures["end_to_end_s.mean"].value == pytest.approx(3.3132543)


def test_requests_without_a_rate_or_a_limit_come_all_at_once() -> None:
    assert read_measurement(json.dumps(VLLM)).settings["concurrent_requests"] == 100


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (VLLM | {"completed": 41, "failed": 59}, "59 of 100 requests failed"),
        (VLLM | {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1}, "the rate of requests grows"),
        (INFERENCE_PERF | {"failures": {"count": 120}}, "120 of 600 requests failed"),
    ],
    ids=["failed", "ramp-up", "inference-perf"],
)
def test_what_is_no_steady_load_is_refused(document: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnreadableTextError, match=reason):
        read_measurement(json.dumps(document))


def test_guidellm_0_3_names_the_model_with_its_worker() -> None:
    run = {
        "args": {"strategy": {"type_": "constant", "rate": 4.0}},
        "run_stats": {"requests_made": {"successful": 240, "errored": 0, "total": 244}},
        "worker": {"backend_type": "openai_http", "backend_model": "Qwen/Qwen3-8B"},
        "metrics": {"time_to_first_token_ms": {"successful": {"mean": 38.1, "median": 36.1}}},
    }

    settings = read_measurement(json.dumps({"benchmarks": [run]})).settings

    assert (settings["model"], settings["request_rate_per_s"]) == ("Qwen/Qwen3-8B", 4.0)
    run["run_stats"] = {"requests_made": {"successful": 100, "errored": 140, "total": 240}}
    with pytest.raises(UnreadableTextError, match="140 of 240 requests failed"):
        read_measurement(json.dumps({"benchmarks": [run]}))


def test_older_genai_perf_names_its_models_shortly() -> None:
    document = {
        "time_to_first_token": {"unit": "ms", "avg": 55.2},
        "input_config": {"model": ["Qwen/Qwen3-8B"], "concurrency": 10, "endpoint": None},
    }

    assert read_measurement(json.dumps(document)).settings == {"model": "Qwen/Qwen3-8B", "concurrent_requests": 10}


def test_what_0_8_was_started_with_is_read_from_its_namespace() -> None:
    """Ranks that share experts stand there alone; the engine's own line tells of one rank."""
    log = (
        "INFO 05-02 12:00:01 [api_server.py:1043] vLLM API server version 0.8.5.post1\n"
        "INFO 05-02 12:00:01 [api_server.py:1044] args: Namespace(model='Qwen/Qwen3-30B-A3B', data_parallel_size=4, "
        "enable_expert_parallel=True, enable_lora=False, max_loras=1, max_lora_rank=16, max_num_seqs=None)\n"
        "INFO 05-02 12:01:09 [gpu_model_runner.py:1347] Model loading took 16.3112 GiB and 13.2 seconds\n"
    )

    settings = read_measurement(log).settings

    assert (settings["data_parallel_size"], settings["expert_parallel"]) == (4, True)
    assert not {"max_loras", "max_lora_rank", "max_num_seqs"} & settings.keys()


def test_blocks_of_tensorrt_llms_engine_are_read() -> None:
    log = (
        "[TensorRT-LLM][INFO] Loaded engine size: 15320 MiB\n"
        "[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 7074\n"
        "[TensorRT-LLM][INFO] Number of tokens per block: 64.\n"
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 55.27 GiB for max tokens in paged KV cache (452736).\n"
    )

    observed = read_measurement(log)

    assert observed.settings["block_size"] == 64
    assert observed.figures["kv_cache.num_gpu_blocks"].value == 7074
    assert observed.figures["kv_cache_bytes"].value == pytest.approx(55.27 * GIB)


@pytest.mark.parametrize(("limits", "is_text_only"), [("{'image': 0, 'video': 0}", True), ("{'image': 2}", None)])
def test_a_limit_of_no_image_is_serving_text_alone(limits: str, is_text_only: bool | None) -> None:  # noqa: FBT001 - a case
    log = (
        f"INFO non-default args: {{'model': 'Qwen/Qwen2.5-VL-7B-Instruct', 'limit_mm_per_prompt': {limits}}}\n"
        "INFO Model loading took 14.2488 GiB and 5.1 seconds\n"
    )

    assert read_measurement(log).settings.get("language_model_only") is is_text_only


@pytest.mark.parametrize(
    ("text", "said", "figures"),
    [
        # vllm-project/vllm issue 10517, 2 December 2024
        (
            (
                "Loading model weights took 14.9888 GB\n"
                "Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB"
                " peak_torch_memory=17.06GiB memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB"
                " kv_cache_size=3.81GiB gpu_memory_utilization=0.90\n# GPU blocks: 1952, # CPU blocks: 2048"
            ),
            {"gpu_memory_utilization": 0.9},
            {"kv_cache_bytes": 3.81 * GIB, "non_torch_bytes": 0.35 * GIB, "gpu_total_bytes": 23.58 * GIB},
        ),
        # SergiioB/intel-arc-pro-b70-inference-cookbook issue 4, 21 August 2026
        (
            (
                "[gpu_worker.py:492] Initial free memory 31.16 GiB, reserved 4.25 GiB memory for KV Cache as specified by"
                " kv_cache_memory_bytes config and skipped memory profiling."
            ),
            {},
            {"kv_cache_bytes": 4.25 * GIB},
        ),
        (
            (
                "non-default args: {'model': 'Qwen/Qwen3-8B', 'kv_cache_memory_bytes': 4563402752}\n"
                "GPU KV cache size: 30,944 tokens"
            ),
            {"kv_cache_memory_bytes": 4_563_402_752},
            {"kv_cache.tokens": 30_944},
        ),
        # noonghunna/club-3090 issue 127, 14 May 2026
        (
            (
                "The current --gpu-memory-utilization=0.9200 is equivalent to --gpu-memory-utilization=0.9129 without\n"
                "(Worker_TP0 pid=147) INFO 05-14 00:04:17 [gpu_worker.py:460] Available KV cache memory: 15.72 GiB"
            ),
            {"gpu_memory_utilization": 0.92},
            {"kv_cache_bytes": 15.72 * GIB},
        ),
        # sgl-project/sglang pull request 18039, 31 January 2026; a switch before a flag is none of its value
        (
            (
                "python3 -m sglang.launch_server --model-path XiaomiMiMo/MiMo-V2-Flash --tp-size 4 --trust-remote-code"
                " --mem-fraction-static 0.7\n[2026-01-31 13:50:39 TP0] max_total_num_tokens=375360"
            ),
            {"gpu_memory_utilization": 0.7, "tensor_parallel_size": 4, "model": "XiaomiMiMo/MiMo-V2-Flash"},
            {"kv_cache.tokens": 375_360},
        ),
        # vllm-project/vllm issue 21348, 22 July 2025: a command of several lines, the model without a flag
        (
            (
                "CUDA_VISIBLE_DEVICES=0,1,2,3 \\\nvllm serve /path/to/Qwen3-235B-A22B-FP8 \\\n  --tensor-parallel-size 4 \\\n"
                "  --trust-remote-code\nAvailable KV cache memory: 8.11 GiB\nGPU KV cache size: 178,880 tokens"
            ),
            {"model": "/path/to/Qwen3-235B-A22B-FP8", "tensor_parallel_size": 4},
            {"kv_cache_bytes": 8.11 * GIB, "kv_cache.tokens": 178_880},
        ),
        # sgl-project/sglang pull request 18263, 15 July 2026: the command of newer versions
        (
            (
                "sglang serve --model-path Qwen/Qwen3-30B-A3B-Instruct-2507 --tp 1\n"
                "[2026-07-15 13:14:54] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1669816, K size: 76.44 GB,"
                " V size: 76.44 GB"
            ),
            {"model": "Qwen/Qwen3-30B-A3B-Instruct-2507", "tensor_parallel_size": 1},
            {"kv_cache.tokens": 1_669_816},
        ),
        # vllm-project/vllm issue 13061, 11 February 2025: flags with underscores
        (
            (
                "vllm serve --trust-remote-code --tensor_parallel_size 2 --gpu_memory_utilization=0.98 /root/r1-14b\n"
                "INFO 02-11 07:40:45 model_runner.py:1115] Loading model weights took 13.9476 GB"
            ),
            {"tensor_parallel_size": 2, "gpu_memory_utilization": 0.98},
            {"weight_bytes": 13.9476 * GIB},
        ),
        # NVIDIA/TensorRT-LLM issue 1400, 4 April 2024
        (
            (
                "[TensorRT-LLM][INFO] Allocate 69524783104 bytes for k/v cache.\n"
                "[TensorRT-LLM][INFO] Using 132608 tokens in paged KV cache."
            ),
            {},
            {"kv_cache_bytes": 69_524_783_104, "kv_cache.tokens": 132_608},
        ),
        # triton-inference-server/tutorials pull request 150
        (
            (
                "[TensorRT-LLM] TensorRT LLM version: 1.2.0\n[TensorRT-LLM][INFO] Number of tokens per block: 32.\n"
                "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 78.30 GiB for max tokens in paged KV cache (3731744)."
            ),
            {"engine_version": "1.2.0", "block_size": 32},
            {"kv_cache_bytes": 78.3 * GIB, "kv_cache.tokens": 3_731_744},
        ),
        # vllm-project/vllm pull request 33743
        (
            (
                "vllm bench serve --model google/gemma-3-27b-it --dataset-name random --num-prompts 16\n"
                "============ Serving Benchmark Result ============\nSuccessful requests:                     16\n"
                "Total input tokens:                      16368\nTotal generated tokens:                  5600\n"
                "Request throughput (req/s):              0.77\nMean TPOT (ms):                          51.78"
            ),
            {"model": "google/gemma-3-27b-it", "input_tokens": 1_023, "output_tokens": 350},
            {"requests_per_s": 0.77, "tpot_s.mean": 0.05178},
        ),
    ],
)
def test_a_text_that_people_published_says_what_it_prints(
    text: str, said: dict[str, object], figures: dict[str, float]
) -> None:
    observed = read_measurement(text)

    assert said.items() <= observed.settings.items()
    assert {name: observed.figures[name].value for name in figures} == pytest.approx(figures)


# https://github.com/vllm-project/vllm/pull/33743 and 31826 (the mark beside a median).
PRINTED = """============ Serving Benchmark Result ============
Successful requests:                     16
Failed requests:                         0
Benchmark duration (s):                  20.87
Total input tokens:                      16368
Request throughput (req/s):              0.77
Mean TTFT (ms):                          2633.55
Median TTFT (ms):                        2648.65             <========
Mean TPOT (ms):                          51.78"""


@pytest.mark.parametrize(
    "before", ["", "bench-1  | ", "2025-11-24T11:44:17.123456789Z ", "2025-11-24T11:44:17.12Z stdout F ", "> ", "# "]
)
def test_what_a_runtime_writes_before_lines_hides_no_result(before: str) -> None:
    observed = read_measurement("\n".join(before + line for line in PRINTED.splitlines()))

    assert {name: each.value for name, each in observed.figures.items()} == pytest.approx(
        {"ttft_s.mean": 2.63355, "ttft_s.p50": 2.64865, "tpot_s.mean": 0.05178, "requests_per_s": 0.77}
    )
    assert observed.settings == {"input_tokens": 1023, "num_prompts": 16}


def test_failed_requests_of_a_printed_result_are_no_steady_load() -> None:
    text = PRINTED.replace("Failed requests:                         0", "Failed requests:                         9")

    with pytest.raises(UnreadableTextError, match="9 of 25 requests failed") as refusal:
        read_measurement(text)

    assert refusal.value.line == 3


def test_older_genai_perf_told_nanoseconds() -> None:
    """As https://github.com/triton-inference-server/perf_analyzer/issues/437 prints them; the first token made up."""
    latency = {"unit": "ns", "avg": 4_110_623_430, "p99": 5_217_352_175}
    document = {"request_latency": latency, "time_to_first_token": latency, "input_config": {"model_names": ["m"]}}
    figures = read_measurement("\ufeff" + json.dumps(document)).figures

    assert figures["end_to_end_s.mean"].value == pytest.approx(4.11062343)
    assert figures["ttft_s.p99"].value == pytest.approx(5.217352175)
    latency["unit"] = "ticks"
    with pytest.raises(UnreadableTextError, match="'ticks'"):
        read_measurement(json.dumps(document))


@pytest.mark.parametrize(
    ("text", "settings", "figures"),
    [
        (  # https://github.com/eugr/spark-vllm-docker/issues/396
            (
                "ValueError: To serve at least one request with the model's max seq len (196608), 23.25 GiB KV cache is "
                "needed, which is larger than the available KV cache memory (22.5 GiB)."
            ),
            {"engine": "vllm", "max_model_len": 196_608},
            {"kv_cache_bytes": 22.5 * GIB},
        ),
        (  # https://github.com/vllm-project/vllm/issues/5248 (its blocks), vLLM 0.6 `worker/worker.py` (its sentence)
            (
                "INFO 06-12 08:12:23 distributed_gpu_executor.py:45] # GPU blocks: 507, # CPU blocks: 1024\nValueError: "
                "The model's max seq len (16384) is larger than the maximum number of tokens that can be stored in KV "
                "cache (8112)."
            ),
            {"engine": "vllm", "max_model_len": 16_384},
            {"kv_cache.num_gpu_blocks": 507, "kv_cache.tokens": 507 * 16},
        ),
        (  # https://github.com/ovg-project/kvcached/issues/29
            (
                "ValueError: Free memory on device (59.32/79.15 GiB) on startup is less than desired GPU memory "
                "utilization (0.9, 71.24 GiB)."
            ),
            {"engine": "vllm", "gpu_memory_utilization": 0.9},
            {"gpu_total_bytes": 79.15 * GIB},
        ),
    ],
    ids=["longer than the cache", "longer than the tokens", "too little free"],
)
def test_a_start_that_failed_says_what_it_had(text: str, settings: dict[str, Any], figures: dict[str, float]) -> None:
    observed = read_measurement(text)

    assert observed.settings == settings
    assert {name: each.value for name, each in observed.figures.items()} == pytest.approx(figures)

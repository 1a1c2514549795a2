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

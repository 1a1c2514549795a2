"""Results as tools print them or write them beside their JSON: shapes of public runs, figures mostly made up."""

import json

import pytest

from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement

# https://github.com/triton-inference-server/perf_analyzer, genai-perf/docs/dynamo.md.
GENAI_PERF = """genai-perf profile \\
  -m deepseek-ai/DeepSeek-R1-Distill-Llama-8B \\
  --concurrency 4 --streaming
                                     NVIDIA GenAI-Perf | LLM Metrics
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┓
┃                            Statistic ┃      avg ┃      min ┃      p99 ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━┩
│             Time To First Token (ms) │    40.00 │    21.23 │    42.00 │
│                 Request Latency (ms) │ 1,800.00 │ 1,783.41 │ 1,802.39 │
│             Inter Token Latency (ms) │    18.00 │    17.95 │    18.50 │
│     Output Token Throughput Per User │    55.67 │    55.61 │    55.70 │
│                    (tokens/sec/user) │          │          │          │
│      Output Sequence Length (tokens) │    99.00 │    99.00 │    99.00 │
│       Input Sequence Length (tokens) │   128.00 │   128.00 │   128.00 │
│ Output Token Throughput (tokens/sec) │   218.00 │      N/A │      N/A │
│         Request Throughput (per sec) │     2.20 │      N/A │      N/A │
└──────────────────────────────────────┴──────────┴──────────┴──────────┘"""
# https://github.com/ai-dynamo/aiperf, exporters/csv_exporter.py.
AIPERF_CSV = """Metric,avg,min,max,p1,p50,p95,p99,std
Inter Token Latency (ms),18.00,17.95,19.00,17.9,17.8,18.3,18.50,0.1
Output Sequence Length (tokens),99.00,99.00,99.00,99,99,99,99.00,0
Time to First Token (ms),40.00,21.00,43.00,21.0,39.00,41.50,42.00,3.0

Metric,Value
Output Token Throughput (tokens/sec),218.00
Request Count,64.00
Request Throughput (requests/sec),2.20"""
# https://github.com/vllm-project/guidellm/pull/617.
GUIDELLM = """i Request Token Statistics (Completed Requests)
|============|========|========|========|========|
| Benchmark  | Input Tok      || Output Tok     ||
| Strategy   | Per Req        || Per Req        ||
|            | Mdn    | p95    | Mdn    | p95    |
|------------|--------|--------|--------|--------|
| concurrent | 1152.0 | 1153.0 | 1000.0 | 1000.0 |
|============|========|========|========|========|


i Request Latency Statistics (Completed Requests)
|============|======|======|=======|=======|======|======|======|======|
| Benchmark  | Request Latency || TTFT         || ITL        || TPOT       ||
| Strategy   | Sec             || ms           || ms         || ms         ||
|            | Mdn  | p95  | Mdn   | p95   | Mdn  | p95  | Mdn  | p95  |
|------------|------|------|-------|-------|------|------|------|------|
| concurrent | 10.8 | 11.2 | 150.0 | 300.0 | 10.6 | 11.0 | 10.8 | 11.2 |
|============|======|======|=======|=======|======|======|======|======|


i Server Throughput Statistics (All Requests)
|============|=======|======|=========|==============|===============|==============|
| Benchmark  | Requests             ||| Input Tokens | Output Tokens | Total Tokens |
| Strategy   | Concurrency || Per Sec | Per Sec      | Per Sec       | Per Sec      |
|            | Mdn   | Mean | Mean                                               ||||
|------------|-------|------|---------|--------------|---------------|--------------|
| concurrent | 25.0  | 25.0 | 2.3     | 2662.3       | 2319.4        | 4775.9       |
|============|=======|======|=========|==============|===============|==============|"""
# https://github.com/NVIDIA/TensorRT-LLM/pull/7104 and issues/6294.
TRTLLM = """===========================================================
= PYTORCH BACKEND
===========================================================
Model:   deepseek-ai/DeepSeek-R1
Model Path:  /models/DeepSeek-R1-0528-FP4
TensorRT-LLM Version: 1.1.0rc1
KV Cache Dtype:  FP8
Quantization:  NVFP4
Number of requests:             6144
Number of concurrent requests:  1018.8281
Average Input Length (tokens):  1024.0000
Average Output Length (tokens): 1024.0000
TP Size:                4
PP Size:                1
EP Size:                4
Max Runtime Batch Size: 1024
Max Runtime Tokens:     2176
KV Memory Percentage:   70.00%
Issue Rate (req/sec):   1.1684E+17

===========================================================
= PERFORMANCE OVERVIEW
===========================================================
Request Throughput (req/sec):                     7.3411
Total Output Throughput (tokens/sec):             7517.2584
Average request latency (ms):                     138000.0

-- Request Latency Breakdown (ms) -----------------------

[Latency] P50    : 137000.0
[Latency] MINIMUM: 39903.1921"""
# https://github.com/modelscope/evalscope, docs/en/user_guides/stress_test/quick_start.md.
EVALSCOPE = """Benchmarking summary:
┌───────────────────────────┬───────────────┐
│ Metric                    │         Value │
├───────────────────────────┼───────────────┤
│ ── General ──             │               │
│ Concurrency               │           200 │
│ Request Rate (req/s)      │         -1.00 │
│ Total / Success / Failed  │ 400 / 400 / 0 │
│ Req Throughput (req/s)    │         10.44 │
│ Avg Latency (s)           │         18.78 │
│ TTFT (ms)                 │        717.63 │
│ TPOT (ms)                 │         17.66 │
│ Avg Input Tokens          │       1024.00 │
│ Avg Output Tokens         │       1024.00 │
│ Output Throughput (tok/s) │      10692.45 │
└───────────────────────────┴───────────────┘

Percentile results:
┌────────────────┬─────────┬─────────┬─────────┬─────────┐
│ Metric         │     10% │     50% │     95% │     99% │
├────────────────┼─────────┼─────────┼─────────┼─────────┤
│ Latency (s)    │   17.74 │   18.71 │   20.62 │   20.84 │
│ TTFT (ms)      │  246.76 │  333.79 │ 2097.23 │ 2319.52 │
└────────────────┴─────────┴─────────┴─────────┴─────────┘"""
# https://github.com/modelscope/evalscope, docs/en/best_practice/deepseek_r1_distill.md: without --stream.
EVALSCOPE_AT_ONCE = """Benchmarking summary:
| Number of concurrency             | 10       |
| Total requests                    | 100      |
| Failed requests                   | 0        |
| Average QPS                       | 1.079    |
| Average latency (s)               | 8.636    |
| Average time to first token (s)   | 8.636    |
| Average time per output token (s) | 0.00058  |"""
# https://github.com/ray-project/llmperf, token_benchmark_ray.py.
LLMPERF = """python token_benchmark_ray.py --model "meta-llama/Llama-2-7b-chat-hf" --num-concurrent-requests 5
inter_token_latency_s
    p50 = 0.0125
    mean = 0.0130
ttft_s
    p25 = 0.2
    p50 = 0.25
    p95 = 0.5
    mean = 0.3
    stddev = 0.1
end_to_end_latency_s
    p50 = 3.6
    mean = 3.9
number_input_tokens
    mean = 550.2
number_output_tokens
    mean = 149.7
Number Of Errored Requests: 0
Overall Output Throughput: 180.5
Number Of Completed Requests: 150
Completed Requests Per Minute: 72.0"""
SUMMARY = {
    "version": "2023-08-31", "name": "x_550_150_summary", "model": "meta-llama/Llama-2-7b-chat-hf",
    "mean_input_tokens": 550, "num_concurrent_requests": 5, "results_inter_token_latency_s_mean": 0.013,
    "results_ttft_s_quantiles_p50": 0.25, "results_ttft_s_quantiles_p95": 0.5, "results_ttft_s_mean": 0.3,
    "results_end_to_end_latency_s_quantiles_p50": 3.6, "results_end_to_end_latency_s_mean": 3.9,
    "results_number_input_tokens_mean": "550.2", "results_number_output_tokens_mean": 149.7,
    "results_num_requests_started": 150, "results_number_errors": 0, "results_num_completed_requests": 150,
    "results_mean_output_throughput_token_per_s": 180.5, "results_num_completed_requests_per_min": 72.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "settings", "figures"),
    [
        (
            GENAI_PERF,
            {"model": "deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "concurrent_requests": 4, "output_tokens": 99},
            {"ttft_s.mean": 0.04, "ttft_s.p99": 0.042, "tpot_s.mean": 0.018, "output_tokens_per_s": 218.0},
        ),
        (
            AIPERF_CSV,
            {"output_tokens": 99, "num_prompts": 64},
            {"ttft_s.p50": 0.039, "tpot_s.p95": 0.0183, "requests_per_s": 2.2},
        ),
        (
            GUIDELLM,
            {"concurrent_requests": 25, "input_tokens": 1152, "output_tokens": 1000},
            {"ttft_s.p50": 0.15, "ttft_s.p95": 0.3, "tpot_s.p50": 0.0106, "end_to_end_s.p50": 10.8,
             "requests_per_s": 2.3, "output_tokens_per_s": 2319.4},
        ),
        (
            GUIDELLM.replace("concurrent", "poisson   "),
            {"request_rate_per_s": 2.3, "input_tokens": 1152},
            {"tpot_s.p95": 0.011},
        ),
        (
            TRTLLM,
            {"engine": "tensorrt-llm", "engine_version": "1.1.0rc1", "model": "deepseek-ai/DeepSeek-R1",
             "tensor_parallel_size": 4, "concurrent_requests": 1019, "max_num_seqs": 1024,
             "gpu_memory_utilization": 0.7, "input_tokens": 1024, "weight_format": "nvfp4", "kv_cache_dtype": "fp8",
             "expert_parallel": True},
            {"requests_per_s": 7.3411, "end_to_end_s.mean": 138.0, "end_to_end_s.p50": 137.0},
        ),
        (
            EVALSCOPE,
            {"concurrent_requests": 200, "num_prompts": 400, "input_tokens": 1024, "output_tokens": 1024},
            {"ttft_s.mean": 0.71763, "ttft_s.p50": 0.33379, "ttft_s.p99": 2.31952, "tpot_s.mean": 0.01766,
             "end_to_end_s.mean": 18.78, "end_to_end_s.p95": 20.62, "requests_per_s": 10.44},
        ),
        (EVALSCOPE_AT_ONCE, {"concurrent_requests": 10}, {"end_to_end_s.mean": 8.636, "requests_per_s": 1.079}),
        (
            LLMPERF,
            {"model": "meta-llama/Llama-2-7b-chat-hf", "concurrent_requests": 5, "input_tokens": 550},
            {"ttft_s.mean": 0.3, "ttft_s.p95": 0.5, "end_to_end_s.p50": 3.6, "requests_per_s": 1.2},
        ),
        (
            json.dumps(SUMMARY),
            {"model": "meta-llama/Llama-2-7b-chat-hf", "concurrent_requests": 5, "output_tokens": 150},
            {"ttft_s.mean": 0.3, "ttft_s.p95": 0.5, "end_to_end_s.p50": 3.6, "requests_per_s": 1.2},
        ),
    ],
    ids=["genai-perf", "aiperf-csv", "guidellm", "guidellm-open", "trtllm-bench", "evalscope", "at-once", "llmperf",
         "llmperf-json"],
)  # fmt: skip
def test_a_result_is_read_as_its_tool_prints_it(
    text: str, settings: dict[str, object], figures: dict[str, float]
) -> None:
    observed = read_measurement(text)

    assert observed.kind == "benchmark"
    assert settings.items() <= observed.settings.items()
    assert {name: observed.figures[name].value for name in figures} == pytest.approx(figures)


@pytest.mark.parametrize("text", [LLMPERF, json.dumps(SUMMARY)], ids=["printed", "json"])
def test_a_token_s_time_with_the_first_one_in_it_is_no_tpot(text: str) -> None:
    assert "tpot_s.mean" not in read_measurement(text).figures


def test_tokens_that_came_at_once_have_no_times() -> None:
    assert not {"ttft_s.mean", "tpot_s.mean"} & read_measurement(EVALSCOPE_AT_ONCE).figures.keys()


def test_tokens_that_were_counted_twice_have_no_time() -> None:
    # A stage of https://github.com/kubernetes-sigs/inference-perf, demos/kubecon-na-2025 (and its issue 564).
    times = {"request_latency": 0.5643, "time_to_first_token": 0.0313, "time_per_output_token": 0.00412}
    report = {
        "load_summary": {"requested_rate": 37.97},
        "successes": {
            "count": 2278, "latency": {name: {"mean": value} for name, value in times.items()},
            "output_len": {"mean": 62.8},
        },
    }  # fmt: skip

    assert set(read_measurement(json.dumps(report)).figures) == {"ttft_s.mean", "end_to_end_s.mean"}


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        (GENAI_PERF + "\n" + GENAI_PERF, 23, "a second result begins here"),
        (GENAI_PERF.replace("Token (ms)", "Token (days)"), 8, "time to first token is in 'days'"),
        (GUIDELLM.replace("| 4775.9       |\n", "| 4775.9       |\n| poisson | 1 | 2 | 3 | 4 | 5 | 6 |\n"), 28,
         "a second benchmark begins here"),
        (TRTLLM + "\n" + TRTLLM, 53, "a second result begins here"),
        (EVALSCOPE.replace("400 / 400 / 0", "400 / 300 / 100"), 8, "100 of 400 requests failed"),
        (LLMPERF.replace("Requests: 0", "Requests: 30"), 18, "30 of 180 requests failed"),
        ('{"load_summary": {}, "successes": {"count": 4, "time_to_first_token": {"mean": 1.0}}}', 1,
         "what the server counted"),
    ],
)  # fmt: skip
def test_what_is_no_single_steady_run_is_refused_by_line(text: str, line: int, sentence: str) -> None:
    with pytest.raises(UnreadableTextError, match=sentence) as refusal:
        read_measurement(text)

    assert refusal.value.line == line


LOG = (
    "(Worker_TP0 pid=447) INFO 08-14 14:07:22 [gpu_worker.py:563] Available KV cache memory: 6.87 GiB",
    "(EngineCore pid=367) INFO 08-14 14:07:23 [kv_cache_utils.py:2100] GPU KV cache size: 150,016 tokens",
)


START = ("INFO 08-14 14:06:00 [utils.py:233] non-default args: {'max_model_len': 32768}", *LOG)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"log": LOG[0] + "\n" + LOG[1] + "\n", "stream": "stderr", "time": "2026-08-14T14:07:22Z"}),
        "\n".join(
            f"{json.dumps({'log': line[:80], 'stream': 'stderr'})}\n{json.dumps({'log': 'other' + chr(10)})}\n"
            f"{json.dumps({'log': line[80:] + chr(10), 'stream': 'stderr'})}"
            for line in LOG
        ),
        "\n".join(json.dumps({"timestamp": "t", "level": "INFO", "message": line}) for line in LOG),
        "\n".join(json.dumps({"text": line + "\n", "record": {"level": {"name": "INFO"}}}) for line in LOG),
        json.dumps([{"textPayload": line, "severity": "ERROR"} for line in LOG]),
        json.dumps([{"jsonPayload": {"message": line}} for line in LOG], indent=2),
        "2026-08-14T14:07:22Z stderr F started\n" + "\n".join(json.dumps({"msg": line}) for line in LOG),
        json.dumps({"events": [{"timestamp": 1, "message": line} for line in LOG]}),
        json.dumps({"hits": {"hits": [{"_source": {"message": line}} for line in LOG]}}),
        json.dumps({"data": [{"attributes": {"message": line}} for line in LOG]}),
        json.dumps(
            {
                "status": "success",
                "data": {
                    "resultType": "streams",
                    "result": [
                        {
                            "stream": {"pod": "vllm-0"},
                            "values": [[str(9 - place), line] for place, line in enumerate(LOG)],
                        },
                        {"stream": {"pod": "vllm-1"}, "values": [["8", "INFO 08-14 Starting"], ["x", "no time"], 3]},
                    ],
                },
            }
        ),
        "\n".join(
            f"2026-08-14T14:07:22.1Z stderr P {line[:80]}\n2026-08-14T14:07:22.2+02:00 stdout F other\n"
            f"2026-08-14T14:07:22.3Z stderr F {line[80:]}"
            for line in LOG
        ),
    ],
    ids=[
        "docker",
        "docker-parts",
        "formatter",
        "loguru",
        "gcloud",
        "gcloud-json",
        "mixed",
        "cloudwatch",
        "elasticsearch",
        "datadog",
        "loki",
        "parts",
    ],
)
def test_what_wrapped_lines_hides_nothing(text: str) -> None:
    figures = {name: figure.value for name, figure in read_measurement(text).figures.items()}

    assert figures == pytest.approx({"kv_cache_bytes": 6.87 * (1 << 30), "kv_cache.tokens": 150_016})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(
            [
                {"textPayload": line, "timestamp": f"2026-08-14T14:0{7 - place}:22Z"}
                for place, line in enumerate(START[::-1])
            ]
        ),
        "\n".join(
            json.dumps({"labels": {}, "line": line, "timestamp": f"2026-08-14T14:07:22.{9 - place}Z"})
            for place, line in enumerate(START[::-1])
        ),
        json.dumps(
            {
                "hits": {
                    "hits": [
                        {"_source": {"message": line, "@timestamp": f"2026-08-14T14:0{7 - place}:22Z"}}
                        for place, line in enumerate(START[::-1])
                    ]
                }
            }
        ),
        json.dumps(
            {
                "data": [
                    {"attributes": {"message": line, "timestamp": 9_000 - place}}
                    for place, line in enumerate(START[::-1])
                ]
            }
        ),
    ],
    ids=["gcloud", "logcli", "elasticsearch", "datadog"],
)
def test_entries_that_stand_the_newest_first_are_read_in_the_order_of_their_time(text: str) -> None:
    told = read_measurement(text)

    assert {name: figure.line for name, figure in told.figures.items()} == {"kv_cache_bytes": 2, "kv_cache.tokens": 3}
    assert told.settings["max_model_len"] == 32_768
    assert not told.doubts


def test_a_result_that_was_quoted_line_by_line_is_read() -> None:
    # https://github.com/sgl-project/sglang/pull/21576.
    lines = ("Serving Benchmark Result", "Backend:                sglang", "Successful requests:      256",
             "Mean TTFT (ms):           12.50")  # fmt: skip
    quoted = "\n".join(f'            "{line}",' for line in lines)

    assert read_measurement(quoted).figures["ttft_s.mean"].value == pytest.approx(0.0125)


@pytest.mark.parametrize(
    ("above", "inside", "settings"),
    [
        ("", "Traffic request rate:   inf\nMax request concurrency:  not set\n", {"concurrent_requests": 768}),
        # https://github.com/vllm-project/vllm/pull/10880: above the result, with the rate of an open loop.
        ("Traffic request rate: 32.0\nMaximum request concurrency: None\n", "", {"request_rate_per_s": 32.0}),
        ("", "", {}),
    ],
    ids=["at once", "open loop", "unsaid"],
)
def test_the_load_is_read_beside_or_inside_the_result(above: str, inside: str, settings: dict[str, float]) -> None:
    text = f"{above}==== Serving Benchmark Result ====\n{inside}Successful requests:  768\nMean TTFT (ms):  53.5\n"

    assert read_measurement(text).settings == settings | {"num_prompts": 768}


@pytest.mark.parametrize(
    ("text", "settings", "figures"),
    [
        # https://github.com/sgl-project/sglang/issues/29575: one line that is all there is.
        (
            (
                "[2026-06-28 15:16:45] max_total_num_tokens=2086558, chunked_prefill_size=8192, max_prefill_tokens=16384, "
                "max_running_requests=33, context_len=256000, available_gpu_mem=17.22 GB"
            ),
            {"engine": "sglang", "max_model_len": 256_000, "max_num_batched_tokens": 8_192},
            {"kv_cache.tokens": 2_086_558},
        ),
        # https://github.com/NVIDIA/TensorRT-LLM/issues/6294.
        (
            (
                "[TensorRT-LLM] TensorRT-LLM version: 0.20.0\n"
                "[07/24/2025-08:13:02] [TRT-LLM] [I] Rank 0 uses 8.50 GB for model weights."
            ),
            {"engine": "tensorrt-llm", "engine_version": "0.20.0"},
            {"weight_bytes": 8.5 * (1 << 30)},
        ),
    ],
    ids=["sglang", "tensorrt-llm"],
)
def test_a_line_of_a_start_up_says_what_it_says(
    text: str, settings: dict[str, object], figures: dict[str, float]
) -> None:
    observed = read_measurement(text)

    assert observed.settings == settings
    assert {name: figure.value for name, figure in observed.figures.items()} == figures


# https://github.com/AI-Hypercomputer/JetStream/pull/83, as the first benchmark_serving.py printed it.
FIRST_EDITION = """Successful requests: 1780
Total input tokens: 214914
Total generated tokens: 415416
Request throughput: 6.05 requests/s
Output token throughput: 1412.49 tokens/s
Mean TTFT: 114960.78 ms
P99 TPOT: 132710.43 ms"""


def test_a_result_without_its_title_and_with_units_behind_is_read() -> None:
    observed = read_measurement(FIRST_EDITION)

    assert observed.settings == {"input_tokens": 121, "output_tokens": 233, "num_prompts": 1780}
    assert observed.figures["ttft_s.mean"].value == pytest.approx(114.96078)
    assert observed.figures["tpot_s.p99"].value == pytest.approx(132.71043)
    assert observed.figures["requests_per_s"].value == 6.05


@pytest.mark.parametrize(
    ("text", "whose"),
    [
        # https://github.com/ollama/ollama/pull/3418, https://github.com/mlc-ai/mlc-llm/issues/2026, and their like.
        ("llama_new_context_with_model: KV self size  =  128.00 MiB, K (f16):   64.00 MiB", "llama.cpp"),
        ("load_tensors:        CUDA0 model buffer size =  4095.05 MiB", "llama.cpp"),
        ('[2024-03-25] INFO engine.py:238: Estimated KVCacheConfig "max_total_sequence_length": 21275.', "MLC LLM"),
        ("INFO text_generation_router: Setting max batch total tokens to 34832", "text-generation-inference"),
        ("[TM][INFO] BlockManager: max_block_count = 1234", "LMDeploy"),
        ("INFO sglang_router_rs::server: src/server.rs:500: Starting router on 0.0.0.0:30000", "SGLang's router"),
        ("| NVIDIA-SMI 580.95.05      Driver Version: 580.95.05      CUDA Version: 13.0 |", "nvidia-smi"),
    ],
)
def test_a_text_of_another_program_is_refused_by_whose_it_is(text: str, whose: str) -> None:
    with pytest.raises(UnreadableTextError, match=f"line 2: a text of {whose}"):
        read_measurement(f"some words before it\n{text}\n")

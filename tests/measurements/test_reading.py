"""Published logs and results of benchmarks are read; foreign and contradictory texts are refused by their line."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement
from tests.conftest import referee_rows

GIB = 1 << 30
WORDS = (
    "benchmarks", "metrics", "config", "args", "strategy", "streams", "rate", "time_to_first_token", "avg", "unit",
    "time_to_first_token_ms", "successful", "mean", "percentiles", "mean_ttft_ms", "request_throughput", "model_id",
    "input_config", "model_names", "loadgen", "concurrency", "max_concurrency", "completed", "total_input_tokens",
    "tput_per_gpu", "conc", "precision", "framework",
)  # fmt: skip
LINES = (
    "Model loading took 9999999999999999999999999999999 GiB", "max_num_batched_tokens=" + "9" * 30, "--a" * 50,
    "Maximum concurrency for 1,1 tokens per request: 3.5x", "server_args=ServerArgs(model_path='x', tp_size=2)",
    "#tokens: 12, K size: 2.50 GB", "LLM engine (v0.31.0) with config: model='y'", "non-default args: {'model': 'z'}",
    "Loaded engine size: 12 MiB", "{", '{"a": 1}', "gpu_memory_utilization (0.9)",
)  # fmt: skip
# It names no quantity: "down from 2.45M / 9.35x".
SAYS_NOTHING = "vllm41834-dsv4flash-2xgb10-early-july"
# What the referee's rows call what a log says.
SAID = {
    "kv_cache_tokens": "kv_cache.tokens",
    "max_concurrency": "kv_cache.max_concurrency",
    "weights_gib": "weight_bytes",
    "activation_peak_gib": "activation_bytes",
    "non_torch_gib": "non_torch_bytes",
    "kv_cache_gib": "kv_cache_bytes",
}


def quoted() -> list[dict[str, Any]]:
    rows = [*referee_rows("vllm_startups.jsonl"), *referee_rows("vllm_startups_2.jsonl")]
    return [row for row in rows if row.get("quote") and row["id"] != SAYS_NOTHING]


def pasted(quote: str) -> str:
    """Return a quote in lines again, unless it is a line of a table."""
    return quote if quote.startswith("| ") or "KV pool" in quote else quote.replace(" | ", "\n")


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in quoted()])
def test_every_quoted_log_says_something(row: dict[str, Any]) -> None:
    assert read_measurement(pasted(row["quote"])).figures


def test_what_logs_say_is_what_the_referee_read_in_them() -> None:
    agree = differ = 0
    for row in quoted():
        figures = read_measurement(pasted(row["quote"])).figures
        for theirs, ours in SAID.items():
            if ours in figures and row.get(theirs):
                unit = GIB if theirs.endswith("_gib") else 1
                same = figures[ours].value / unit == pytest.approx(row[theirs], rel=0.02, abs=0.02)
                agree, differ = agree + same, differ + (not same)

    assert agree > 150
    assert differ <= 0.05 * agree


def test_a_log_of_vllm_is_read_line_by_line() -> None:
    log = (
        "INFO 11-01 [core.py:89] Initializing a V1 LLM engine (v0.31.0) with config: model='meta-llama/Llama-3.1-8B-"
        "Instruct', max_seq_len=131072, tensor_parallel_size=2, kv_cache_dtype=auto\n"
        "something of another program\n"
        "INFO Model loading took 7.51 GiB memory and 3.1 seconds\n"
        "INFO GPU KV cache size: 920,992 tokens\n"
        "INFO Maximum concurrency for 131,072 tokens per request: 7.03x\n"
    )

    observed = read_measurement(log)

    assert observed.settings == {
        "engine": "vllm", "engine_version": "0.31.0", "model": "meta-llama/Llama-3.1-8B-Instruct",
        "max_model_len": 131_072, "tensor_parallel_size": 2,
    }  # fmt: skip
    assert {name: (figure.value, figure.line) for name, figure in observed.figures.items()} == {
        "weight_bytes": (7.51 * GIB, 3),
        "kv_cache.tokens": (920_992, 4),
        "kv_cache.max_concurrency": (7.03, 5),
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Dear all,\nthe server is slow.", 1),
        ("\n\n2026-11-01 nginx started", 3),
        ('{"mean_ttft_ms": 12.5,\n "model_id": ', 2),
        ('{"rows": [1, 2]}', 1),
        ("[1, 2]", 1),
        ("LLM engine (v0.31.0)\nModel loading took 1 GiB\nLLM engine (v0.30.0)", 3),
        ("   ", 1),
    ],
)
def test_a_foreign_or_contradictory_text_is_refused_by_its_line(text: str, line: int) -> None:
    with pytest.raises(UnreadableTextError) as refusal:
        read_measurement(text)

    assert refusal.value.line == line


# Shapes as `vllm/benchmarks/serve.py`, GuideLLM, genai-perf and AIPerf write them; figures are made up.
VLLM = {
    "backend": "vllm", "model_id": "meta-llama/Llama-3.1-8B-Instruct", "num_prompts": 640, "request_rate": "inf",
    "max_concurrency": 64, "completed": 640, "total_input_tokens": 640_000, "total_output_tokens": 128_000,
    "request_throughput": 12.5, "output_throughput": 2500.0, "mean_ttft_ms": 120.0, "median_ttft_ms": 100.0,
    "p99_ttft_ms": 900.0, "mean_tpot_ms": 20.0, "median_tpot_ms": 19.5, "p99_tpot_ms": 40.0,
}  # fmt: skip
GUIDELLM: dict[str, Any] = {
    "args": {"model": "meta-llama/Llama-3.1-8B-Instruct"},
    "benchmarks": [
        {
            "config": {"strategy": {"type_": "concurrent", "streams": 64}},
            "metrics": {
                "time_to_first_token_ms": {
                    "successful": {"mean": 120.0, "median": 100.0, "percentiles": {"p99": 900.0}}
                },
                "inter_token_latency_ms": {"successful": {"mean": 20.0, "median": 19.5}},
                "requests_per_second": {"successful": {"mean": 12.5}},
                "prompt_token_count": {"successful": {"mean": 1000.2}},
                "output_token_count": {"successful": {"mean": 200.0}},
            },
        }
    ],
}
GENAI_PERF = {
    "request_throughput": {"unit": "requests/sec", "avg": 12.5},
    "time_to_first_token": {"unit": "ms", "avg": 120.0, "p50": 100.0, "p99": 900.0},
    "inter_token_latency": {"unit": "ms", "avg": 20.0, "p50": 19.5},
    "input_sequence_length": {"unit": "tokens", "avg": 1000.0},
    "output_sequence_length": {"unit": "tokens", "avg": 200.0},
    "input_config": {
        "model_names": ["meta-llama/Llama-3.1-8B-Instruct"], "perf_analyzer": {"stimulus": {"concurrency": 64}}
    },
}  # fmt: skip
AIPERF = {
    **{name: value for name, value in GENAI_PERF.items() if name != "input_config"},
    "input_config": {
        "endpoint": {"model_names": ["meta-llama/Llama-3.1-8B-Instruct"]}, "loadgen": {"concurrency": 64}
    },
}  # fmt: skip


@pytest.mark.parametrize("document", [VLLM, GUIDELLM, GENAI_PERF, AIPERF], ids=["vllm", "guidellm", "genai", "aiperf"])
def test_results_of_benchmarks_are_read_alike(document: dict[str, Any]) -> None:
    observed = read_measurement(json.dumps(document))

    wanted = {"model": "meta-llama/Llama-3.1-8B-Instruct", "concurrent_requests": 64, "input_tokens": 1000}
    assert observed.kind == "benchmark"
    assert wanted.items() <= observed.settings.items()
    values = {name: figure.value for name, figure in observed.figures.items()}
    assert values["ttft_s.mean"] == pytest.approx(0.12)
    assert values["ttft_s.p99"] == pytest.approx(0.9)
    assert values["tpot_s.p50"] == pytest.approx(0.0195)
    assert values["requests_per_s"] == 12.5


def test_a_report_of_several_benchmarks_is_refused() -> None:
    report = {**GUIDELLM, "benchmarks": GUIDELLM["benchmarks"] * 2}

    with pytest.raises(UnreadableTextError, match="holds 2 benchmarks"):
        read_measurement(json.dumps(report))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner),
    max_leaves=20,
)


@given(VALUES)
def test_no_json_breaks_the_reader(document: object) -> None:
    with suppress(UnreadableTextError):
        read_measurement(json.dumps(document))


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=30), max_size=8).map("\n".join))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(UnreadableTextError):
        read_measurement(text)


PRINTED = """============ Serving Benchmark Result ============
Successful requests:                     640
Maximum request concurrency:             64
Benchmark duration (s):                  51.20
Total input tokens:                      640000
Total generated tokens:                  128000
Request throughput (req/s):              12.50
Output token throughput (tok/s):         2500.00
---------------Time to First Token----------------
Mean TTFT (ms):                          120.00
Median TTFT (ms):                        100.00
P99 TTFT (ms):                           900.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          20.00
=================================================="""


def test_a_printed_result_is_read_by_its_lines() -> None:
    observed = read_measurement("INFO warm up\n" + PRINTED)

    assert observed.settings == {
        "concurrent_requests": 64, "num_prompts": 640, "input_tokens": 1000, "output_tokens": 200
    }  # fmt: skip
    assert {name: (figure.value, figure.line) for name, figure in observed.figures.items()} == {
        "requests_per_s": (12.5, 8), "output_tokens_per_s": (2500.0, 9), "ttft_s.mean": (0.12, 11),
        "ttft_s.p50": (0.1, 12), "ttft_s.p99": (0.9, 13), "tpot_s.mean": (0.02, 15),
    }  # fmt: skip


def test_sglang_prints_the_same_and_names_itself() -> None:
    text = PRINTED.replace("Successful", "Backend:                                 sglang\nSuccessful").replace(
        "Maximum request concurrency:             64", "Traffic request rate:                    8.0"
    )
    observed = read_measurement(text)

    assert observed.what == "SGLang bench_serving"
    assert observed.settings["engine"] == "sglang"
    assert observed.settings["request_rate_per_s"] == 8.0


@pytest.mark.parametrize("text", [PRINTED + "\n" + PRINTED, "\n".join([json.dumps(VLLM)] * 2)])
def test_two_results_are_refused_where_the_second_begins(text: str) -> None:
    with pytest.raises(UnreadableTextError, match="a second result begins here"):
        read_measurement(text)


def test_sglang_and_tensorrt_llm_say_how_they_were_started() -> None:
    sglang = {**VLLM, "backend": "sglang", "model_id": None, "mean_e2e_latency_ms": 4100.0,
              "server_info": {"model_path": "Qwen/Qwen3-8B", "version": "0.5.10", "tp_size": 2, "mem_fraction_static": 0.88}}  # fmt: skip
    trtllm = {
        "engine": {"model": "Qwen/Qwen3-8B", "version": "1.1.0", "backend": "Pytorch"},
        "world_info": {"tp_size": 2, "pp_size": 1, "max_batch_size": 256, "max_num_tokens": 8192},
        "request_info": {"num_requests": 640, "avg_num_concurrent_requests": 63.7, "avg_input_length": 1000.0,
                         "avg_output_length": 200.0},
        "performance": {"request_throughput_req_s": 12.5, "avg_request_latency_ms": 4100.0},
        "streaming_metrics": {"avg_ttft_ms": 120.0, "avg_tpot_ms": 20.0},
    }  # fmt: skip

    one, other = read_measurement(json.dumps(sglang)), read_measurement(json.dumps(trtllm))

    assert (one.settings["engine"], one.settings["model"], one.settings["tensor_parallel_size"]) == (
        "sglang",
        "Qwen/Qwen3-8B",
        2,
    )
    assert (other.settings["engine"], other.settings["concurrent_requests"], other.settings["input_tokens"]) == (
        "tensorrt-llm",
        64,
        1000,
    )
    for observed in (one, other):
        assert observed.figures["ttft_s.mean"].value == 0.12
        assert observed.figures["end_to_end_s.mean"].value == 4.1


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("at util 0.88 it reports a 96,128-token pool", {"kv_cache.tokens": 96_128}),
        ("v0.19.0: ~61k tokens", {"kv_cache.tokens": 61_000}),
        ("KV cache sized to 1.2M tokens / 4.5x concurrency", {"kv_cache.tokens": 1_200_000, "kv_cache.max_concurrency": 4.5}),
        ("GPTQ-INT4 9.5 GiB per card; pool -> 40,960 tokens", {"weight_bytes": 9.5 * GIB, "kv_cache.tokens": 40_960}),
        ("block size to 7808 tokens; a 12,000-token pool", {"kv_cache.tokens": 12_000}),
        ("| m | 1.5 | 2.5 | 0.5 | 60.25 | (Weights|Activation|Non-torch|KV Cache, GiB)", {
            "weight_bytes": 1.5 * GIB, "activation_bytes": 2.5 * GIB, "non_torch_bytes": 0.5 * GIB,
            "kv_cache_bytes": 60.25 * GIB,
        }),
    ],
)  # fmt: skip
def test_what_somebody_tells_of_a_start_up_is_read(text: str, figures: dict[str, float]) -> None:
    observed = read_measurement(text)

    assert observed.what == "start-up as somebody tells it"
    assert {name: figure.value for name, figure in observed.figures.items()} == figures


@pytest.mark.parametrize(
    "text",
    [
        "we serve 4,000 tokens a second",
        "the pool holds 10,000 tokens; the pool holds 20,000 tokens",
        "my KV cache is full",
    ],
)
def test_words_without_one_figure_of_a_start_up_are_refused(text: str) -> None:
    with pytest.raises(UnreadableTextError):
        read_measurement(text)


# As SGLang 0.5.10 `model_executor/model_runner.py`, `mem_cache/memory_pool.py` and `managers/scheduler.py` print it.
SGLANG_LOG = """[2026-11-01 12:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', context_length=None, \
mem_fraction_static=0.87, chunked_prefill_size=-1, tp_size=8, dp_size=8, ep_size=8, enable_dp_attention=True, \
disable_radix_cache=True)
[2026-11-01 12:00:01] Init torch distributed ends. elapsed=1.20 s, mem usage=0.09 GB
[2026-11-01 12:00:20] Load weight end. elapsed=9.10 s, type=Qwen3ForCausalLM, avail mem=63.10 GB, mem usage=15.25 GB.
[2026-11-01 12:00:21] KV Cache is allocated. #tokens: 385000, K size: 26.50 GB, V size: 26.50 GB
[2026-11-01 12:00:22] Load weight end. elapsed=0.50 s, type=Qwen3ForCausalLMNextN, avail mem=9.60 GB, mem usage=0.50 GB.
[2026-11-01 12:00:26] Capture cuda graph end. Time elapsed: 5.02 s. mem usage=1.25 GB. avail mem=8.40 GB.
[2026-11-01 12:00:27] max_total_num_tokens=385000, max_prefill_tokens=16384, available_gpu_mem=8.40 GB
"""


def test_what_sglang_says_of_graphs_and_drafters_is_not_its_weights() -> None:
    observed = read_measurement(SGLANG_LOG)

    assert {name: figure.value for name, figure in observed.figures.items()} == {
        "weight_bytes": 15.25 * GIB, "kv_cache.tokens": 385_000, "kv_cache_bytes": 53 * GIB,
        "cuda_graph_bytes": 1.25 * GIB,
    }  # fmt: skip


def test_sglangs_copies_of_the_attention_lie_within_its_tensor_parallel_size() -> None:
    observed = read_measurement(SGLANG_LOG)

    assert observed.settings == {
        "engine": "sglang", "model": "Qwen/Qwen3-8B", "gpu_memory_utilization": 0.87, "tensor_parallel_size": 1,
        "data_parallel_size": 8, "expert_parallel": True, "enable_prefix_caching": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "gib"),
    [
        ("KV Cache is allocated. #tokens: 12, KV size: 52.50 GB", 52.5),
        (
            "#tokens: 12, K size: 4.50 GB, V size: 4.50 GB\n#tokens: 9, K size: 0.50 GB, V size: 0.50 GB\n"  # noqa: ISC004
            "SWAKVPool mem usage: 10.00 GB, swa size: 12, full size: 9",
            10.0,
        ),
        (
            "Mamba Cache is allocated. max_mamba_cache_size: 186, conv_state size: 0.50GB, ssm_state size: 4.50GB \n"  # noqa: ISC004
            "KV Cache is allocated. #tokens: 327310, K size: 2.50 GB, V size: 2.50 GB",
            10.0,
        ),
    ],
)
def test_all_pools_of_sglang_are_its_cache(line: str, gib: float) -> None:
    """As SGLang 0.5.23 `mem_cache/memory_pool.py` and `mem_cache/swa_memory_pool.py` print them."""
    assert read_measurement(line).figures["kv_cache_bytes"].value == gib * GIB


def test_tensorrt_llm_tells_its_profiled_run() -> None:
    """As TensorRT-LLM `_torch/pyexecutor/_util.py` (`configure_kv_cache_capacity`) prints it."""
    log = (
        "[TRT-LLM] [I] Memory used after loading model weights (inside torch) in memory usage profiling: 63.50 GiB\n"
        "[TRT-LLM] [I] Memory dynamically allocated during inference (inside torch) in memory usage profiling: 0.75 GiB\n"
        "[TRT-LLM] [I] Peak memory during memory usage profiling (torch + non-torch): 113.65 GiB, available KV cache "
        "memory when calculating max tokens: 5.95 GiB, fraction is set 0.9, kv size is 73728. device total memory "
        "119.50 GiB, , tmp kv_mem 0.56 GiB\n"
        "[TRT-LLM] [I] Estimated max memory in KV cache : 6.00 GiB\n"
    )

    figures = {name: figure.value / GIB for name, figure in read_measurement(log).figures.items()}

    assert figures == {"weight_bytes": 63.5, "activation_bytes": 0.75, "gpu_total_bytes": 119.5, "kv_cache_bytes": 6.0}


CONFIG = "Initializing a V1 LLM engine (v0.31.0) with config: model='m', "
LOADED = "\nModel loading took 8.00 GiB memory and 3.1 seconds"


def test_switches_and_drafters_of_vllms_config_are_read() -> None:
    """As vLLM 0.33 `config/vllm.py` (`__str__`) and `config/speculative.py` (`__repr__`) print them."""
    log = (
        CONFIG + "speculative_config=SpeculativeConfig(method='deepseek_mtp', model='m', num_spec_tokens=2), "
        "decode_context_parallel_size=4, enforce_eager=True, enable_prefix_caching=False" + LOADED
    )

    assert read_measurement(log).settings == {
        "engine": "vllm", "engine_version": "0.31.0", "model": "m", "decode_context_parallel_size": 4,
        "enforce_eager": True, "enable_prefix_caching": False, "speculative_method": "mtp", "num_speculative_tokens": 2,
    }  # fmt: skip


@pytest.mark.parametrize("escape", ["\x1b", "\\u001b"])
def test_colours_hide_nothing(escape: str) -> None:
    log = f"{escape}[0;36m(EngineCore_DP0 pid=1){escape}[0m Model loading took {escape}[1m8.00{escape}[0m GiB memory"

    assert read_measurement(log).figures["weight_bytes"].value == 8 * GIB


def test_the_fullest_stage_says_what_weights_take() -> None:
    log = "(Worker_PP0) Model loading took 8.50 GiB memory\n(Worker_PP1) Model loading took 7.00 GiB memory"

    assert read_measurement(log).figures["weight_bytes"].value == 8.5 * GIB


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        (CONFIG + LOADED + "\n" + CONFIG.replace("'m'", "'n'") + LOADED, 3, "model is 'n', and line 1 says 'm'"),
        (
            CONFIG + LOADED + "\nGPU KV cache size: 9 tokens\n" + SGLANG_LOG,
            6,
            "a SGLang start-up log begins here, and a vLLM start-up log on line 2",
        ),
        (CONFIG + "\ntorch.OutOfMemoryError: CUDA out of memory", 2, "the start-up fails here: .*out of memory"),
    ],
)
def test_two_servers_and_a_start_up_that_failed_are_refused_by_line(text: str, line: int, sentence: str) -> None:
    with pytest.raises(UnreadableTextError, match=sentence) as refusal:
        read_measurement(text)

    assert refusal.value.line == line


@pytest.mark.parametrize(
    ("backend", "context", "share"), [("aiter", "None", 0.85), ("aiter", "8192", 0.7225), ("triton", "None", 0.7225)]
)
def test_a_share_that_sglang_prints_is_read_as_it_was_stated(backend: str, context: str, share: float) -> None:
    """SGLang 0.5.9 to 0.5.18 `server_args.py`: "mem_fraction_static *= 0.85" comes before it prints its arguments."""
    line = (
        f"server_args=ServerArgs(model_path='Qwen/Qwen3-8B', context_length={context}, mem_fraction_static=0.7225, "
        f"attention_backend='{backend}')\n#tokens: 12, K size: 2.50 GB"
    )

    assert read_measurement(line).settings["gpu_memory_utilization"] == share

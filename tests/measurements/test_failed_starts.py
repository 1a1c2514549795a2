"""A pool of less than nothing: what a start that failed says is read, told, and stored with no prediction."""

import pytest

from service.catalog.measurement_rows import Setting
from service.catalog.snapshot import Snapshot
from service.measurements.checking import check, lines_of
from service.measurements.reading import read_measurement
from service.measurements.storing import entry_of
from service.questions.asked import Desk

GIB = 1 << 30
# vllm-project/vllm issue 23278.
GPT_OSS = """(EngineCore_0 pid=5839) INFO 08-20 18:04:10 [gpu_model_runner.py:2007] Model loading took 65.9651 GiB and 12.8 seconds
(EngineCore_0 pid=5839) INFO 08-20 18:04:22 [gpu_worker.py:276] Available KV cache memory: -2.14 GiB"""


def test_a_pool_of_less_than_nothing_is_told_beside_what_was_predicted(catalog: Snapshot) -> None:
    checked = check(GPT_OSS, {"gpu": "h100", "model": "gpt-oss-120b"}, catalog, Desk(None))
    pool = next(term for term in checked.terms if term.name == "kv_cache_bytes")

    assert (pool.measured, pool.line, pool.error_fraction) == (-2.14 * GIB, 2, None)
    assert pool.predicted
    told = f"line 2 says that the start failed for want of 2.14 GiB; {pool.predicted / GIB:.2f} GiB are predicted"
    assert told in checked.warnings
    assert f"line 2: kv_cache_bytes {pool.measured:g}, predicted {pool.predicted:g}" in lines_of(checked)


def test_a_pool_of_less_than_nothing_is_not_stored(catalog: Snapshot) -> None:
    checked = check(GPT_OSS, {"gpu": "h100", "model": "gpt-oss-120b"}, catalog, Desk(None))

    assert set(entry_of(checked).figures) == {"weight_bytes"}


def test_the_fullest_rank_says_what_is_left() -> None:
    """As vllm-project/vllm-omni issue 262 lists its ranks, the fuller one first."""
    text = (
        "(Worker_TP1 pid=104299) INFO 12-10 03:24:48 [gpu_worker.py:298] Available KV cache memory: -3.86 GiB\n"
        "(Worker_TP0 pid=104298) INFO 12-10 03:24:48 [gpu_worker.py:298] Available KV cache memory: 9.90 GiB"
    )

    figure = read_measurement(text).figures["kv_cache_bytes"]
    assert (figure.value, figure.line) == (-3.86 * GIB, 1)


# What engines print as they refuse, and what is said of it.
REFUSALS = {
    # vllm-project/recipes pull request 12.
    "ValueError: To serve at least one request with the models's max seq len (262144), (62.00 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (48.66 GiB). Based on the available memory, the estimated "
    "maximum model length is 205728.": "a request of 262144 tokens needs 62.00 GiB of cache",
    # Qwen/Qwen2.5-14B without the first parenthesis, as 0.12 to 0.16 print it.
    "ValueError: To serve at least one request with the models's max seq len (131072), 24.00 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (10.91 GiB).": "a request of 131072 tokens needs 24.00 GiB of "
    "cache",
    # vllm-project/vllm issue 2418.
    "ValueError: The model's max seq len (4096) is larger than the maximum number of tokens that can be stored in KV "
    "cache (3664).": "a request of 4096 tokens is longer than the cache",
    # vllm-project/vllm issue 26884.
    "ValueError: No available memory for the cache blocks.": "no memory is left for a cache",
    # vLLM 0.33 `v1/worker/utils.py`.
    "ValueError: Free memory on device cuda:0 (28.1/31.84 GiB) on startup is less than desired GPU memory utilization "
    "(0.92, 29.3 GiB).": "28.1 GiB of the GPU are free, and 29.3 are asked for",
    # SemiAnalysisAI/InferenceX issue 2128, sgl-project/sglang issue 4330.
    "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.88.": "no memory is "
    "left for a cache",
    "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.": "no memory is left for a cache",
}
BEFORE = {
    "vllm": "INFO [gpu_model_runner.py:2007] Model loading took 65.9651 GiB and 12.8 seconds",
    "sglang": "[2026-07-09] Load weight end. quant=fp8, fmt=e4m3, avail mem=12.25 GB, mem usage=125.65 GB.",
}


@pytest.mark.parametrize(("line", "reason"), REFUSALS.items(), ids=REFUSALS.values())
def test_a_refused_start_is_told(catalog: Snapshot, line: str, reason: str) -> None:
    engine = "sglang" if "mem-fraction-static" in line else "vllm"
    beside: dict[str, Setting] = {"gpu": "h100", "model": "qwen3-coder-480b"}

    told = check(f"{BEFORE[engine]}\n{line}", beside, catalog, Desk(None)).warnings

    assert f"line 2 says that the engine refused to start: {reason}" in told


def test_what_a_refused_start_had_is_compared(catalog: Snapshot) -> None:
    """As vllm-project/recipes pull request 12 prints it."""
    beside: dict[str, Setting] = {"gpu": "h20-141gb", "model": "qwen3-coder-480b", "engine_version": "0.10.1"}
    beside |= {"weight_format": "fp8", "data_parallel_size": 8, "expert_parallel": True}

    terms = check(next(iter(REFUSALS)), beside, catalog, Desk(None)).terms

    assert {term.name: term.measured for term in terms} == {
        "kv_cache_bytes": 48.66 * GIB,
        "kv_cache.estimated_max_model_len": 205_728,
    }
    assert all(abs(term.error_fraction or 1) < 0.06 for term in terms)


def test_a_refused_start_is_not_the_last_complete_one() -> None:
    start = "INFO [core.py:58] Initializing a V1 LLM engine (v0.10.1) with config: model='Qwen/Qwen3-8B'"
    served = f"{start}, max_seq_len=8192\nINFO [gpu_worker.py:276] Available KV cache memory: 48.00 GiB"
    refused = f"{start}, max_seq_len=262144\n{next(iter(REFUSALS))}"

    observed = read_measurement(f"{served}\n{refused}")

    assert observed.figures["kv_cache_bytes"].value == 48 * GIB
    assert observed.refused_line == 0
    assert any("the last complete one, from line 1 on, was read" in doubt.sentence for doubt in observed.doubts)

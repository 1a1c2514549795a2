"""Blocks that a log names and that are not the pool's."""

import pytest

from service.catalog.snapshot import Snapshot
from service.measurements.checking import check
from service.measurements.reading import read_measurement
from service.questions.asked import Desk

GIB = 1 << 30
# https://github.com/jethac/dgx-spark-hijinks, results/aeon_qwen36_dflash_nothink_20260608T0834JST_server.log
PROFILED = (
    "(EngineCore pid=248) INFO 06-07 23:22:35 [kv_cache_utils.py:829] Overriding num_gpu_blocks=0 with "
    "num_gpu_blocks_override=512\n"
)
START = """(APIServer pid=1) INFO 06-07 23:18:27 [utils.py:299] vLLM API server version 0.19.1
(EngineCore pid=248) INFO 06-07 23:22:30 [gpu_model_runner.py:4820] Model loading took 17.66 GiB memory and 26.8 seconds
"""
CACHE = """(EngineCore pid=248) INFO 06-07 23:22:40 [gpu_worker.py:436] Available KV cache memory: 20.27 GiB
(EngineCore pid=248) INFO 06-07 23:22:40 [kv_cache_utils.py:1319] GPU KV cache size: 165,792 tokens
"""


def test_blocks_that_graphs_are_profiled_with_are_none_of_the_pool() -> None:
    assert "kv_cache.num_gpu_blocks" not in read_measurement(START + PROFILED + CACHE).figures


def test_a_start_whose_graphs_were_profiled_is_complete() -> None:
    """Where it was the last of a log, an earlier one was read in its place."""
    again = CACHE.replace("20.27", "19.85")

    observed = read_measurement(START + CACHE + START + PROFILED + again)

    assert observed.figures["kv_cache_bytes"].value == 19.85 * GIB
    assert [each.sentence for each in observed.doubts] == [
        "the log holds 2 starts: the last complete one, from line 5 on, was read"
    ]


@pytest.mark.parametrize("name", ["kv_cache.tokens", "kv_cache.num_gpu_blocks"])
def test_what_is_counted_of_blocks_that_were_asked_for_is_not_compared(name: str, catalog: Snapshot) -> None:
    override = PROFILED.replace("=0 ", "=1256 ")
    blocks = "INFO 06-07 23:22:45 [loggers.py:147] Engine 000: vllm cache_config_info with initialization after num_gpu_blocks is: 512\n"
    text = START + PROFILED + override + CACHE + blocks

    checked = check(text, {"model": "qwen3.5-9b", "gpu": "l40s"}, catalog, Desk(None))

    assert name not in {term.name for term in checked.terms}
    assert any("512 blocks were asked for, and 1256 fit" in each for each in checked.warnings)
    assert "kv_cache_bytes" in {term.name for term in checked.terms}


def test_the_pool_in_use_is_read_in_bytes_of_the_fullest_rank() -> None:
    """As vLLM 0.10.2 and 0.11 print it (`v1/worker/gpu_worker.py`), of Qwen3-235B-A22B-Instruct-2507-FP8 on 8 L40S."""
    available = (
        "(Worker_TP3_EP3 pid=2081) INFO 09-24 20:53:41 [gpu_worker.py:298] Available KV cache memory: 10.65 GiB\n"
    )
    used = (
        "(Worker_TP2_EP2 pid=2080) INFO 09-24 20:54:35 [gpu_worker.py:391] Free memory on device (43.93/44.42 GiB) on "
        "startup. Desired GPU memory utilization is (0.9, 39.98 GiB). Actual usage is 27.72 GiB for weight, 1.4 GiB for "
        "peak activation, 0.21 GiB for non-torch memory, and 3.45 GiB for CUDAGraph memory. Replace "
        "gpu_memory_utilization config with `--kv-cache-memory=7564378828` to fit into requested memory, or "
        "`--kv-cache-memory=11809093120` to fully utilize gpu memory. Current kv cache memory in use is 11423138508 "
        "bytes."
    )

    for text in (available + used, used + "\n" + available, used):
        assert read_measurement(text).figures["kv_cache_bytes"].value == 11_423_138_508


@pytest.mark.parametrize(("gib", "told"), [("40.0", 1), ("0", 0)])
def test_a_start_with_weights_in_the_hosts_memory_is_not_compared_by_its_room(
    gib: str, told: int, catalog: Snapshot
) -> None:
    """GLM-5.2 in four GH200: https://github.com/alint77/jupiter-glm52-vllm-worklog, baseline/server.out."""
    text = f"""(APIServer pid=148236) INFO 07-16 19:52:39 [api_utils.py:273] non-default args: {{'model': 'zai-org/GLM-5.2', \
'tensor_parallel_size': 4, 'offload_backend': 'uva', 'cpu_offload_gb': {gib}, 'cpu_offload_params': ['experts']}}
Model loading took 54.82 GiB memory
Free memory on device (94.44/95.0 GiB) on startup. Actual usage is 1.13 GiB for peak activation"""

    checked = check(text, {"gpu": "gh200-96gb"}, catalog, Desk(None))

    assert [term.name for term in checked.terms].count("weight_bytes") == 1 - told
    assert "gpu_total_bytes" in {term.name for term in checked.terms}
    assert sum("line 1 puts up to 40 GiB of weights into the host's" in each for each in checked.warnings) == told


def test_less_than_nothing_is_no_size() -> None:
    """https://github.com/2215860382/VedioSifter, train_run_20260421_065709.log: vLLM 0.12.0 in verl."""
    text = (
        "(Worker pid=550429) DEBUG 04-21 06:58:36 [v1/worker/gpu_worker.py:484] Free memory on device (93.47/94.97 GiB) "
        "on startup. Desired GPU memory utilization is (0.5, 47.49 GiB). Actual usage is 7.56 GiB for weight, 0.59 GiB "
        "for peak activation, 0.06 GiB for non-torch memory, and -0.97 GiB for CUDAGraph memory. Current kv cache "
        "memory in use is 39.28 GiB."
    )

    figures = read_measurement(text).figures

    assert "cuda_graph_bytes" not in figures
    assert figures["non_torch_bytes"].value == 0.06 * GIB


@pytest.mark.parametrize(
    ("backend", "told"), [("deepep_low_latency", 1), ("allgather_reducescatter", 0)], ids=["another", "its own"]
)
def test_another_exchange_between_experts_is_told(catalog: Snapshot, backend: str, told: int) -> None:
    """vLLM `config/parallel.py`: `all2all_backend`, of which times and memory are those of its own alone."""
    command = f"vllm serve deepseek-ai/DeepSeek-R1 --data-parallel-size 8 --all2all-backend {backend}\n"

    checked = check(command + START + CACHE, {"gpu": "h200"}, catalog, Desk(None))

    assert sum(f"exchange their tokens by {backend}" in each for each in checked.warnings) == told


# vllm-project/vllm `model_executor/offloader/uva.py`, as a probe of capacity quotes it from a start.
MOVED = """INFO [uva.py:61] Total CPU offloaded parameters: 24.28
INFO [gpu_model_runner.py:4000] Model loading took 35.51 GiB memory and 3.1 seconds
INFO [kv_cache_utils.py:1319] GPU KV cache size: 10,720 tokens
INFO [kv_cache_utils.py:1324] Maximum concurrency for 2,048 tokens per request: 5.23x
"""
# DeepSeek-V4-Pro in SGLang 0.5.15.post1 on eight MI355X, of which 8 copies of the attention share the experts.
SHARED = """server_args=ServerArgs(model_path='deepseek-ai/DeepSeek-V4-Pro', tp_size=8, dp_size=8, ep_size=8, \
enable_dp_attention=True, page_size=256, swa_full_tokens_ratio=0.15, context_length=9472, max_running_requests=512)
DSV4 memory calculation: bytes_per_full_token=13735.04, available_bytes=118.93 GB, c128_state_fixed=1.01 GB, \
full_token=9217792
DSV4 pool sizes: full=9217792, swa=1382656, c4=2304448, c128=72014
"""


def test_weights_that_were_moved_to_the_host_are_told_where_no_argument_is(catalog: Snapshot) -> None:
    beside = {"model": "gemma-4-31b-it", "gpu": "h100"}
    alike = MOVED + MOVED.splitlines()[0].replace("24.28", "24.36")

    checked, of_two = (check(text, beside, catalog, Desk(None)) for text in (MOVED, alike))

    assert not checked.terms
    assert "line 1 puts 24.28 GiB of weights into the host's memory" in checked.warnings[0]
    assert "line 5 puts 24.36 GiB" in of_two.warnings[0]  # ranks differ


def test_pools_of_a_compressed_past_are_read_with_the_settings_that_decide_about_them(catalog: Snapshot) -> None:
    pool: dict[str, str | int] = {
        "kv_cache_memory_bytes": int(118.93 * 2**30),
        "gpu": "mi355x",
        "engine_version": "0.5.15",
    }

    terms = {term.name: term for term in check(SHARED, pool, catalog, Desk(None)).terms}

    assert terms["kv_cache_bytes"].measured == pytest.approx(118.93 * 2**30)
    assert terms["kv_cache.tokens"].error_fraction == pytest.approx(0, abs=0.001)


FIRST = "DSv4 memory calculation: bytes_per_full_token=9259.90, available_bytes=1.25 GB, full_token=135168"
SPARSE = (  # some of it on the host
    "DSV4 memory calculation: bytes_per_full_token=9259.90, raw_available_bytes=9.50 GB, hisparse_fixed_overhead=0.50 GB, "
    "effective_available_bytes=9.00 GB, full_token=1042944"
)


@pytest.mark.parametrize(("line", "gib", "tokens"), [(FIRST, 1.25, 135_168), (SPARSE, 9.5, 1_042_944)])
def test_every_edition_of_the_line_of_pools_is_read(line: str, gib: float, tokens: int) -> None:
    figures = read_measurement(line).figures

    assert figures["kv_cache_bytes"].value == pytest.approx(gib * 2**30)
    assert figures["kv_cache.tokens"].value == tokens


RESULT = """============ Serving Benchmark Result ============
Successful requests:                     64
Maximum request concurrency:             8
Total input tokens:                      64000
Total generated tokens:                  6400
Mean TPOT (ms):                          9.00
"""


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("vllm serve Qwen/Qwen3-8B --no-async-scheduling", "planned in turn"),
        ("vLLM API server version 0.19.1\nnon-default args: {'model': 'Qwen/Qwen3-8B', 'async_scheduling': False}",
         "planned in turn"),
        ("vllm serve Qwen/Qwen3-8B --async-scheduling", ""),
        ("vllm serve --async-scheduling Qwen/Qwen3-8B", ""),
        ("vllm serve Qwen/Qwen3-8B", ""),
        ("python -m sglang.launch_server --model-path Qwen/Qwen3-8B --disable-overlap-schedule", "planned in turn"),
        ("server_args=ServerArgs(model_path='Qwen/Qwen3-8B', disable_overlap_schedule=False)", ""),
    ],
)  # fmt: skip
def test_a_server_that_plans_steps_otherwise_is_told(catalog: Snapshot, command: str, told: str) -> None:
    warnings = "; ".join(check(f"{command}\n{RESULT}", {"gpu": "h100"}, catalog, Desk(None)).warnings)

    assert ("steps are planned" in warnings) == bool(told)
    assert told in warnings


@pytest.mark.parametrize(
    ("version", "value", "told"), [("0.11.0", "True", 1), ("0.11.0", "False", 0), ("0.20.0", "False", 1)]
)
def test_what_a_version_plans_unasked_is_not_told(catalog: Snapshot, version: str, value: str, told: int) -> None:
    """vLLM plans ahead of its own accord since 0.14: `config/vllm.py`."""
    log = f"vLLM API server version {version}\nnon-default args: {{'model': 'Qwen/Qwen3-8B', 'async_scheduling': {value}}}\n"

    warnings = check(f"{log}Model loading took 15.27 GiB memory", {"gpu": "h100"}, catalog, Desk(None)).warnings

    assert sum("steps are planned" in each for each in warnings) == told


def test_another_exchange_is_told_beside_a_result_too(catalog: Snapshot) -> None:
    command = "vllm serve deepseek-ai/DeepSeek-R1 --data-parallel-size 8 --all2all-backend deepep_low_latency\n"

    warnings = check(command + RESULT, {"gpu": "h200"}, catalog, Desk(None)).warnings

    assert any("experts exchange their tokens by deepep" in each for each in warnings)

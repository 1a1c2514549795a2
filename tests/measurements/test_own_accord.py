"""What engines say of their own accord: read where no argument says it, never against one."""

from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.measurements.checking import check
from service.measurements.reading import read_measurement
from service.questions.asked import Desk
from tests.conftest import referee_rows

# vllm-project/vllm pull request 18828: both ranks speak.
OLMOE = """INFO 05-28 12:20:38 [parallel_state.py:1064] rank 0 in world size 2 is assigned as DP rank 0, PP rank 0, TP \
rank 0, EP rank 0
(VllmWorkerProcess pid=2692) INFO 05-28 12:20:38 [parallel_state.py:1064] rank 1 in world size 2 is assigned as DP rank \
0, PP rank 0, TP rank 1, EP rank 1
INFO 05-28 12:20:38 [model_runner.py:1170] Starting to load model allenai/OLMoE-1B-7B-0125-Instruct...
(VllmWorkerProcess pid=2692) INFO 05-28 12:20:38 [model_runner.py:1170] Starting to load model allenai/OLMoE-1B-7B-\
0125-Instruct...
INFO 05-28 12:23:28 [model_runner.py:1202] Model loading took 6.4471 GiB and 169.853854 seconds"""
FIRST_RANK, SECOND_RANK, *REST = OLMOE.splitlines()


def test_ranks_that_all_speak_tell_how_they_are_laid_out() -> None:
    assert read_measurement(OLMOE).settings == {
        "engine": "vllm", "model": "allenai/OLMoE-1B-7B-0125-Instruct", "tensor_parallel_size": 2,
    }  # fmt: skip


def test_the_last_rank_alone_tells_it_too() -> None:
    """As in nlzy/vllm-gfx906 issue 18, whose paste begins after the first ranks."""
    line = "rank 7 in world size 8 is assigned as DP rank 0, PP rank 0, TP rank 7, EP rank 7"

    assert read_measurement("\n".join([line, *REST])).settings["tensor_parallel_size"] == 8


def test_a_rank_among_others_that_are_silent_leaves_open_how_they_lie(catalog: Snapshot) -> None:
    text = "\n".join([FIRST_RANK, *REST])
    asked = {"model": "qwen3-30b-a3b", "gpu": "a100"}
    open_, stated = (
        check(text, {**asked, **more}, catalog, Desk(None)).warnings for more in ({}, {"tensor_parallel_size": 2})
    )

    told = "line 1 tells of 2 ranks, and nothing of how they are laid out: state tensor_parallel_size"
    assert told in open_
    assert told not in stated


def test_an_argument_says_more_than_a_rank() -> None:
    text = "INFO args: Namespace(model='m/n', tensor_parallel_size=1, pipeline_parallel_size=2)\n" + OLMOE

    assert read_measurement(text).settings == {
        "engine": "vllm", "model": "m/n", "tensor_parallel_size": 1, "pipeline_parallel_size": 2,
    }  # fmt: skip


def test_of_two_models_that_are_loaded_neither_is_the_one() -> None:
    assert "model" not in read_measurement(OLMOE.replace("allenai/", "a/", 1)).settings


@pytest.mark.parametrize(
    ("line", "gpu"),
    [
        # vllm-project/vllm issue 17768, pull request 14447, issue 17619, LMCache/LMCache issue 503
        ("configs/E=16,N=1024,device_name=NVIDIA_H200.json", "h200-sxm-141gb"),
        ("configs/E=256,N=14336,device_name=NVIDIA_GeForce_RTX_3090.json", "rtx-3090"),
        (
            "configs/E=16,N=1536,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8,block_shape=[128,128].json",
            "h100-sxm-80gb",
        ),
    ],
)
def test_the_device_whose_kernels_are_looked_for_is_the_gpu(line: str, gpu: str, catalog: Snapshot) -> None:
    warned = "WARNING [fused_moe.py:659] Using default MoE config. Performance might be sub-optimal! Config file not found at "
    checked = check(f"{warned}/vllm/{line}\n{REST[-1]}", {"model": "qwen3-30b-a3b"}, catalog, Desk(None))

    assert checked.gpu == gpu
    assert next(said.line for said in checked.settings if said.name == "gpu") == 1


@pytest.mark.parametrize(
    ("before", "chunk"), [("", 8192), ("server_args=ServerArgs(chunked_prefill_size=2048)\n", 2048)]
)
def test_sglang_says_its_chunk_with_its_tokens(before: str, chunk: int) -> None:
    """As sgl-project/sglang issue 29575 is titled."""
    line = (
        "[2026-06-28 15:16:45] max_total_num_tokens=2086558, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        "max_running_requests=33, context_len=256000, available_gpu_mem=17.22 GB"
    )
    said: dict[str, Any] = read_measurement(before + line).settings

    assert said == {"engine": "sglang", "max_model_len": 256_000, "max_num_batched_tokens": chunk}


# vllm-project/vllm issue 40691, of vLLM 0.19.0 on an H20; it names both Qwen3.5-27B and Qwen3.5-35B-A3B.
BY_BLOCKS = """INFO [kv_cache_utils.py:1319] GPU KV cache size: 290,864 tokens
INFO [kv_cache_utils.py:1324] Maximum concurrency for 32,768 tokens per request: 33.04x"""


def test_tokens_of_a_version_that_counts_by_blocks_are_not_compared_by_another_count(catalog: Snapshot) -> None:
    asked = {"model": "qwen3.5-35b-a3b", "gpu": "h20"}
    unstated, stated = (
        check(BY_BLOCKS, {**asked, **more}, catalog, Desk(None)) for more in ({}, {"engine_version": "0.19.0"})
    )

    assert [term.name for term in unstated.terms] == ["kv_cache.max_concurrency"]
    assert any("290864 tokens are not 33.04 x 32768" in each for each in unstated.warnings)
    assert [term.name for term in stated.terms] == ["kv_cache.tokens", "kv_cache.max_concurrency"]
    assert not any("290864 tokens" in each for each in stated.warnings)


def test_tokens_that_are_counted_by_requests_are_doubted_in_no_log_of_newer_versions() -> None:
    rows = [*referee_rows("vllm_startups.jsonl"), *referee_rows("vllm_startups_2.jsonl")]
    known = [
        row for row in rows if row.get("max_concurrency") and row.get("kv_cache_tokens") and row.get("max_model_len")
    ]
    doubted = [row for row in known if read_measurement(said(row)).doubts]

    assert len(known) > 80
    assert 5 <= len(doubted) <= 8
    assert not any(str(row.get("engine_version")).startswith(("0.21", "0.22", "0.3")) for row in doubted)


def said(row: dict[str, Any]) -> str:
    """Return the two lines that a row was read from."""
    return (
        f"GPU KV cache size: {row['kv_cache_tokens']:,} tokens\n"
        f"Maximum concurrency for {row['max_model_len']:,} tokens per request: {row['max_concurrency']}x"
    )


# RedHatAI/gemma-4-26B-A4B-it-NVFP4 on vLLM 0.19.2, as its server greets.
BANNER = """(APIServer pid=1) INFO 04-19 10:58:51 [utils.py:299]        █     █     █▄   ▄█
(APIServer pid=1) INFO 04-19 10:58:51 [utils.py:299]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.19.2rc1.dev8+g4b7f5ea1a
(APIServer pid=1) INFO 04-19 10:58:51 [utils.py:299]   █▄█▀ █     █     █     █  model   RedHatAI/gemma-4-26B-A4B-it-NVFP4
(EngineCore pid=2) INFO 04-19 10:59:51 [core.py:1] Model loading took 15.94 GiB memory and 9.1 seconds
"""


def test_a_banner_says_version_and_model() -> None:
    said = read_measurement(BANNER).settings

    assert said["engine_version"] == "0.19.2rc1.dev8+g4b7f5ea1a"
    assert said["model"] == "RedHatAI/gemma-4-26B-A4B-it-NVFP4"


def test_gpus_beyond_those_of_a_server_are_its_copies(catalog: Snapshot) -> None:
    log = (
        "non-default args: {'model': 'Qwen/Qwen3-32B', 'tensor_parallel_size': 2}\n"
        "(Worker_TP0 pid=52) Model loading took 30.59 GiB memory and 12.3 seconds\n"
    )

    alone, among = (check(log, {"gpu": gpu}, catalog, Desk(None)) for gpu in ("h100", "8xh100"))

    assert alone.terms[0].predicted == among.terms[0].predicted


def test_the_smallest_of_the_pools_that_ranks_print_is_the_one_that_all_of_them_use() -> None:
    """`Change the num_blocks of each rank to the smallest among all ranks`: vLLM's `v1/core/kv_cache_utils.py`."""
    text = "\n".join(
        f"(Worker_TP{rank} pid={rank}) INFO 11-24 10:00:0{rank} [gpu_worker.py:298] Available KV cache memory: {gib} GiB\n"
        f"(EngineCore_DP0 pid=1) INFO 11-24 10:00:1{rank} [kv_cache_utils.py:1087] GPU KV cache size: {tokens} tokens\n"
        f"(EngineCore_DP0 pid=1) INFO 11-24 10:00:1{rank} [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens "
        f"per request: {held}x"
        for rank, (gib, tokens, held) in enumerate([(35.70, "467,920", 57.12), (35.59, "466,480", 56.94)])
    )
    for lines in (text.splitlines(), text.splitlines()[::-1]):
        figures = read_measurement("\n".join(lines)).figures
        assert figures["kv_cache.tokens"].value == 466_480
        assert figures["kv_cache.max_concurrency"].value == 56.94


def test_prefixes_are_kept_as_the_engine_decided(catalog: Snapshot) -> None:
    """Qwen3-Next on two L40S as vLLM 0.13.0 starts it: of a hybrid model it keeps none, whatever it was asked."""
    text = """(APIServer pid=1) INFO 02-12 19:46:23 [utils.py:253] non-default args: {'model': '/models', 'max_model_len': 32768, \
'tensor_parallel_size': 2, 'gpu_memory_utilization': 0.92, 'kv_cache_dtype': 'fp8', 'enable_prefix_caching': True, \
'max_num_batched_tokens': 8192, 'max_num_seqs': 8}
(APIServer pid=1) INFO 02-12 19:46:30 [config.py:302] Hybrid or mamba-based model detected without support for prefix \
caching: disabling.
(EngineCore_DP0 pid=241) INFO 02-12 19:46:37 [core.py:93] Initializing a V1 LLM engine (v0.13.0) with config: \
model='/models', tensor_parallel_size=2, kv_cache_dtype=fp8, enable_prefix_caching=False, enable_chunked_prefill=True
(Worker_TP0 pid=306) INFO 02-12 19:47:50 [gpu_model_runner.py:3659] Model loading took 22.5313 GiB memory and 63.2 seconds
(Worker_TP0 pid=306) INFO 02-12 19:50:09 [gpu_worker.py:375] Available KV cache memory: 17.58 GiB
(EngineCore_DP0 pid=241) INFO 02-12 19:50:09 [kv_cache_utils.py:1296] Maximum concurrency for 32,768 tokens per request: 84.29x"""

    checked = check(
        text, {"model": "qwen3-next-80b-a3b-instruct", "gpu": "l40s", "weight_format": "awq"}, catalog, Desk(None)
    )

    assert next(said for said in checked.settings if said.name == "enable_prefix_caching").line == 3
    assert checked.question["enable_prefix_caching"] is False
    predicted, measured = (
        {term.name: getattr(term, side) for term in checked.terms} for side in ("predicted", "measured")
    )
    assert predicted["kv_cache.max_concurrency"] / predicted["kv_cache_bytes"] == pytest.approx(
        measured["kv_cache.max_concurrency"] / measured["kv_cache_bytes"], rel=0.001
    )


def test_a_build_without_tags_says_no_version(catalog: Snapshot) -> None:
    """https://github.com/jethac/dgx-spark-hijinks: vllm-gemma4-12b-unified-tfmain-cleanjit-da1daf4-20260607T152639Z."""
    text = """(EngineCore pid=803) INFO 06-07 15:28:37 [core.py:113] Initializing a V1 LLM engine (v0.1.dev1+gda1daf40b) with \
config: model='google/gemma-4-12B-it', speculative_config=None, tokenizer='google/gemma-4-12B-it'
(EngineCore pid=803) INFO 06-07 15:31:30 [gpu_model_runner.py:5182] Model loading took 22.83 GiB memory and 153.313634 seconds
(EngineCore pid=803) INFO 06-07 15:32:49 [gpu_worker.py:470] Available KV cache memory: 69.53 GiB"""

    untold, told = (
        check(text, {"gpu": "gb10", **more}, catalog, Desk(None)) for more in ({}, {"engine_version": "0.23"})
    )

    sentence = "line 1 says version 0.1.dev1+gda1daf40b, as a build names itself whose repository has no tags"
    assert any(sentence in warning for warning in untold.warnings)
    assert not any(sentence in warning for warning in told.warnings)
    assert told.question["engine_version"] == "0.23"
    assert next(term for term in told.terms if term.name == "weight_bytes").error_fraction == pytest.approx(
        0, abs=0.005
    )


def test_the_budget_of_steps_is_the_one_said_last() -> None:
    """https://github.com/faradawn/bench3, logs/vllm_server.log: vLLM 0.11.2 tells of a configuration of defaults first."""
    text = """INFO 11-28 15:27:15 [scheduler.py:216] Chunked prefill is enabled with max_num_batched_tokens=2048.
(APIServer pid=155) INFO 11-28 15:27:15 [api_server.py:1977] vLLM API server version 0.11.2
(APIServer pid=155) INFO 11-28 15:27:22 [scheduler.py:216] Chunked prefill is enabled with max_num_batched_tokens=8192."""

    observed = read_measurement(f"{text}\n{REST[-1]}")

    assert (observed.settings["max_num_batched_tokens"], observed.setting_lines["max_num_batched_tokens"]) == (8192, 3)


# faradawn/bench3 on GitHub, logs/trtllm-serve-egine.log: a start that measures with a small pool first.
TRTLLM_SERVE = """[TensorRT-LLM] TensorRT LLM version: 1.2.0rc4
[12/07/2025-00:20:27] [TRT-LLM] [I] Use 14.96 GB for model weights.
[TensorRT-LLM][INFO] Number of tokens per block: 32.
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 0.13 GiB for max tokens in paged KV cache (1088).
[12/07/2025-00:20:42] [TRT-LLM] [I] max_seq_len=1025, max_num_requests=32, max_num_tokens=1024, max_batch_size=32
[12/07/2025-00:21:00] [TRT-LLM] [I] Memory used after loading model weights (inside torch) in memory usage \
profiling: 15.06 GiB
[12/07/2025-00:21:00] [TRT-LLM] [I] Memory dynamically allocated during inference (inside torch) in memory usage \
profiling: 0.14 GiB
[12/07/2025-00:21:00] [TRT-LLM] [I] Peak memory during memory usage profiling (torch + non-torch): 17.76 GiB, \
available KV cache memory when calculating max tokens: 109.96 GiB, fraction is set 0.9, kv size is 131072. device \
total memory 139.80 GiB, , tmp kv_mem 0.13 GiB
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 109.96 GiB for max tokens in paged KV cache (900800).
[12/07/2025-00:21:00] [TRT-LLM] [I] max_seq_len=1025, max_num_requests=32, max_num_tokens=1024, max_batch_size=32"""


def test_limits_of_tensorrt_llm_and_the_weights_alone_are_read(catalog: Snapshot) -> None:
    """The same GPU holds weights of 14.96 GiB in vLLM's log of this model: what a step left is not weights."""
    observed = read_measurement(TRTLLM_SERVE)
    checked = check(TRTLLM_SERVE, {"model": "llama-3-8b-instruct", "gpu": "h200"}, catalog, Desk(None))
    error = {term.name: term.error_fraction for term in checked.terms}

    assert observed.settings == {
        "engine": "tensorrt-llm", "engine_version": "1.2.0rc4", "block_size": 32, "max_model_len": 1_025,
        "max_num_batched_tokens": 1_024, "max_num_seqs": 32, "gpu_memory_utilization": 0.9,
    }  # fmt: skip
    assert observed.figures["weight_bytes"].value == 14.96 * 2**30
    assert error["weight_bytes"] == pytest.approx(0, abs=0.001)
    assert error["kv_cache.tokens"] == pytest.approx(error["kv_cache_bytes"], abs=0.001)


def test_a_pool_that_shrank_the_longest_context_and_a_share_in_single_precision() -> None:
    """gpt-oss-120b under TensorRT-LLM 1.1.0rc3 on a DGX Spark: once to measure, once to serve."""
    line = "[TRT-LLM] [I] max_seq_len={}, max_num_requests=64, max_num_tokens=8192, max_batch_size=64\n"
    share = (
        "[TRT-LLM] [I] Peak memory during memory usage profiling (torch + non-torch): 113.65 GiB, available KV cache "
        "memory when calculating max tokens: 5.95 GiB, fraction is set 0.8999999761581421, kv size is 73728. device "
        "total memory 119.70 GiB, , tmp kv_mem 0.56 GiB\n"
    )

    observed = read_measurement(line.format(8_224) + share + line.format(86_720))

    assert observed.settings == {
        "engine": "tensorrt-llm", "max_model_len": 86_720, "max_num_batched_tokens": 8_192, "max_num_seqs": 64,
        "gpu_memory_utilization": 0.9,
    }  # fmt: skip

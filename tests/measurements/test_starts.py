"""A log of several starts, as `docker logs` prints it of a container that was restarted."""

import pytest

from service.catalog.snapshot import Snapshot
from service.measurements.checking import check
from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement
from service.questions.asked import Desk

GIB = 1 << 30
# Lines as vLLM 0.11 (vllm-project/vllm issue 23278), SGLang 0.5 and TensorRT-LLM 1.0 write them; figures are made up.
VLLM = """(APIServer pid=1) INFO 11-01 10:00:00 [api_server.py:1839] vLLM API server version 0.11.2
(APIServer pid=1) INFO 11-01 10:00:00 [utils.py:233] non-default args: {{'model': 'Qwen/Qwen3-8B', 'max_model_len': {length}}}
(EngineCore_DP0 pid=99) INFO 11-01 10:00:09 [core.py:93] Initializing a V1 LLM engine (v0.11.2) with config: model='Qwen/Qwen3-8B', max_seq_len={length}
(EngineCore_DP0 pid=99) INFO 11-01 10:01:00 [gpu_model_runner.py:2930] Model loading took {weights} GiB and 9.1 seconds"""
CACHE = """
(EngineCore_DP0 pid=99) INFO 11-01 10:02:00 [gpu_worker.py:349] Available KV cache memory: {cache} GiB
(EngineCore_DP0 pid=99) INFO 11-01 10:02:00 [kv_cache_utils.py:1229] GPU KV cache size: {tokens:,} tokens
"""
SGLANG = """[2025-11-01 10:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tp_size=1, mem_fraction_static={share})
[2025-11-01 10:00:30] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=63.2 GB, mem usage={weights} GB."""
SGLANG_CACHE = """
[2025-11-01 10:00:40] KV Cache is allocated. #tokens: {tokens}, K size: 25.00 GB, V size: 25.00 GB
"""
TENSORRT = """[TensorRT-LLM] TensorRT LLM version: 1.0.0
[TensorRT-LLM] TensorRT LLM version: 1.0.0
[TensorRT-LLM][INFO] Loaded engine size: {weights} MiB"""
TENSORRT_CACHE = """
[TensorRT-LLM][INFO] [MemUsageChange] Allocated {cache} GiB for max tokens in paged KV cache ({tokens}).
"""


def test_of_a_restarted_vllm_the_last_start_is_read_alone() -> None:
    first = VLLM.format(length=40960, weights="15.2683") + CACHE.format(cache="50.00", tokens=364_080)
    again = VLLM.format(length=16384, weights="8.1000") + CACHE.format(cache="57.00", tokens=415_040)

    alone, both = read_measurement(again), read_measurement(first + again)

    assert {name: each.value for name, each in both.figures.items()} == {
        name: each.value for name, each in alone.figures.items()
    }
    assert both.settings == alone.settings
    assert both.setting_lines["max_model_len"] == 8  # 16384, not the 40960 of line 2
    assert [each.sentence for each in both.doubts] == [
        "the log holds 2 starts: the last complete one, from line 7 on, was read"
    ]


def test_a_start_that_broke_off_is_passed_over() -> None:
    whole = VLLM.format(length=16384, weights="15.2683") + CACHE.format(cache="50.00", tokens=364_080)
    broken = VLLM.format(length=40960, weights="8.1000") + "\ntorch.OutOfMemoryError: CUDA out of memory.\n"

    for text, line in ((broken + whole, 6), (whole + broken, 1)):
        observed = read_measurement(text)
        assert observed.figures["weight_bytes"].value == 15.2683 * GIB
        assert observed.settings["max_model_len"] == 16384
        assert f"from line {line} on, was read" in observed.doubts[0].sentence
    assert observed.doubts[0].sentence.endswith("; the one from line 7 on did not get as far")


def test_of_starts_of_which_one_failed_for_want_of_a_cache_the_other_one_is_read() -> None:
    whole = VLLM.format(length=16384, weights="15.2683") + CACHE.format(cache="50.00", tokens=364_080)
    failed = VLLM.format(length=40960, weights="65.9651") + "\nINFO Available KV cache memory: -2.14 GiB\n"

    assert read_measurement(whole + failed).figures["kv_cache_bytes"].value == 50 * GIB
    assert read_measurement(failed + failed).figures["kv_cache_bytes"].value == -2.14 * GIB


def test_starts_of_which_none_tells_of_its_cache_are_refused_by_the_last_ones_line() -> None:
    broken = VLLM.format(length=40960, weights="8.1000") + "\ntorch.OutOfMemoryError: CUDA out of memory.\n"

    with pytest.raises(UnreadableTextError, match="start 2 of 2 begins here, and none of them") as refusal:
        read_measurement(broken + broken)

    assert refusal.value.line == 6


def test_a_command_above_a_start_is_of_that_start() -> None:
    first = VLLM.format(length=40960, weights="15.2683") + CACHE.format(cache="50.00", tokens=364_080)
    command = "+ exec vllm serve Qwen/Qwen3-8B \\\n  --max-num-seqs 64 --max-model-len 16384\n"
    again = command + VLLM.format(length=16384, weights="15.2683") + CACHE.format(cache="50.00", tokens=364_080)

    observed = read_measurement(first + again)

    assert observed.settings["max_num_seqs"] == 64
    assert "from line 7 on" in observed.doubts[0].sentence


def test_a_restart_of_sglang_and_of_tensorrt_llm_is_a_start_of_its_own() -> None:
    sglang = "".join(
        SGLANG.format(share=share, weights=weights) + SGLANG_CACHE.format(tokens=tokens)
        for share, weights, tokens in (("0.8", "15.3", 364_000), ("0.9", "8.2", 432_000))
    )
    tensorrt = "".join(
        TENSORRT.format(weights=weights) + TENSORRT_CACHE.format(cache=cache, tokens=tokens)
        for weights, cache, tokens in ((15_320, "55.27", 452_736), (8_100, "60.10", 492_288))
    )

    observed = read_measurement(sglang)
    assert (observed.settings["gpu_memory_utilization"], observed.figures["weight_bytes"].value) == (0.9, 8.2 * GIB)
    assert "from line 4 on" in observed.doubts[0].sentence
    observed = read_measurement(tensorrt)
    assert (observed.figures["weight_bytes"].value, observed.figures["kv_cache.tokens"].value) == (
        8_100 << 20, 492_288,
    )  # fmt: skip
    assert "from line 5 on" in observed.doubts[0].sentence


def test_ranks_that_start_side_by_side_are_one_start() -> None:
    lines = "\n".join(
        f"(EngineCore_DP{rank} pid={rank}) INFO {said}"
        for said in (
            "Initializing a V1 LLM engine (v0.11.2) with config: model='Qwen/Qwen3-8B'",
            "Model loading took 15.2683 GiB and 9.1 seconds",
        )
        for rank in (0, 1)
    )
    late = "(EngineCore_DP2 pid=2) INFO Initializing a V1 LLM engine (v0.11.2) with config: model='Qwen/Qwen3-8B'\n"

    assert read_measurement(f"{lines}\n{late}(EngineCore_DP2) INFO GPU KV cache size: 364,080 tokens").doubts == []


def test_the_answer_says_which_start_it_is_of(catalog: Snapshot) -> None:
    start = VLLM.format(length=16384, weights="15.2683") + CACHE.format(cache="50.00", tokens=364_080)

    checked = check(start + start, {"gpu": "h100"}, catalog, Desk(None))

    assert "the log holds 2 starts: the last complete one, from line 7 on, was read" in checked.warnings

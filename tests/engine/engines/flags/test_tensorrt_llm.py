"""TensorRT-LLM's command line (`trtllm-serve --help`)."""

import shlex
from dataclasses import replace

from service.engine.engines.registry import engine_named
from tests.engine.engines.flags.test_base import START

LINE = engine_named("tensorrt-llm").command_line


def test_the_share_is_of_what_weights_leave_free() -> None:
    args = LINE.sized(START)

    assert args[args.index("--kv_cache_free_gpu_memory_fraction") + 1] == "0.9"
    assert args[args.index("--max_seq_len") + 1] == "8192"


def test_mpi_starts_a_rank_for_each_gpu() -> None:
    words = shlex.split(LINE.command(START, LINE.sized(START), frozenset()).splitlines()[-1])

    assert words[:4] == ["mpirun", "-n", "16", "trtllm-llmapi-launch"]
    assert words[-2:] == ["--gpus_per_node", "8"]


def test_a_given_pool_has_no_flag() -> None:
    given = replace(START, settings=replace(START.settings, kv_cache_memory_bytes=10**10))

    assert "kv_cache_memory_bytes" in LINE.unnamed(given)

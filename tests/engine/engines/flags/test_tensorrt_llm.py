"""TensorRT-LLM's command line (`trtllm-serve --help`)."""

import shlex
from dataclasses import replace

from service.engine.engines.registry import engine_named
from service.engine.inputs import Layout
from tests.engine.engines.flags.test_base import START

LINE = engine_named("tensorrt-llm").command_line


def test_the_share_is_of_what_weights_leave_free() -> None:
    args = LINE.sized(START)

    assert args[args.index("--kv_cache_free_gpu_memory_fraction") + 1] == "0.9"
    assert args[args.index("--max_seq_len") + 1] == "8192"


def test_mpi_starts_a_rank_for_each_gpu() -> None:
    words = shlex.split(LINE.command(START, LINE.sized(START), frozenset()).splitlines()[-1])

    assert words[:6] == ["mpirun", "-n", "16", "-H", "HEAD_ADDRESS:8,NODE_1_ADDRESS:8", "trtllm-llmapi-launch"]
    assert words[-2:] == ["--gpus_per_node", "8"]


def test_the_last_server_has_slots_for_what_is_left() -> None:
    start = replace(START, layout=Layout(tensor_parallel_size=12))
    words = shlex.split(LINE.command(start, LINE.sized(start), frozenset()).splitlines()[-1])

    assert words[words.index("-H") + 1] == "HEAD_ADDRESS:8,NODE_1_ADDRESS:4"


def test_prompts_longer_than_a_step_are_read_in_chunks() -> None:
    """TensorRT-LLM `llmapi/llm.py` (`_check_arguments`): without, such prompts are refused; issue 9277."""
    assert "--enable_chunked_prefill" in LINE.sized(START)


def test_a_cache_that_the_checkpoint_declares_needs_no_flag() -> None:
    """docs/source/features/quantization.md: asked for "even for checkpoints that do not have it enabled by default"."""
    assert "--kv_cache_dtype" in LINE.sized(START)
    assert "--kv_cache_dtype" not in LINE.sized(replace(START, has_fp8_cache=True))


def test_a_given_pool_has_no_flag() -> None:
    given = replace(START, settings=replace(START.settings, kv_cache_memory_bytes=10**10))

    assert "kv_cache_memory_bytes" in LINE.unnamed(given)

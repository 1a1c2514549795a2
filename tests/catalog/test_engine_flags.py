"""Which flags a version of an engine has, as its sources register them."""

import textwrap
from pathlib import Path

import pytest

from benchmarks.engine_flags import flags_of as read_flags
from service.catalog.engine_flags import flags_of
from service.engine.inputs import EngineName

SGLANG = """
class Memory:
    max_running_requests: A[Optional[int], "How many at once."] = None
    tp_size: A[int, Arg(help="ranks", cli_name="--tensor-parallel-size", aliases=["--tp-size", "--tp"])] = 1
    not_a_flag: int = 3
"""


@pytest.mark.parametrize(
    ("engine", "version", "flag", "has"),
    [
        ("vllm", "0.33.0", "--max-num-seqs", True),
        ("vllm", None, "--nnodes", True),
        ("vllm", "0.10.2", "--kv-cache-memory-bytes", True),
        ("vllm", "0.9.2", "--kv-cache-memory-bytes", False),  # new in 0.10.2
        ("vllm", "0.11.0", "--nnodes", False),  # pull request 23691 came with 0.11.1
        ("vllm", "0.20.9.dev3+gabc", "--headless", True),
        ("vllm", "0.1", "--data-parallel-size-local", False),
        ("vllm", "0.8.2", "--data-parallel-size", False),  # pull request 13923 came with 0.8.3
        ("vllm", "0.8.3", "--data-parallel-size", True),
        ("vllm", "0.7.3", "--enable-expert-parallel", False),  # pull request 12583 came with 0.8.0
        ("vllm", "0.8.1", "--speculative-config", False),  # in JSON since 0.8.2
        ("vllm", "0.8.1", "--speculative-model", True),
        ("sglang", "0.5.23", "--enable-dp-attention", True),
        ("tensorrt-llm", None, "--kv_cache_dtype", False),  # 1.2.1 is the newest release, 1.3 are candidates
        ("tensorrt-llm", "1.3", "--kv_cache_dtype", True),
        ("tensorrt-llm", "1.0", "--kv_cache_dtype", False),
    ],
)
def test_a_version_has_the_flags_of_the_newest_that_was_read_and_is_not_above_it(
    engine: EngineName, version: str | None, flag: str, *, has: bool
) -> None:
    assert (flag in flags_of(engine, version)) is has


def test_flags_are_read_however_an_engine_registers_them(tmp_path: Path) -> None:
    fields = tmp_path / "sglang/srt/arg_groups/fields"
    fields.mkdir(parents=True)
    (fields / "memory.py").write_text(textwrap.dedent(SGLANG), encoding="utf-8")
    serve = tmp_path / "serve.py"
    serve.write_text('@click.option("--tensor_parallel_size", "--tp_size", type=int)\ndef serve(): ...\n', "utf-8")

    assert read_flags("sglang", tmp_path) == {
        "--max-running-requests", "--tensor-parallel-size", "--tp-size", "--tp",
    }  # fmt: skip
    assert read_flags("tensorrt-llm", serve) == {"--tensor_parallel_size", "--tp_size"}

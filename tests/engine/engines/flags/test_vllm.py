"""vLLM's command line (0.33 `engine/arg_utils.py`, `config/scheduler.py`, `config/compilation.py`)."""

import shlex
from dataclasses import replace

import pytest

from service.engine.engines.flags.base import StartFlags
from service.engine.engines.registry import engine_named
from service.engine.inputs import SCALED_CACHES, Layout, ScaledCacheDtype
from tests.engine.engines.flags.test_base import START

LINE = engine_named("vllm").command_line


def test_a_pool_that_is_given_takes_the_place_of_the_share() -> None:
    given = replace(START, settings=replace(START.settings, kv_cache_memory_bytes=10**10))

    assert "--gpu-memory-utilization" in LINE.sized(START)
    assert "--gpu-memory-utilization" not in LINE.sized(given)
    assert LINE.sized(given)[LINE.sized(given).index("--kv-cache-memory-bytes") + 1] == "10000000000"


def test_requests_at_once_stay_within_a_step_s_tokens_and_the_blocks_of_states() -> None:
    assert (LINE.most_sequences(512, None), LINE.most_sequences(512, 100), LINE.most_sequences(512, 0)) == (512, 100, 1)


def test_an_engine_over_two_nodes_is_joined_by_rank_and_older_ones_by_ray() -> None:
    newer = LINE.command(START, LINE.sized(START), frozenset()).splitlines()
    older = LINE.command(START, LINE.sized(START), frozenset({"--tensor-parallel-size"}))

    assert [shlex.split(row)[-1] for row in newer if not row.startswith("#")] == ["0", "--headless"]
    assert "ray start" in older


def test_prefixes_and_drafters_are_named() -> None:
    drafting = replace(START, settings=replace(START.settings, num_speculative_tokens=2, speculative_method="mtp"))

    assert "--no-enable-prefix-caching" in LINE.sized(START)
    assert "--enable-prefix-caching" in LINE.sized(replace(START, stated=StartFlags(enable_prefix_caching=True)))
    assert '{"method": "mtp", "num_speculative_tokens": 2}' in LINE.sized(drafting)


def test_copies_of_the_attention_are_spread_over_nodes() -> None:
    spread = replace(START, layout=Layout(tensor_parallel_size=4, data_parallel_size=4, expert_parallel=True))
    rows = [shlex.split(row) for row in LINE.command(spread, (), frozenset()).splitlines() if row[0] != "#"]

    assert [row[row.index("--data-parallel-size-local") + 1] for row in rows] == ["2", "2"]


@pytest.mark.parametrize(
    ("copies", "ranks", "local"),
    [(3, 4, ["2", "1"]), (9, 1, ["5", "4"]), (5, 3, ["2", "2", "1"]), (2, 8, ["1", "1"])],
)
def test_the_last_node_runs_the_copies_that_are_left(copies: int, ranks: int, local: list[str]) -> None:
    """vLLM 0.33 `v1/engine/utils.py`: "Message from engine with unexpected data parallel rank" for one too many."""
    spread = replace(START, layout=Layout(tensor_parallel_size=ranks, data_parallel_size=copies))
    rows = [shlex.split(row) for row in LINE.command(spread, (), frozenset()).splitlines() if row[0] != "#"]

    assert [row[row.index("--data-parallel-size-local") + 1] for row in rows] == local
    firsts = [int(row[row.index("--data-parallel-start-rank") + 1]) for row in rows[1:]]
    assert firsts == [sum(map(int, local[:node])) for node in range(1, len(local))]
    assert LINE.spreads_unevenly(spread) is None


def test_one_engine_is_as_large_on_each_of_its_nodes() -> None:
    """vLLM 0.33 `engine/arg_utils.py`: `--nnodes` "must evenly divide the total world size"."""
    uneven = replace(START, layout=Layout(tensor_parallel_size=3, pipeline_parallel_size=5))

    assert "15 ranks" in str(LINE.spreads_unevenly(uneven))
    assert LINE.spreads_unevenly(START) is None


@pytest.mark.parametrize(
    ("ranks", "stages", "runtime"),
    [(8, 2, "--nnodes"), (4, 4, "--nnodes"), (2, 6, "--nnodes"), (4, 3, "ray"), (2, 5, "ray"), (1, 13, "ray")],
)
def test_no_stage_is_cut_between_servers(ranks: int, stages: int, runtime: str) -> None:
    """`--nnodes 2` of twelve ranks runs six on each server, which cuts the second of three stages of four."""
    layout = Layout(tensor_parallel_size=ranks, pipeline_parallel_size=stages)
    start = replace(START, layout=layout)

    assert LINE.spreads_unevenly(start) is None
    assert runtime in LINE.command(start, (), frozenset()).split()


def test_sixteen_bits_of_the_cache_are_named_where_the_version_has_a_word() -> None:
    """vLLM 0.10.2 `config/cache.py` (`CacheDType`) has none; a checkpoint's own fp8 is another matter."""
    settings = replace(START.settings, kv_cache_dtype="bf16")
    asked = replace(START, settings=settings, stated=StartFlags(kv_cache_dtype="bf16"))

    older = replace(asked, names_half_caches=False)

    assert "bfloat16" in LINE.sized(asked)
    assert "--kv-cache-dtype" not in LINE.sized(older)
    assert "bfloat16" in LINE.sized(replace(older, has_fp8_cache=True))


@pytest.mark.parametrize("dtype", SCALED_CACHES)
def test_caches_with_scales_inside_are_named_as_vllm_names_them(dtype: ScaledCacheDtype) -> None:
    """vLLM 0.33 `config/cache.py` (`CacheDType`)."""
    settings = replace(START.settings, kv_cache_dtype=dtype)
    args = LINE.sized(replace(START, settings=settings, stated=StartFlags(kv_cache_dtype=dtype)))

    assert args[args.index("--kv-cache-dtype") + 1] == dtype


def test_dtypes_of_states_are_named() -> None:
    line = LINE.sized(replace(START, stated=StartFlags(mamba_cache_dtype="float32", mamba_ssm_cache_dtype="float16")))

    assert line[line.index("--mamba-cache-dtype") + 1] == "float32"
    assert line[line.index("--mamba-ssm-cache-dtype") + 1] == "float16"
    assert not {"--mamba-cache-dtype", "--mamba-ssm-cache-dtype"} & {*LINE.sized(START)}

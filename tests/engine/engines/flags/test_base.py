"""What any command line says of the model, the GPU and the nodes, by whichever engine."""

import shlex

import pytest

from service.catalog.engine_flags import flags_of
from service.engine.engines.flags.base import Start, StartFlags
from service.engine.engines.registry import ENGINES, engine_named
from service.engine.inputs import EngineName, EngineSettings, Layout

SETTINGS = EngineSettings(
    gpu_memory_utilization=0.9, kv_cache_dtype="fp8", max_model_len=8_192, max_num_batched_tokens=4_096, max_num_seqs=64
)
START = Start(
    layout=Layout(tensor_parallel_size=8, pipeline_parallel_size=2, expert_parallel=True),
    settings=SETTINGS,
    served="someone/model",
    weight_format="bf16",
    own_format="bf16",
    is_published=True,
    has_experts=True,
    has_own_code=True,
    is_deprecated=True,
    stated=StartFlags(block_size=64, enable_prefix_caching=False),
)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_flag_is_one_of_the_engine_s_own_parser(engine: EngineName) -> None:
    """Referee: the flags that the engines' sources define, as `catalog/data/engine_flags.yaml` lists them."""
    line, known = engine_named(engine).command_line, flags_of(engine, None)
    known |= frozenset(line.decisive)  # of versions to come
    words = (*line.arguments(START), *line.further(START))
    named = {word.replace("--no-", "--", 1) if word not in known else word for word in words if word.startswith("--")}

    assert named
    assert named <= known


@pytest.mark.parametrize("engine", ENGINES)
def test_two_nodes_are_two_commands_or_one_for_all(engine: EngineName) -> None:
    line = engine_named(engine).command_line
    lines = [row for row in line.command(START, line.arguments(START), frozenset()).splitlines() if row[:1] != "#"]

    assert START.num_nodes == 2
    assert len(lines) in (1, 2)
    assert all("someone/model" in shlex.split(row) for row in lines)


def test_a_format_that_nobody_published_is_made_or_has_no_flag() -> None:
    unpublished = Start(
        layout=Layout(), settings=SETTINGS, served="m", weight_format="fp8", own_format="bf16", is_published=False
    )

    assert engine_named("vllm").command_line.loading(unpublished) == ("--quantization", "fp8")
    assert engine_named("tensorrt-llm").command_line.loading(unpublished) is None
    assert "weight_format" in engine_named("tensorrt-llm").command_line.unnamed(unpublished)

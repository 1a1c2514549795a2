"""Flags by each engine's own names."""

from dataclasses import replace
from itertools import pairwise

import pytest

from service.catalog.engine_rules import rules_for
from service.engine.engines.registry import engine_named
from service.engine.fleet.arguments import engine_args, names_drafter, start_of, unnamed_settings, where_it_lies
from service.engine.fleet.deployments import resolve_size
from service.engine.fleet.planned import planned
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import EngineName, Layout
from service.engine.memory.plan import MemoryPlan
from tests.engine.conftest import Asked


def plan_of(asked: Asked, engine: EngineName, stated: StatedSettings, layout: Layout | None = None) -> MemoryPlan:
    resolved = resolve_size(asked(settings=stated, rules=rules_for(engine)))
    return planned(resolved, layout or Layout(), 1_000, 200)


@pytest.mark.parametrize(
    ("engine", "flag"),
    [("vllm", "--max-num-seqs"), ("sglang", "--max-running-requests"), ("tensorrt-llm", "--max_batch_size")],
)
def test_the_cap_on_running_requests_has_each_engines_name(asked: Asked, engine: EngineName, flag: str) -> None:
    stated = StatedSettings(max_num_seqs=48)

    assert (flag, "48") in pairwise(engine_args(plan_of(asked, engine, stated), stated))


def test_only_sizes_above_one_are_named(asked: Asked) -> None:
    stated = StatedSettings()
    one = engine_args(plan_of(asked, "vllm", stated), stated)
    four = engine_args(plan_of(asked, "vllm", stated, Layout(tensor_parallel_size=2, pipeline_parallel_size=2)), stated)

    assert "--pipeline-parallel-size" not in one
    assert ("--pipeline-parallel-size", "2") in pairwise(four)
    assert ("--tensor-parallel-size", "2") in pairwise(four)


def test_a_given_pool_takes_the_place_of_the_utilization(asked: Asked) -> None:
    stated = StatedSettings(kv_cache_memory_bytes=10**10)
    flags = engine_args(plan_of(asked, "vllm", stated), stated)

    assert ("--kv-cache-memory-bytes", "10000000000") in pairwise(flags)
    assert "--gpu-memory-utilization" not in flags


def test_what_no_flag_names_is_said(asked: Asked) -> None:
    vllm = engine_named("vllm").command_line
    drafts, int4 = StatedSettings(num_speculative_tokens=2), StatedSettings(weight_format="int4")
    without_checkpoint = plan_of(asked, "vllm", StatedSettings(weight_format="mxfp4"))

    assert not names_drafter(plan_of(asked, "vllm", drafts))  # an EAGLE head is a checkpoint of its own
    assert names_drafter(plan_of(asked, "vllm", StatedSettings(num_speculative_tokens=2, speculative_method="ngram")))
    assert vllm.loading(start_of(plan_of(asked, "vllm", StatedSettings()), StatedSettings())) == ()
    assert vllm.loading(start_of(without_checkpoint, int4)) is None
    assert "weight_format" in unnamed_settings(without_checkpoint, int4)


@pytest.mark.parametrize(
    ("stated", "kept", "told"),
    [
        (StatedSettings(weight_format="fp8"), 9, None),
        (StatedSettings(quantization="fp8"), 1, None),
        (StatedSettings(weight_format="fp8"), 1, "no fp8 repository of meta-llama/Llama-3.1-8B-Instruct is known here"),
        (StatedSettings(weight_format="fp8"), 0, "PATH_OF_THE_MODEL is where your checkpoint lies"),
    ],
)
def test_a_checkpoint_that_lies_nowhere_known_is_said(
    asked: Asked, stated: StatedSettings, kept: int, told: str | None
) -> None:
    question = asked(settings=stated, rules=rules_for("vllm"))
    known, others = question.model.checkpoints[:kept], question.model.checkpoints[kept:]
    model = replace(question.model, checkpoints=(*known, *(replace(each, hf_id=None) for each in others)))

    warned = where_it_lies(planned(resolve_size(replace(question, model=model)), Layout(), 1_000, 200), stated)

    assert len(warned) == (told is not None)
    assert all(each.startswith(str(told)) for each in warned)

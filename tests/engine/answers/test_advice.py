"""What binds, one step beside, and what a caller could change."""

from dataclasses import replace
from typing import Any

import pytest

from service.engine.answers.advice import long_waits, looser_limits, missing_memory
from service.engine.answers.levers import changes_to_try
from service.engine.answers.size import size
from service.engine.fleet.choice import deployments
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.ranking import best
from service.engine.inputs import Limits, Load, StatedLayout
from service.engine.time.demand import Users
from tests.engine.conftest import Asked, arrivals, users


def test_one_step_less_would_not_carry_and_one_more_does(asked: Asked) -> None:
    question = asked("llama-3.3-70b", load=users(600))
    sized = size(question)

    assert sized.one_gpu_step_less is not None
    assert sized.one_gpu_step_more is not None
    assert (sized.one_gpu_step_less.feasible, sized.one_gpu_step_less.violates) == (False, sized.binding_constraint)
    assert sized.gpus > sized.one_gpu_step_less.gpus
    assert sized.gpus < sized.one_gpu_step_more.gpus <= sized.gpus + sized.gpus_per_replica


def pinned_to(tensor_parallel_size: int) -> StatedLayout:
    return StatedLayout(
        tensor_parallel_size=tensor_parallel_size, pipeline_parallel_size=1, data_parallel_size=1, expert_parallel=False
    )


@pytest.mark.parametrize(
    ("model", "load", "limits", "gpus", "above"),
    [
        ("qwen3-32b", users(32, 1_500, 600), Limits(ttft_s=1.0, tpot_s=0.03), 2, 3),
        ("llama-3.3-70b", users(64, 1_500, 300), Limits(ttft_s=1.0, tpot_s=0.03), 8, 12),
        ("llama-3.3-70b", users(600), Limits(), 6, 8),
        ("qwen3-30b-a3b", arrivals(20, 2_000, 500), Limits(ttft_s=2.0, tpot_s=0.02), 5, 6),
    ],
)
def test_one_step_more_is_the_next_count_that_any_layout_fills(
    asked: Asked, model: str, load: Load, limits: Limits, gpus: int, above: int
) -> None:
    question = asked(model, load=load, limits=limits)
    sized = size(question)
    assert sized.one_gpu_step_more is not None
    assert (sized.gpus, sized.one_gpu_step_more.gpus) == (gpus, above)

    filled = set()
    for width in (1, 2, 4, 8):
        pinned = size(replace(question, layout=pinned_to(width)))
        if pinned.feasible:
            filled |= {count for count in range(pinned.gpus, above + 1, width) if sized.gpus < count}
    assert min(filled, default=above) >= above


def test_levers_are_true(asked: Asked) -> None:
    question = asked("llama-3.3-70b", load=users(600))
    sized = size(question)

    assert sized.levers
    for lever in sized.levers:
        change: dict[str, Any] = dict(lever.change)
        changed = replace(question.settings, **change)
        assert size(replace(question, settings=changed)).gpus == lever.gpus == sized.gpus - lever.saves_gpus


def test_what_is_narrow_already_is_not_tried(asked: Asked) -> None:
    narrow = asked(settings=replace(asked().settings, kv_cache_dtype="fp8", weight_format="int4"))

    assert changes_to_try(narrow) == ()
    assert [change.named for change in changes_to_try(asked())] == [
        {"kv_cache_dtype": "fp8"},
        {"weight_format": "fp8"},
        {"weight_format": "int4"},
        {"kv_cache_dtype": "fp8", "weight_format": "fp8"},
        {"kv_cache_dtype": "fp8", "weight_format": "int4"},
    ]


@pytest.mark.parametrize(
    ("model", "gpu", "tried"),
    [
        ("inkling-small", "b200", ["fp8", "nvfp4"]),  # thinkingmachines/Inkling-Small-NVFP4 alone is published
        ("inkling-small", "mi355x", ["fp8", "int4"]),  # which ROCm does not load
        ("llama-3.3-70b", "b200", ["fp8", "nvfp4"]),
        ("llama-3.3-70b", "h100", ["fp8", "int4"]),  # without arithmetic for fp4
        ("gpt-oss-120b", "b200", []),
    ],
)
def test_of_four_bits_those_are_tried_that_are_published_and_computed_in(
    asked: Asked, model: str, gpu: str, tried: list[str]
) -> None:
    changes = [change.named for change in changes_to_try(asked(model, gpu))]

    assert [each["weight_format"] for each in changes if each.keys() == {"weight_format"}] == tried


def test_a_limit_that_nobody_keeps_is_told_with_the_one_that_a_single_request_would(asked: Asked) -> None:
    question = asked(limits=Limits(ttft_s=1e-4, tpot_s=10.0))
    chosen = best(deployments(question), question)
    assert chosen.replica is not None
    (sentence,) = looser_limits(chosen.replica, question.limits)

    alone = chosen.replica.seen(Users(1)).ttft_s.percentile(95)
    told_s = float(sentence.removeprefix("ttft_s of at least ").split(":")[0])
    assert alone <= told_s <= 1.01 * alone


def test_a_limit_on_pace_alone_tells_how_long_the_first_token_takes() -> None:
    """gpt-oss-120b on four H100, 8,000 + 600 tokens, `tpot_s=0.025` alone: 400 users waited 140 s, and nobody said so."""
    pace, both = Limits(tpot_s=0.025), Limits(ttft_s=200.0, tpot_s=0.025)

    [told] = long_waits(pace, ttft_p95_s=140.9, tpot_p95_s=0.2)
    assert "no limit on ttft_s was stated" in told
    assert "141 s for the first token; ttft_s=5" in told
    assert "further" not in told
    assert long_waits(both, ttft_p95_s=140.9, tpot_p95_s=0.02) == ()
    assert long_waits(pace, ttft_p95_s=4.9, tpot_p95_s=0.02) == ()
    assert "no limit on latency" in long_waits(Limits(), ttft_p95_s=140.9, tpot_p95_s=0.2)[0]


def test_missing_memory_is_told_in_bytes_of_one_gpu(asked: Asked) -> None:
    question = asked("llama-3.3-70b", "l4", layout=StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=1))
    sized = size(question)
    plan = best(deployments(question), question).plan

    assert sized.would_fit[: len(missing_memory(plan))] == missing_memory(plan)
    assert str(sized.shortfall_bytes) in sized.would_fit[0]
    # 141 GB in 16 bits on 22 GiB.
    assert sized.shortfall_bytes == pytest.approx(141.1e9 - 22 * 2**30, rel=0.05)


@pytest.mark.parametrize(
    ("model", "gpu", "stated"),
    [
        ("llama-3.1-8b", "h100", {"kv_cache_memory_bytes": 1_000}),
        ("llama-3.1-8b", "l4", {"kv_cache_memory_bytes": 1_000}),
        ("gpt-oss-20b", "h100", {"kv_cache_memory_bytes": 1_000}),
        ("llama-3.1-8b", "h100", {"gpu_memory_utilization": 0.01}),
        ("llama-3.3-70b", "h200", {"gpu_memory_utilization": 0.02}),
        ("qwen3-next-80b-a3b", "h200", {"gpu_memory_utilization": 0.01}),
    ],
)
@pytest.mark.parametrize("layout", [StatedLayout(), pinned_to(2)])
def test_a_setting_that_leaves_memory_unused_is_told_by_what_of_it_would_do(
    asked: Asked, model: str, gpu: str, stated: dict[str, Any], layout: StatedLayout
) -> None:
    """Referee: the same question with what was told, which fits."""
    [(name, value)] = stated.items()
    question = asked(model, gpu, load=users(1), layout=layout, settings=StatedSettings(**stated), timers=None)
    would_fit = size(question).would_fit
    begins = f"{name} of at least "
    told = next((sentence.removeprefix(begins).split()[0] for sentence in would_fit if sentence.startswith(begins)), "")

    if not told:  # not even all of the memory would do
        assert layout.tensor_parallel_size == 2
        assert any("more memory on" in sentence for sentence in would_fit)
        return
    assert not any("more memory on" in sentence for sentence in would_fit)
    settings = StatedSettings(**{name: type(value)(told)})
    assert size(replace(question, settings=settings)).feasible


def test_a_pool_that_was_given_binds_where_no_gpu_holds_it(asked: Asked) -> None:
    """Weights of 15 GiB fit beside 60 GiB of cache: what was given is what binds, and what may be stated is told."""
    given = StatedSettings(kv_cache_memory_bytes=100 * 10**9)
    nowhere = size(asked(settings=given))
    spread = size(asked(load=users(4), settings=replace(given, kv_cache_memory_bytes=70 * 10**9)))
    told = nowhere.would_fit[0].removeprefix("kv_cache_memory_bytes of at most ").split()[0]
    held = replace(given, kv_cache_memory_bytes=int(told))

    assert (nowhere.feasible, nowhere.binding_constraint) == (False, "kv_cache")
    assert size(asked(settings=held)).feasible
    assert (spread.feasible, spread.gpus, spread.binding_constraint) == (True, 2, "kv_cache")

"""Laws of pods: a stated pod carries what `size` and `capacity` say, and each pod's load is told exactly."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.answers.replicas import replicas
from service.engine.answers.results import Replicas
from service.engine.fleet.deployments import Deployment, highest_rate
from service.engine.fleet.given_gpus import largest, resolve_capacity
from service.engine.fleet.questions import SizeQuestion, StatedSettings
from service.engine.inputs import Headroom, Limits, Load, StatedLayout, WeightFormat
from service.engine.time.demand import Users
from tests.conftest import TIMES
from tests.engine.answers.chosen import gpus
from tests.engine.answers.test_laws_in_time import PROBED, arrivals, asked, looser, questions, scaled, users
from tests.engine.conftest import capacity_of

ONE = StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1)
TWO = StatedLayout(tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=1)


def of_pod(told: Replicas) -> float:
    return told.per_pod.max_requests_per_s or told.per_pod.max_concurrent_requests


def of_pods(question: SizeQuestion, told: Replicas, pods: int, *, above: bool = False) -> SizeQuestion:
    """Return the question of so many times what one pod carries, on pods of the same layout, or of hardly more."""
    amount = pods * of_pod(told)
    load = question.load
    if load.request_rate_per_s is not None:
        load = replace(load, request_rate_per_s=amount * (1 + 1e-7) if above else amount)
    else:
        load = replace(load, concurrent_requests=int(amount) + above)
    return replace(question, load=load, layout=StatedLayout.of(told.layout), headroom=Headroom())


def carried_by(question: SizeQuestion, gpu_count: int) -> float:
    """Return what `capacity` says that so many GPUs carry."""
    given_gpus = capacity_of(question, gpu_count)
    found: Deployment = largest(given_gpus, resolve_capacity(given_gpus))
    if question.load.request_rate_per_s is not None:
        return found.replicas * highest_rate(found)
    return found.replicas * found.carries(Users).max_concurrent_requests


def check(question: SizeQuestion, pods: int) -> None:
    """Check that pods, sizes and capacities of one layout agree at what so many pods carry, and right above it."""
    told = replicas(question)
    if not told.feasible:
        assert gpus(question) == inf
        return
    full, more = of_pods(question, told, pods), of_pods(question, told, pods, above=True)

    assert gpus(question) <= told.gpus
    assert (replicas(full).replicas, replicas(more).replicas) == (pods, pods + 1)
    assert replicas(full).per_pod == told.per_pod
    as_many, held = pods * told.gpus_per_replica, carried_by(full, pods * told.gpus_per_replica)
    if question.is_of_memory:  # a pod leaves out a twentieth of what another token budget lets it hold, at most
        assert gpus(full) <= as_many
        assert pods * of_pod(told) <= held <= pods * of_pod(told) / 0.95 + pods
    else:
        assert gpus(full) == as_many < gpus(more)
        assert held == pytest.approx(pods * of_pod(told), rel=1e-9)


@settings(PROBED, max_examples=10 * TIMES)  # each asks for every layout
@given(questions, st.integers(1, 20))
def test_pods_sizes_and_capacities_of_one_layout_agree(question: SizeQuestion, pods: int) -> None:
    check(question, pods)


@pytest.mark.parametrize("tokens", [(200, 20), (4_500, 500)], ids=["short", "long"])
@pytest.mark.parametrize(("model", "gpu", "weights"), [
    ("qwen3-32b", "h100", None),  # 59 users with the engine's 1,024 slots, and 65 with as many as they fill
    ("nemotron-nano-9b-v2", "rtx-5090", None),  # of states and tokens: of more slots fewer are held
    ("qwen3-30b-a3b", "rtx-5090", "int4"),
])  # fmt: skip
def test_memory_alone_says_the_same_of_pods_sizes_and_capacities(
    model: str, gpu: str, weights: WeightFormat | None, tokens: tuple[int, int]
) -> None:
    question = asked(model, gpu, users(64, *tokens), Limits(), TWO)
    check(replace(question, settings=StatedSettings(weight_format=weights)), 3)


def test_a_pod_runs_as_many_requests_as_its_cache_holds() -> None:
    question = asked("qwen3-32b", "h100-sxm-80gb", users(64, 4_500, 500), Limits(), TWO)
    stated = replace(question, settings=StatedSettings(max_num_seqs=65))

    assert replicas(question).replicas == replicas(stated).replicas == 1


@pytest.mark.parametrize(("model", "gpu", "load", "limits", "changes"), [
    # Slots as many as the cache holds would let 795 and 261 users in, between two numbers that searches visit.
    ("gpt-oss-20b", "h100", users(1_045, 2_000, 500), Limits(tpot_s=0.0283, percentile=99.0), {"weight_format": "fp8"}),
    ("qwen3-30b-a3b", "a100-80gb", users(32, 2_000, 200), Limits(tpot_s=0.0536), {"weight_format": "int4"}),
    # Three times a rate, and a third of that, is the same rate in binary fractions as well.
    ("glm-4.5-air", "a100-80gb", arrivals(22.0, 2_000, 1_500), Limits(ttft_s=0.642, tpot_s=0.0991),
     {"max_num_seqs": 16}),
])  # fmt: skip
def test_what_given_gpus_carry_is_what_sizes_and_pods_count(
    model: str, gpu: str, load: Load, limits: Limits, changes: dict[str, Any]
) -> None:
    check(replace(asked(model, gpu, load, limits), settings=StatedSettings(**changes)), 3)


def test_pods_are_found_wherever_sizes_are() -> None:
    load = replace(users(271, 4_500, 500), prefix_cache_hit_fraction=0.8)
    question = asked("qwen3.5-35b-a3b", "a100-80gb", load, Limits(ttft_s=1.563, tpot_s=0.012))
    question = replace(question, settings=StatedSettings(max_model_len=32_768))

    assert gpus(question) <= replicas(question).gpus


def test_what_is_open_beside_stated_sizes_is_chosen_as_for_given_gpus() -> None:
    layout = StatedLayout(tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=12)
    question = asked("deepseek-v3", "l40s", users(625, 200, 1_500), Limits(), layout)
    told = replicas(question)

    assert told.layout.decode_context_parallel_size == 2
    assert carried_by(question, 24) == of_pod(told)


@PROBED
@given(questions, st.floats(1, 10), st.floats(1, 10))
def test_a_stated_pod_carries_no_less_within_looser_limits(
    question: SizeQuestion, factor: float, of_load: float
) -> None:
    pinned = replace(question, layout=ONE)
    limits = question.limits
    relaxed = replace(
        limits, ttft_s=looser(limits.ttft_s, factor), tpot_s=None if factor > 3 else looser(limits.tpot_s, factor)
    )
    told = replicas(pinned)
    more = replace(pinned, load=scaled(question.load, of_load))

    assert replicas(more).replicas >= told.replicas
    assert gpus(replace(pinned, limits=relaxed)) <= gpus(pinned)


def test_leaving_the_pace_open_never_takes_more_than_a_loose_limit_on_it() -> None:
    # Steps of 256 tokens leave memory for more arrivals: they were in question only where pace was limited.
    question = asked("qwen3-32b", "h100-sxm-80gb", arrivals(3.0, 2_000, 300), Limits(ttft_s=0.3), ONE)
    limited = replace(question, limits=Limits(ttft_s=0.3, tpot_s=0.12))

    assert gpus(question) <= gpus(limited)
    assert replicas(question).gpus <= replicas(limited).gpus

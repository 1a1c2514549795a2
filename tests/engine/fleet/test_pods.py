"""The shape of a pod: it does not depend on the load, and it does not waste GPUs."""

from dataclasses import replace

import pytest

from service.engine.answers.replicas import replicas
from service.engine.answers.size import size
from service.engine.fleet.given_gpus import largest, resolve_capacity
from service.engine.fleet.pods import DENSE_ENOUGH, carried, pod_of
from service.engine.fleet.questions import SizeQuestion
from service.engine.inputs import Layout, Limits, StatedLayout, WeightFormat
from tests.engine.conftest import Asked, arrivals, capacity_of, users


def pinned(question: SizeQuestion, layout: Layout) -> SizeQuestion:
    return replace(question, layout=StatedLayout.of(layout))


@pytest.mark.parametrize(
    ("model", "gpu", "weights", "gpus"),
    [
        ("llama-3.3-70b", "h100", "fp8", 2),  # "what everybody deploys", of TP2; on one GPU a handful of requests fit
        ("llama-3.3-70b", "h100", None, 4),  # 141 GB in 16 bits: two of 80 GB hold a handful as well
        ("llama-3.1-8b", "h100", None, 1),
        ("deepseek-v3", "h200", None, 8),  # vLLM's recipe: one server of eight
        ("llama-3.1-405b", "h100", None, 16),  # 810 GB in 16 bits: two servers, as its model card says
    ],
)
def test_pods_are_those_that_operators_start(
    asked: Asked, model: str, gpu: str, weights: WeightFormat | None, gpus: int
) -> None:
    question = asked(model, gpu, load=users(64, 2_000, 500), timers=None)
    pod = pod_of(replace(question, settings=replace(question.settings, weight_format=weights)))

    assert pod.layout.gpus_per_replica == gpus


@pytest.mark.parametrize("model", ["deepseek-v3", "gpt-oss-120b", "llama-3.3-70b", "kimi-k2"])
def test_pods_take_no_more_than_about_twice_the_gpus_of_a_size(asked: Asked, model: str) -> None:
    question = asked(model, "h200", load=users(8_000, 2_000, 500), timers=None)

    assert replicas(question).gpus <= size(question).gpus / DENSE_ENOUGH + 8


@pytest.mark.parametrize("limits", [Limits(), Limits(ttft_s=2.0, tpot_s=0.05)])
def test_the_shape_is_the_same_whatever_the_load(asked: Asked, limits: Limits) -> None:
    question = asked("llama-3.1-8b", limits=limits)
    shapes = {replicas(replace(question, load=arrivals(rate))).layout for rate in (0.1, 3.0, 70.0, 900.0)}

    assert len(shapes) == 1


def test_no_smaller_pod_is_half_as_dense(asked: Asked) -> None:
    question = asked("llama-3.3-70b", load=users(64, 2_000, 500), timers=None)
    chosen = pod_of(question)
    half = pod_of(pinned(question, replace(chosen.layout, tensor_parallel_size=2)))

    assert chosen.layout.tensor_parallel_size == 4
    assert 0 < carried(half) / 2 < DENSE_ENOUGH * carried(chosen) / 4


def test_stages_over_two_servers_are_a_pod_where_one_server_holds_a_handful(asked: Asked) -> None:
    # 671 GB of weights leave 3 GB of 80 on each of eight: vLLM's docs run it as TP8 PP2 on two servers of H100.
    question = asked("deepseek-v3", "h100", load=arrivals(20.0), limits=Limits(ttft_s=2.0, tpot_s=0.05))
    told = replicas(replace(question, load=replace(question.load, input_tokens=2_000, output_tokens=300)))

    assert (told.layout.tensor_parallel_size, told.layout.pipeline_parallel_size) == (8, 2)


def test_what_is_twice_as_dense_is_found_without_a_search_for_its_most(asked: Asked) -> None:
    question = asked("qwen3-30b-a3b", load=arrivals(20.0), limits=Limits(ttft_s=2.0, tpot_s=0.05))
    pod = pod_of(question)
    larger = pod_of(pinned(question, replace(pod.layout, tensor_parallel_size=4)))

    assert pod.layout.gpus_per_replica == 2
    assert 0 < carried(larger) / 4 <= carried(pod) / 2 / DENSE_ENOUGH


def test_settings_are_those_that_carry_most_as_sizes_and_capacities_count_them(asked: Asked) -> None:
    question = asked("deepseek-v3", "h200", load=users(1_024, 2_000, 500), timers=None)
    pod = pod_of(question)
    given_gpus = capacity_of(pinned(question, pod.layout), 8)

    assert pod.plan.settings.max_num_seqs < 1_024  # the engine's own, whose slots take memory that the cache lacks
    assert carried(pod) == carried(largest(given_gpus, resolve_capacity(given_gpus)))


@pytest.mark.parametrize("count", [1, 100])
def test_looser_limits_on_pace_take_no_more_gpus(asked: Asked, count: int) -> None:
    # On two GPUs about twice as dense as on one, a little more or less: either was chosen in turn.
    question = asked("gpt-oss-20b", "l40s", load=users(count, 2_000, 500))
    paces_s = (0.008, 0.009, 0.01, 0.011, 0.012, 0.017, 0.03)
    told = [replicas(replace(question, limits=Limits(tpot_s=pace_s))).gpus for pace_s in paces_s]

    assert told == sorted(told, reverse=True)


@pytest.mark.parametrize("limits", [Limits(ttft_s=0.5, tpot_s=0.012), Limits(ttft_s=5.0, tpot_s=0.1)])
def test_limits_take_no_smaller_pods_than_memory_does(asked: Asked, limits: Limits) -> None:
    question = asked("llama-3.3-70b", load=users(64, 2_000, 500))
    usual = pod_of(question)

    assert usual.layout.gpus_per_replica == 4
    assert pod_of(replace(question, limits=limits)).layout.gpus_per_replica >= 4


def test_of_as_many_gpus_a_pod_is_what_clearly_carries_more(asked: Asked) -> None:
    # Latents are kept whole by each rank of TP8: 3 GB are left for them on each H200 by weights of a terabyte.
    question = asked("kimi-k2", "h200", load=arrivals(10.0), limits=Limits(ttft_s=3.0, tpot_s=0.05))
    question = replace(question, load=replace(question.load, input_tokens=2_000, output_tokens=500))
    told = replicas(question)
    whole, spread = (
        size(replace(question, layout=layout)).gpus
        for layout in (
            StatedLayout(tensor_parallel_size=8, pipeline_parallel_size=1),
            StatedLayout(data_parallel_size=8, expert_parallel=True),
        )
    )

    assert told.layout.gpus_per_replica == 8
    assert told.replicas * 8 < whole
    assert told.replicas * 8 * DENSE_ENOUGH <= spread  # of two servers a pod, whose eight ranks hold nothing on one

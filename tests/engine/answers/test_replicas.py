"""Pods of one shape: how many, and what one of them carries."""

from dataclasses import replace

import pytest

from service.engine.answers.replicas import replicas
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import Headroom, Limits, StatedLayout
from tests.engine.conftest import Asked, arrivals, users


def test_more_load_never_takes_fewer_pods_of_the_same_shape(asked: Asked) -> None:
    question = asked("llama-3.3-70b", settings=replace(asked().settings, weight_format="fp8"))
    counts = (80, 120, 160, 224, 320, 448, 512, 1_024, 1_280)
    told = [replicas(replace(question, load=users(count, 5_500, 500))) for count in counts]

    assert len({(each.layout, each.per_pod, each.engine_args) for each in told}) == 1
    assert [each.replicas for each in told] == sorted(each.replicas for each in told)
    assert told[0].replicas < told[-1].replicas
    held = told[0].per_pod.max_concurrent_requests
    assert [each.replicas for each in told] == [-(-count // held) for count in counts]


@pytest.mark.parametrize("limits", [Limits(), Limits(ttft_s=1.0, tpot_s=0.03)])
def test_a_rate_is_divided_by_what_one_pod_carries_within_limits(asked: Asked, limits: Limits) -> None:
    layout = StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=1)
    question = asked(load=arrivals(200.0), limits=limits, layout=layout)
    told = replicas(question)

    assert told.per_pod.max_requests_per_s is not None
    assert told.replicas == -(-200.0 // told.per_pod.max_requests_per_s) == told.gpus
    spared = replicas(replace(question, headroom=Headroom(spare_replicas=1)))
    assert spared.replicas == told.replicas + 1
    assert 0 < (told.utilization_fraction or 0) <= 1


def test_a_pod_that_is_not_stated_is_chosen_and_said_to_be(asked: Asked) -> None:
    told = replicas(asked("llama-3.3-70b", load=users(2_000)))

    assert told.layout.gpus_per_replica == 4  # 141 GB in 16 bits: two of 80 GB each carry a handful
    assert "tensor_parallel_size" in {note.name for note in told.assumptions if note.origin == "chosen"}


def test_a_pod_that_carries_nothing_says_why(asked: Asked) -> None:
    layout = StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=1)
    large = replicas(asked("llama-3.3-70b", load=users(1), layout=layout))
    slow = replicas(asked(load=users(1), limits=Limits(ttft_s=1e-4), layout=layout))

    assert (large.feasible, large.replicas, slow.feasible) == (False, 0, False)
    assert "more memory" in large.would_fit[0]
    assert large.warnings == ()  # it was said that nobody times an H100
    assert slow.would_fit[0].startswith("ttft_s of at least")
    assert large.would_fit[1:] == ("weight_format=fp8 fits", "weight_format=int4 fits")
    in_eight_bits = asked("llama-3.3-70b", load=users(1), layout=layout, settings=StatedSettings(weight_format="fp8"))
    assert replicas(in_eight_bits).feasible


def test_copies_of_a_dense_model_are_a_pod_where_they_are_asked_for(asked: Asked) -> None:
    question = asked("llama-3.1-8b", load=users(64), layout=StatedLayout(data_parallel_size=2))

    answer = replicas(question)

    assert (answer.layout.data_parallel_size, answer.gpus_per_replica, answer.feasible) == (2, 2, True)


def test_how_long_users_of_a_full_pod_wait_is_told_where_no_limit_holds_it(asked: Asked) -> None:
    question = asked(load=arrivals(200.0), limits=Limits(tpot_s=0.05))
    told = [sentence for sentence in replicas(question).warnings if sentence.startswith("in a pod filled")]
    held = replicas(replace(question, limits=Limits(ttft_s=1.0, tpot_s=0.05))).warnings

    assert len(told) == 1
    assert told[0].endswith("s at the 95th percentile: ttft_s limits that")
    assert not any(sentence.startswith("in a pod filled") for sentence in held)

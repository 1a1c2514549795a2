"""What ends the load asked for soonest on the GPUs given. Referee: the same questions, pinned to each layout."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from service.engine.fleet.deployments import Deployment
from service.engine.fleet.given_gpus import carried, largest, resolve_capacity
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.soonest import SOONER, at_load, ends_s, soonest
from service.engine.inputs import Limits, Load, StatedLayout
from tests.engine.conftest import Asked, arrivals, capacity_of, users

SIZES = (1, 2, 4, 8)


def both(question: CapacityQuestion) -> tuple[Deployment, Deployment]:
    """Return what is chosen, and what carries most."""
    resolved = resolve_capacity(question)
    most = largest(question, resolved)
    return soonest(question, resolved, most), most


def ended_s(question: CapacityQuestion, deployment: Deployment) -> float:
    seen = at_load(deployment, question)
    assert seen is not None
    return ends_s(seen)


def pinned(question: CapacityQuestion) -> Iterator[Deployment]:
    """Yield what carries most on each layout within a server."""
    for ranks in SIZES:
        for stages in SIZES:
            if ranks * stages <= question.gpu_count:
                layout = StatedLayout(tensor_parallel_size=ranks, pipeline_parallel_size=stages)
                stated = replace(question, layout=layout)
                yield largest(stated, resolve_capacity(stated))


@pytest.mark.parametrize("model", ["llama-3.3-70b", "qwen3-32b", "mistral-small-24b", "gemma-3-27b-it"])
@pytest.mark.parametrize("gpus", [4, 8])
def test_a_server_is_split_by_tensors_as_its_operators_do(asked: Asked, model: str, gpus: int) -> None:
    """vLLM's guide to parallelism: "if your model ... can fit in a single node with multiple GPUs", tensor parallel."""
    chosen, most = both(capacity_of(asked(model, load=users(16, 2_000, 500)), gpus))

    assert chosen.layout.pipeline_parallel_size == 1
    assert chosen.replicas * chosen.layout.tensor_parallel_size == gpus
    assert most.layout.pipeline_parallel_size > 1  # it holds a few more, and each of them takes longer


@pytest.mark.parametrize("load", [users(16, 2_000, 500), users(200, 500, 200), arrivals(0.5, 2_000, 500)])
def test_no_layout_that_carries_as_much_ends_the_load_far_sooner(asked: Asked, load: Load) -> None:
    question = capacity_of(asked("qwen3-32b", load=load), 8)
    chosen, most = both(question)
    fewer = capacity_of(asked("qwen3-32b", load=load), 7)
    least = carried(fewer, largest(fewer, resolve_capacity(fewer)))

    assert carried(question, most) >= carried(question, chosen) >= least
    carrying = [each for each in pinned(question) if carried(question, each) >= least]
    assert len(carrying) > 2
    assert all(ended_s(question, each) >= SOONER * ended_s(question, chosen) for each in carrying)
    assert ended_s(question, chosen) <= SOONER * ended_s(question, most)


@pytest.mark.parametrize("model", ["llama-3.3-70b", "gpt-oss-120b", "qwen3-32b"])
@pytest.mark.parametrize("load", [users(16, 2_000, 500), arrivals(0.5, 2_000, 500)])
def test_a_gpu_more_never_carries_less(asked: Asked, model: str, load: Load) -> None:
    amounts = []
    for gpus in range(2, 12):
        question = capacity_of(asked(model, load=load), gpus)
        amounts.append(carried(question, both(question)[0]))

    assert amounts == sorted(amounts)


def test_a_gpu_that_carries_nothing_more_changes_nothing(asked: Asked) -> None:
    on_8, on_9 = (both(capacity_of(asked("qwen3-32b", load=users(16, 2_000, 500)), gpus))[0] for gpus in (8, 9))

    assert (on_9.layout, on_9.replicas) == (on_8.layout, on_8.replicas)


@pytest.mark.parametrize(
    ("load", "limits"),
    [(users(16, 2_000, 500), Limits(ttft_s=2.0)), (users(None, 2_000, 500), Limits()), (users(700), Limits())],
)
def test_what_carries_most_stays_with_limits_without_a_load_and_where_nothing_else_holds_it(
    asked: Asked, load: Load, limits: Limits
) -> None:
    gpus = 8 if load.concurrent_requests != 700 else 2
    chosen, most = both(capacity_of(asked("qwen3-32b", load=load, limits=limits), gpus))

    assert chosen is most

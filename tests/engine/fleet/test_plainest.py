"""What starts with a whole context on the GPUs given. Referee: the same questions, pinned to each layout."""

from dataclasses import replace
from typing import Any

import pytest

from service.engine.fleet.deployments import Deployment
from service.engine.fleet.given_gpus import FORGONE, carried, largest, merit_of, pace, resolve_capacity
from service.engine.fleet.plainest import ANSWERED, plainest, preferred
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.soonest import soonest
from service.engine.inputs import Limits
from tests.engine.conftest import Asked, capacity_of, users


def whole(asked: Asked, model: str, gpus: int, limits: Limits | None = None) -> CapacityQuestion:
    question = capacity_of(asked(model, load=users(None), limits=limits or Limits()), gpus)
    return replace(question, input_tokens=None, output_tokens=None)


def both(question: CapacityQuestion) -> tuple[Deployment, Deployment]:
    """Return what is chosen, and what holds most."""
    resolved = resolve_capacity(question)
    most = largest(question, resolved)
    return plainest(question, resolved, most), most


def test_a_small_model_on_a_hundred_gpus_is_not_spread_over_servers(asked: Asked) -> None:
    """Once told: "96 GPUs as TP8 PP4 x 3", which answers fewer requests a second than copies within servers."""
    question = whole(asked, "llama-3.1-8b", 100)
    chosen, most = both(question)
    rates = [each.replicas * pace(question, each)[0] for each in (chosen, most)]

    assert most.layout.gpus_per_replica > 8 >= chosen.layout.gpus_per_replica
    assert chosen.layout.pipeline_parallel_size == 1
    assert carried(question, most) > carried(question, chosen) >= (1 - FORGONE) * carried(question, most)
    assert rates[0] >= ANSWERED * rates[1] > 0


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-32b", "gpt-oss-120b"])
def test_a_gpu_more_never_holds_fewer_whole_contexts(asked: Asked, model: str) -> None:
    told, chosen_otherwise = [], 0
    for gpus in range(1, 17):
        question = whole(asked, model, gpus)
        chosen, most = both(question)
        told.append(merit_of(question, chosen))
        chosen_otherwise += chosen is not most

    assert told == sorted(told)
    assert chosen_otherwise


@pytest.mark.parametrize("load", [{"concurrent_requests": 400}, {"request_rate_per_s": 0.4, "request_duration_s": 1e3}])
def test_users_who_are_asked_for_are_held_by_a_number_or_a_rate_and_a_time(asked: Asked, load: dict[str, Any]) -> None:
    question = whole(asked, "llama-3.1-8b", 100)
    chosen, most = both(question)
    assert carried(question, chosen) < 400 <= carried(question, most)

    loaded = replace(question, load=replace(question.load, **load))
    held, _ = both(loaded)
    assert carried(loaded, held) >= 400


def test_many_requests_are_not_given_up_for_a_plain_layout(asked: Asked) -> None:
    chosen, most = both(whole(asked, "gpt-oss-120b", 2))  # a GPU of its own holds one of them

    assert chosen is most
    assert most.layout.gpus_per_replica == 2


def test_lengths_and_limits_are_for_others_to_weigh(asked: Asked) -> None:
    limited = whole(asked, "llama-3.1-8b", 16, Limits(tpot_s=0.1))
    chosen, most = both(limited)
    assert chosen is most
    lengthy = capacity_of(asked("qwen3-32b", load=users(16, 2_000, 500)), 8)
    resolved = resolve_capacity(lengthy)
    most = largest(lengthy, resolved)
    assert plainest(lengthy, resolved, most) is most
    assert preferred(lengthy, resolved, most).layout == soonest(lengthy, resolved, most).layout != most.layout

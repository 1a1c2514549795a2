"""Which GPU, layout and precision: the order, and why something was left out."""

from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from service.catalog.snapshot import Snapshot
from service.engine.answers.recommend import recommend
from service.engine.answers.results import Option
from service.engine.answers.size import size
from service.engine.fleet.questions import Objective
from service.engine.inputs import Limits
from tests.engine.conftest import Asked, arrivals, recommendation_of, users

GPUS = ("h100", "l40s", "a100-sxm-80gb", "l4")
KEYS = {
    "cost": lambda option: (option.usd_per_hour, option.gpus),
    "gpus": lambda option: (option.gpus, option.usd_per_hour),
}


@pytest.mark.parametrize("objective", ["cost", "gpus"])
def test_options_are_ordered_by_the_objective(asked: Asked, catalog: Snapshot, objective: Objective) -> None:
    answer = recommend(recommendation_of(asked("qwen3-32b"), catalog, *GPUS, objective=objective))

    keys = [KEYS[objective](option) for option in answer.options]
    assert len(keys) >= 3
    assert keys == sorted(keys)
    assert [option.rank for option in answer.options] == list(range(1, len(keys) + 1))


def test_every_option_is_what_its_own_question_answers(asked: Asked, catalog: Snapshot) -> None:
    question = asked("qwen3-32b", load=arrivals(4.0), limits=Limits(ttft_s=1.0, tpot_s=0.05))
    asked_for = recommendation_of(question, catalog, *GPUS, limit=3, objective="gpus")
    answer = recommend(asked_for)

    def again(option: Option) -> tuple[int, int]:
        settings = replace(question.settings, weight_format=option.weight_format)
        sized = size(replace(question, gpu=catalog.gpu(option.gpu), settings=settings, offers=asked_for.offers))
        return sized.gpus, sized.layout.tensor_parallel_size

    assert answer.options
    assert [(option.gpus, option.tensor_parallel_size) for option in answer.options] == [
        again(each) for each in answer.options
    ]


@pytest.mark.parametrize("objective", ["cost", "gpus", "latency"])
def test_a_shorter_list_is_the_beginning_of_a_longer_one(asked: Asked, catalog: Snapshot, objective: Objective) -> None:
    question = asked("qwen3-32b", load=users(32), limits=Limits(ttft_s=1.0))
    short, long = (
        recommend(recommendation_of(question, catalog, *GPUS, limit=limit, objective=objective)) for limit in (2, 50)
    )

    def alone(option: Option) -> Option:
        return replace(option, on_pareto_front=False)

    assert [alone(option) for option in short.options] == [alone(option) for option in long.options[:2]]
    assert any(option.alternatives for option in short.options)


def test_a_limit_that_one_token_cannot_break_is_a_stated_one(client: TestClient) -> None:
    """Answers of one token take no more than those of two, to which the floor does not apply either."""
    fields = {"model": "qwen3-32b", "gpus": ["l40s"], "request_rate_per_s": 1, "input_tokens": 15_000, "tpot_s": 0.06}
    one, two = (client.post("/recommend", json={**fields, "output_tokens": tokens}).json() for tokens in (1, 2))

    assert one["options"][0]["gpus"] <= two["options"][0]["gpus"]
    notes = {note["name"]: note for note in one["assumptions"]}
    assert "ttft_s" not in notes
    assert (notes["tpot_s"]["value"], notes["tpot_s"]["origin"]) == (0.06, "request")


def test_without_limits_an_interactive_floor_holds_and_a_batch_drops_it(asked: Asked, catalog: Snapshot) -> None:
    question = recommendation_of(asked("llama-3.3-70b", load=users(64, 5_500, 500)), catalog, *GPUS, "h200")
    interactive, batch = recommend(question), recommend(replace(question, service_class="batch"))
    notes = {note.name: note for note in interactive.assumptions}

    assert (notes["ttft_s"].value, notes["tpot_s"].value, notes["ttft_s"].origin) == (5.0, 0.1, "default")
    assert "ttft_s" not in {note.name for note in batch.assumptions}
    assert all((option.ttft_p95_s or 0) <= 5.0 for option in interactive.options)
    assert all((option.tpot_p95_s or 0) <= 0.1 for option in interactive.options)
    assert (batch.options[0].usd_per_hour or 0) <= (interactive.options[0].usd_per_hour or 0)


def test_what_is_left_out_says_why(asked: Asked, catalog: Snapshot) -> None:
    small = recommend(recommendation_of(asked("llama-3.3-70b"), catalog, "h100", "l4", max_gpus=3, limit=50))
    slow = recommend(recommendation_of(asked("llama-3.3-70b", limits=Limits(tpot_s=1e-4)), catalog, "h100"))
    cheap = recommend(recommendation_of(asked("llama-3.3-70b"), catalog, "h100", max_usd_per_hour=0.5))
    nobody = recommend(replace(recommendation_of(asked(), catalog, "h100"), offers=(), is_price_needed=True))
    old = recommend(recommendation_of(asked(), catalog, "t4", weight_formats=("mxfp4",)))

    assert any("and max_gpus is 3" in rejection.reason for rejection in small.rejected)
    assert all("tpot_s of at least" in rejection.reason for rejection in slow.rejected)
    assert any("max_usd_per_hour is 0.5" in rejection.reason for rejection in cheap.rejected)
    assert any("the catalog has no offer of h100" in rejection.reason for rejection in nobody.rejected)
    assert "runs mxfp4 from compute capability 8.0" in old.rejected[0].reason
    assert not slow.feasible


def test_equals_stand_by_their_latency_and_of_one_gpu_the_models_own_format_first(
    asked: Asked, catalog: Snapshot
) -> None:
    question = asked("llama-3.1-8b", load=users(8))
    unpriced = recommendation_of(question, catalog, *GPUS, objective="gpus")
    answer = recommend(replace(unpriced, offers=(), weight_formats=("int4", "fp8", "bf16")))

    def seen(option: Option) -> float:
        assert option.ttft_p95_s is not None
        assert option.tpot_p95_s is not None
        return option.ttft_p95_s + (question.load.output_tokens - 1) * option.tpot_p95_s

    of_one = [option for option in answer.options if option.gpus == 1]
    assert len(of_one) > 2
    assert [option.gpu for option in of_one] == [option.gpu for option in sorted(of_one, key=seen)]
    assert [option.gpu for option in of_one] != sorted(option.gpu for option in of_one)
    assert {option.weight_format for option in of_one} == {"bf16"}
    for option in of_one:
        formats = [each.weight_format for each in option.alternatives if each.gpus == 1]
        assert formats == sorted(formats, key=["fp8", "int4"].index)

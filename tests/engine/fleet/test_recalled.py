"""Searches recalled: the same order of merits, or the search again."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from service.engine.fleet.choice import deployments
from service.engine.fleet.questions import Offer
from service.engine.fleet.recalled import in_same_order
from service.engine.inputs import Limits
from tests.engine.conftest import Asked, users

MERITS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=8)


def offer(gpu: str, usd_per_hour: float) -> Offer:
    return Offer(
        id="one", provider="", instance_type="", region="", gpu=gpu, gpu_count=8, usd_per_hour=usd_per_hour, as_of=""
    )


@given(before=MERITS, today=MERITS)
def test_an_order_is_the_same_if_every_comparison_is(
    before: list[tuple[int, int]], today: list[tuple[int, int]]
) -> None:
    before, today = before[: len(today)], today[: len(before)]
    every = [
        (before[one] < before[other], before[one] == before[other])
        == (today[one] < today[other], today[one] == today[other])
        for one in range(len(before))
        for other in range(len(before))
    ]

    assert in_same_order(before, today) == all(every)


def test_prices_of_the_same_order_recall_the_search(asked: Asked) -> None:
    question = asked("qwen3-32b", load=users(100), limits=Limits(tpot_s=0.05))
    dear, cheap = (replace(question, offers=(offer(question.gpu.id, usd),)) for usd in (80.0, 8.0))

    assert deployments(cheap) is deployments(dear)
    assert deployments(replace(question, load=users(101))) is not deployments(dear)

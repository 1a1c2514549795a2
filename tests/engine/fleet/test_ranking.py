"""Which of several deployments is the best."""

from dataclasses import replace
from math import inf

from service.engine.fleet.aims import aim_of
from service.engine.fleet.choice import deployments
from service.engine.fleet.questions import Offer
from service.engine.fleet.ranking import ALIKE, APART, as_fast, as_fast_as, best, latency_s
from service.engine.inputs import StatedLayout
from tests.engine.conftest import Asked, users

FOUR = Offer(
    id="four", provider="one", instance_type="4 x H100", region="any", gpu="h100-sxm-80gb", gpu_count=4,
    usd_per_hour=12.0, as_of="2026-11-01",
)  # fmt: skip


def test_what_takes_hardly_longer_is_as_fast(asked: Asked) -> None:
    question = asked(load=users(16))
    (deployment, *_) = deployments(question)
    took_s = latency_s(deployment, question)

    assert took_s > 0
    assert as_fast_as(question, took_s / ALIKE)(deployment)
    assert not as_fast_as(question, 0.99 * took_s / ALIKE)(deployment)
    assert as_fast_as(question, inf)(deployment)


def test_gpus_that_are_paid_for_anyway_are_used(asked: Asked) -> None:
    question = replace(asked("llama-3.3-70b", load=users(16)), offers=(FOUR,))
    fewest = best(deployments(question, "gpus"), question, "gpus")
    cheapest = best(deployments(question, "cost"), question, "cost")
    prices = [
        aim_of("cost", question.gpu, question.offers).merit(each.layout, each.replicas) for each in (fewest, cheapest)
    ]

    assert fewest.gpus < 4
    assert prices == [(12.0, 4.0)] * 2
    assert cheapest.layout.tensor_parallel_size == cheapest.gpus == 4
    assert latency_s(cheapest, question) < latency_s(fewest, question)


def test_nothing_that_is_as_good_is_faster(asked: Asked) -> None:
    question = replace(asked("llama-3.3-70b", load=users(16)), offers=(FOUR,))
    chosen = best(deployments(question, "cost"), question, "cost")
    for ranks, stages in ((1, 3), (1, 4), (2, 2)):
        layout = StatedLayout(tensor_parallel_size=ranks, pipeline_parallel_size=stages)
        stated = replace(question, layout=layout)
        other = best(deployments(stated, "cost"), stated, "cost")
        assert latency_s(chosen, question) <= ALIKE * latency_s(other, stated)


def test_times_that_nobody_measured_share_most_of_their_error(asked: Asked) -> None:
    """Layouts on one GPU type: who takes half as long again is slower, though both may be off by more than that."""
    question = asked("llama-3.1-8b", "mi250x", load=users(16))
    layouts = (StatedLayout(tensor_parallel_size=ranks, pipeline_parallel_size=1) for ranks in (1, 2, 4, 8))
    each = [best(deployments(stated), stated) for stated in (replace(question, layout=layout) for layout in layouts)]
    seen = [latency_s(deployment, question) for deployment in each]
    basis = [it.with_times(question.timers).replica for it in each]

    assert all(it is not None and not it.timing.basis.is_measured for it in basis)
    assert any(it is not None and it.timing.basis.expected_error_fraction > APART for it in basis)
    assert max(seen) > (1 + APART) * min(seen)
    assert list(as_fast(each, question)) == [
        it for it, took_s in zip(each, seen, strict=True) if took_s <= (1 + APART) * min(seen)
    ]

"""What is told of a deployment under load."""

import pytest

from service.engine.fleet.choice import deployments
from service.engine.fleet.figures import Rates, figures
from service.engine.fleet.ranking import best
from service.engine.inputs import Limits
from service.engine.time.demand import Users
from tests.engine.conftest import Asked, arrivals, users


def test_all_replicas_do_as_many_times_what_one_does(asked: Asked) -> None:
    question = asked(load=arrivals(60.0), limits=Limits(ttft_s=1.0, tpot_s=0.03))
    deployment = best(deployments(question), question)
    told = figures(deployment, deployment.capacity)

    assert told.rates is not None
    assert told.at_load is not None
    assert told.latency is not None
    assert told.rates.of_all == deployment.replicas * told.rates.of_one >= 60.0
    assert told.at_load.requests_per_s == pytest.approx(60.0, rel=0.05)
    assert told.output_tokens_per_s == pytest.approx(200 * told.rates.of_one, rel=0.05)
    assert (told.queue_diverges_at_requests_per_s or 0) >= told.rates.of_all
    assert told.latency.basis == "measured-kernels"


def test_without_times_only_memory_is_told(asked: Asked) -> None:
    question = asked(load=users(64), timers=None)
    deployment = best(deployments(question), question)
    told = figures(deployment, deployment.capacity)

    assert told.of_one.max_concurrent_requests > 0
    assert (told.rates, told.latency, told.at_load, told.output_tokens_per_s) == (None, None, None, None)


def test_without_an_asked_load_latency_is_of_the_largest_one(asked: Asked) -> None:
    question = asked(load=users(64))
    deployment = best(deployments(question), question).with_times(question.timers)
    unasked = type(deployment)(
        resolved=deployment.resolved,
        plan=deployment.plan,
        replica=deployment.replica,
        load=users(None),
        limits=Limits(tpot_s=0.02),
        replicas=2,
    )
    of_one = unasked.carries(Users)
    told = figures(unasked, of_one, Rates(of_one=1.0, of_all=2.0))

    assert unasked.replica is not None
    assert told.latency is not None
    assert told.rates == Rates(of_one=1.0, of_all=2.0)
    most = unasked.replica.seen(Users(of_one.max_concurrent_requests))
    assert told.latency.tpot_s == most.tpot_s.distribution()

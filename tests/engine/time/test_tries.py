"""Settings of which the same would be found out are not tried again; all others are."""

from dataclasses import replace

import pytest

from service.engine.fleet.deployments import deployment_of, plan_for, resolve_size
from service.engine.fleet.estimates import replica_for
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import Resolved
from service.engine.inputs import Layout, Limits
from service.engine.time.chance import MEASURED
from service.engine.time.demand import Users
from service.engine.time.replica import Replica
from service.engine.time.tries import Tries
from tests.engine.conftest import Asked, arrivals, users

ONE, LIMITS = Layout(), Limits(ttft_s=1.0, tpot_s=0.015)


def with_settings(resolved: Resolved, tokens: int, seqs: int) -> Resolved:
    settings = replace(resolved.settings, max_num_batched_tokens=tokens, max_num_seqs=seqs)
    return replace(resolved, settings=settings)


def replica_of(question: SizeQuestion, resolved: Resolved) -> Replica:
    replica = replica_for(question, plan_for(question, resolved, ONE))
    assert replica is not None
    return replica


@pytest.mark.parametrize("at_most", [4, 60])
@pytest.mark.parametrize("load", [arrivals(90.0, 200, 100), users(900, 200, 100)], ids=["arrivals", "users"])
def test_what_another_told_is_what_would_be_found_out(asked: Asked, load: object, at_most: int) -> None:
    question = asked(load=load, limits=LIMITS)
    resolved, tries, found, told = resolve_size(question), Tries(), [], 0
    for tokens in (4_096, 2_048, 8_192, 1_024, 512):
        for seqs in (1_024, 256, 128):
            settings = with_settings(resolved, tokens, min(seqs, tokens))
            replica, plan = replica_of(question, settings), plan_for(question, settings, ONE)
            is_told = tries.tell_of(replica)
            with tries.noting(replica):
                deployment = deployment_of(question, settings, plan, at_most)
            replicas = None if deployment is None else deployment.replicas
            told += is_told
            assert replicas in found or not is_told
            found.append(replicas)

    assert told


def test_other_models_and_layouts_are_told_apart(asked: Asked) -> None:
    question = asked(load=users(40, 200, 100), limits=LIMITS)
    resolved, tries = resolve_size(question), Tries()
    replica = replica_of(question, resolved)
    other = replica_for(question, plan_for(question, resolved, Layout(tensor_parallel_size=2)))
    with tries.noting(replica):
        deployment_of(question, resolved, replica.plan, 60)

    assert tries.tell_of(replica)
    assert not tries.tell_of(other)
    assert not tries.tell_of(None)


def test_a_verdict_is_asked_for_once(asked: Asked) -> None:
    question = asked(load=users(40, 200, 100), limits=LIMITS)
    resolved, tries, calls = resolve_size(question), Tries(), []
    for tokens in (2_048, 4_096, 8_192):
        replica = replica_of(question, with_settings(resolved, tokens, 256))

        def ask(replica: Replica = replica) -> bool:
            calls.append(1)
            return replica.breaks(Users(10), LIMITS, MEASURED) is None

        assert tries.told(replica, ask)

    assert len(calls) == 1

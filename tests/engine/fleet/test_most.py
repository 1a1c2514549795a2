"""The search for what carries most, beside every setting of it looked at in full."""

from dataclasses import replace

import pytest

from service.engine.fleet.given_gpus import as_started, carries_any, largest, resolve_capacity
from service.engine.fleet.lengths import plan_at
from service.engine.fleet.most import Search
from service.engine.fleet.pacing import CAP_SHARES
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.variants import batched_tokens
from service.engine.inputs import Layout, Limits, StatedLayout
from service.engine.time.demand import Arrivals, Users
from tests.engine.conftest import Asked, arrivals, capacity_of, users
from tests.work import functions_of

CASES = [
    ("llama-3.1-8b-instruct", "l40s", Limits(ttft_s=2.0, tpot_s=0.05)),
    ("gemma-3-27b-it", "h200", Limits(ttft_s=1.0, tpot_s=0.03)),
    ("qwen3-30b-a3b", "h100", Limits(ttft_s=2.0, tpot_s=0.02)),
    ("qwen3-32b", "a100-sxm-80gb", Limits(tpot_s=0.06)),
]
ALONE = StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1)


def rates(question: CapacityQuestion) -> tuple[float, float]:
    """Return the highest rate of the answer, and that of every budget and cap on running requests that may be chosen."""
    resolved, stated = resolve_capacity(question), question.settings
    chosen = largest(question, resolved)
    assert chosen.replica is not None
    pace = replace(question.limits, ttft_s=None)
    every = []
    for tokens in batched_tokens(resolved):
        of_budget = replace(question, settings=replace(stated, max_num_batched_tokens=tokens))
        own = as_started(of_budget, resolve_capacity(of_budget), Layout())
        assert own.replica is not None
        in_pace = own.replica.most(Users, pace).load
        for cap in (None, *(int(share * in_pace) for share in CAP_SHARES)):
            if cap == 0:
                continue
            pinned = replace(of_budget, settings=replace(of_budget.settings, max_num_seqs=cap))
            one = as_started(pinned, resolve_capacity(pinned), Layout())
            every.append(0.0 if one.replica is None else one.replica.most(Arrivals, question.limits).load)
    return chosen.replica.most(Arrivals, question.limits).load, max(every)


@pytest.mark.parametrize(("model", "gpu", "limits"), CASES)
def test_no_setting_carries_a_higher_rate_than_the_one_chosen(
    asked: Asked, model: str, gpu: str, limits: Limits
) -> None:
    question = capacity_of(asked(model, gpu, load=arrivals(1.0, 900, 150), limits=limits), 1)

    chosen, most = rates(replace(question, layout=ALONE))

    assert chosen >= most > 0


@pytest.mark.parametrize(("model", "gpu", "limits"), CASES)
def test_caps_that_keep_pace_hold_no_more_users_and_are_taken_where_more_are_answered(
    asked: Asked, model: str, gpu: str, limits: Limits
) -> None:
    question = capacity_of(asked(model, gpu, load=users(None, 900, 150), limits=limits), 1)
    resolved = resolve_capacity(question)

    def best(*, is_paced: bool) -> tuple[int, float]:
        search = Search(
            question=question, plan_of=lambda settings, at: plan_at(question, settings, at), is_paced=is_paced
        )
        found = search.best([(resolved, Layout())])
        assert found.replica is not None
        return found.carries(Users).max_concurrent_requests, found.replica.most(Arrivals, limits).load

    paced, own = best(is_paced=True), best(is_paced=False)

    assert paced[0] == own[0] > 0
    assert paced[1] >= own[1]


def test_who_starts_by_itself_has_the_engine_s_own_cap(asked: Asked) -> None:
    limits = Limits(ttft_s=5.0, tpot_s=0.05)
    question = capacity_of(asked("gemma-3-27b-it", "h200", load=arrivals(60.0, 2_000), limits=limits), 8)
    resolved = resolve_capacity(question)

    started = as_started(question, resolved, Layout())

    assert not started.is_paced
    assert started.plan.settings == replace(resolved.settings, max_model_len=started.plan.settings.max_model_len)


@pytest.mark.parametrize("limits", [Limits(ttft_s=0.0001), Limits(tpot_s=0.0004)], ids=repr)
def test_limits_that_no_step_keeps_are_told_before_anything_is_planned(asked: Asked, limits: Limits) -> None:
    question = capacity_of(asked("gpt-oss-120b", "h200", load=arrivals(1.0, 900, 150), limits=limits), 8)

    work = functions_of(lambda: carries_any(question))

    assert not carries_any(question)
    assert work["engine.fleet.given_gpus:carries_any"] == 1
    assert work["engine.fleet.lengths:plan_at"] == 0

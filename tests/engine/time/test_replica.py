"""A plan with its times."""

from dataclasses import replace

from service.catalog.snapshot import Snapshot
from service.engine.inputs import Load
from service.engine.time.demand import Users
from service.engine.time.replica import Replica, quickly_timed, timed
from tests.engine.time.conftest import HandTimers, plan_of

LOAD = Load(concurrent_requests=1, request_rate_per_s=None, input_tokens=1_000, output_tokens=101)


def test_a_cap_keeps_the_pace_that_a_full_batch_breaks(catalog: Snapshot, replica: Replica) -> None:
    capped = replica.capped(plan_of(catalog, max_num_seqs=4))
    full, few = replica.seen(Users(64)), capped.seen(Users(64))

    assert few.tpot_s.mean < full.tpot_s.mean
    assert few.ttft_s.mean > full.ttft_s.mean


def test_what_holds_no_request_or_has_no_times_is_no_replica(catalog: Snapshot) -> None:
    plan = plan_of(catalog)
    without_cache = replace(plan, requests_in_cache=0)

    assert timed(plan, None, LOAD) is None
    assert timed(without_cache, HandTimers(), LOAD) is None
    assert quickly_timed(plan, HandTimers(), LOAD) is not None

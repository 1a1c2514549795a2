"""A plan with its times."""

from dataclasses import replace

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.inputs import Load
from service.engine.time.demand import Users
from service.engine.time.replica import Replica, quickly_timed, sent_s, timed
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


def test_a_first_token_waits_for_its_cache_to_be_sent(catalog: Snapshot) -> None:
    """A second for the cache of one request: whoever reads alone has it a second later, and reads as fast."""
    plan = plan_of(catalog)
    sending = replace(LOAD, sent_bytes_per_s=float(plan.kv_cache.bytes_per_request_per_gpu))
    stays, sends = timed(plan, HandTimers(), LOAD), timed(plan, HandTimers(), sending)

    assert (sent_s(plan, LOAD), sent_s(plan, sending)) == (0.0, 1.0)
    assert stays is not None
    assert sends is not None
    assert sends.seen(Users(1)).ttft_s.mean == pytest.approx(stays.seen(Users(1)).ttft_s.mean + 1.0)
    assert sends.seen(Users(1)).tpot_s.mean == pytest.approx(stays.seen(Users(1)).tpot_s.mean)

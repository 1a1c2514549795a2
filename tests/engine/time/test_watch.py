"""A limit is broken for certain as soon as too many requests missed it."""

from service.engine.inputs import Limits
from service.engine.time.traffic import Sender
from service.engine.time.watch import Watch
from tests.engine.time.conftest import traffic

LOAD = Sender().burst_of_users(traffic(), 1, 100)


def test_five_of_a_hundred_may_miss_the_95th_percentile_but_not_break_it() -> None:
    watch = Watch(LOAD, Limits(ttft_s=1.0, percentile=95))

    assert [watch.answered(2.0, 0.0) for _ in range(5)] == [None, None, None, None, "ttft"]


def test_requests_within_the_limits_do_not_count() -> None:
    watch = Watch(LOAD, Limits(tpot_s=0.05, percentile=50))

    assert [watch.answered(9.0, 0.04) for _ in range(100)] == [None] * 100
    assert [watch.answered(0.0, 0.06) for _ in range(50)][-1] == "tpot"


def test_single_tokens_have_no_pace() -> None:
    single = Watch(Sender().burst_of_users(traffic(output_tokens=1), 1, 10), Limits(tpot_s=0.01))

    assert single.answered(1.0, 0.0) is None

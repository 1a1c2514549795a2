"""What times rest on, and how far they may be off."""

from dataclasses import replace

import pytest

from service.engine.time.results import Basis, LoadState

BASIS = Basis(
    name="measured-kernels", is_measured=True, source="", note="", overhead_source="", expected_error_fraction=0.4
)


def test_pace_is_off_by_as_much_as_latencies_where_nobody_judged_it_alone() -> None:
    assert BASIS.pace_error_fraction == 0.4
    assert replace(BASIS, stated_pace_error_fraction=0.1).pace_error_fraction == 0.1


@pytest.mark.parametrize(
    ("measured", "rate", "growth"),
    # beyond what is answered, 8.4 a second, at least the rest grows; below it, hardly growing is chance
    [(0.0, 8.5, 0.1), (0.3, 8.5, 0.3), (0.1, 8.0, 0.0), (0.5, 8.0, 0.5), (0.0, 4.0, 0.0)],
)
def test_a_queue_grows_beyond_what_is_answered_and_not_below_it(measured: float, rate: float, growth: float) -> None:
    state = LoadState(
        concurrent_requests=100.0,
        requests_per_s=rate - measured,
        output_tokens_per_s=200 * (rate - measured),
        queue_growth_per_s=measured,
        kv_cache_fraction=0.5,
        preemptions_per_request=0.0,
    )

    told = state.of_arrivals(rate, 8.4)

    assert told.queue_growth_per_s == pytest.approx(growth)
    assert told.requests_per_s == pytest.approx(rate - growth)
    assert told.output_tokens_per_s == pytest.approx(200 * (rate - growth))

"""What times rest on, and how far they may be off."""

from dataclasses import replace

from service.engine.time.results import Basis

BASIS = Basis(
    name="measured-kernels", is_measured=True, source="", note="", overhead_source="", expected_error_fraction=0.4
)


def test_pace_is_off_by_as_much_as_latencies_where_nobody_judged_it_alone() -> None:
    assert BASIS.pace_error_fraction == 0.4
    assert replace(BASIS, stated_pace_error_fraction=0.1).pace_error_fraction == 0.1

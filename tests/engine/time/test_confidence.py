"""Times that hold with a probability."""

import pytest

from service.engine.time.confidence import MEDIAN, SlowerSteps, slowdown, slower
from service.engine.time.records import STEPS, new_records
from tests.engine.time.conftest import LinearSteps


def test_the_expected_error_is_kept_nine_times_in_ten() -> None:
    """80 % within it to either side leave 10 % beyond it on the slow side."""
    assert slowdown(0.25, 0.0, 0.9) == pytest.approx(1.25)


def test_more_certainty_more_error_and_a_smaller_sample_never_take_less() -> None:
    by_probability = [slowdown(0.2, 0.05, probability) for probability in (0.5, 0.8, 0.9, 0.95)]
    by_error = [slowdown(error, 0.05, 0.9) for error in (0.0, 0.1, 0.2)]
    by_sample = [slowdown(0.2, sample, 0.9) for sample in (0.0, 0.1, 0.2)]

    for rising in (by_probability, by_error, by_sample):
        assert rising == sorted(rising)
    assert by_probability[0] == 1.0


def test_every_part_of_a_step_is_slowed_alike() -> None:
    steps = LinearSteps(decode_request_s=0.001)
    longer = SlowerSteps(steps=steps, factor=1.5)

    assert longer.decode_s(3, 100) == 1.5 * steps.decode_s(3, 100)
    assert longer.mixed_s(200, 100, 3, 100) == 1.5 * steps.mixed_s(200, 100, 3, 100)


def test_compiled_code_reads_the_same_slower_times() -> None:
    records, longer = new_records(1, STEPS), new_records(1, STEPS)
    steps = LinearSteps(decode_request_s=0.001)
    steps.write(records)
    SlowerSteps(steps=steps, factor=2.0).write(longer)

    assert (longer["decode_s"] == 2 * records["decode_s"]).all()
    assert (longer["tokens_s"] == 2 * records["tokens_s"]).all()
    assert (longer["requests"] == records["requests"]).all()


def test_nobody_s_times_stay_nobody_s() -> None:
    assert slower(None, 0.9, 0.0) is None
    assert slower(None, MEDIAN, 0.0) is None

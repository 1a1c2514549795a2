"""One deadline holds for everything inside it."""

import time

import pytest

from service.catalog.deadline import DeadlineError, check_deadline, seconds_left, within


def test_without_a_deadline_there_is_time() -> None:
    assert seconds_left() is None
    check_deadline()


def test_the_earlier_of_two_deadlines_holds() -> None:
    with within(0.5):
        with within(60):
            left = seconds_left()
        with within(0.1):
            less = seconds_left()

    assert left is not None
    assert left <= 0.5
    assert less is not None
    assert less <= 0.1
    assert seconds_left() is None


def test_work_whose_time_is_up_stops() -> None:
    with within(0.01):
        check_deadline()
        time.sleep(0.02)

        assert seconds_left() == 0
        with pytest.raises(DeadlineError):
            check_deadline()


def test_time_that_was_up_before_it_began_is_up() -> None:
    with within(-1), pytest.raises(DeadlineError):
        check_deadline()

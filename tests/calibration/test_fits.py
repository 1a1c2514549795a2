"""What a fit may find, and what is said of classes that nobody measured."""

from dataclasses import replace

import numpy as np
import pytest

from service.calibration.fits.judged import Judged, cold_errors
from service.calibration.fits.serving import BOUNDS, START, _robust
from service.calibration.serving import Measured
from service.performance.fitted import ANY, MOST_ERROR, factors_of, fitted_rows
from service.performance.known import MEASURED


def test_the_file_is_one_whole_fit() -> None:
    assert len({row.fit.date for row in fitted_rows()}) == 1


@pytest.mark.parametrize("name", BOUNDS)
def test_constants_are_within_what_physics_leaves_open(name: str) -> None:
    _, low, high = BOUNDS[name]
    found = [getattr(factors_of(row), name) for row in fitted_rows()]

    # One speed of its kernels moves all three of a class without latencies at once.
    slack = 1.25 if name.endswith("factor") else 1.0
    assert all(low / slack <= value <= high * slack for value in found)


def test_what_nobody_measured_beside_measured_kernels_is_no_blank() -> None:
    rows = [row for row in fitted_rows() if row.basis == MEASURED and row.kernels == ANY]

    assert len(rows) == 4  # three engines, and any
    assert all(row.expected_error_fraction < MOST_ERROR for row in rows)


def test_large_errors_weigh_no_more_than_linearly() -> None:
    small, large, larger = (_robust(np.array([error]))[0] ** 2 for error in (0.01, 5.0, 10.0))

    assert small == pytest.approx(0.01**2, rel=0.01)
    assert larger == pytest.approx(2 * large, rel=0.05)


def judged(*predicted: float) -> Judged:
    pair = Measured(
        case="any",
        source="any",
        tier="A",
        engine="vllm",
        gpu="h100-sxm-80gb",
        group=("vllm", "h100-sxm-80gb", "llama-3.1-8b", 1),
        basis=MEASURED,
        quantity="tpot",
        percent=None,
        expected_error_fraction=0.5,
        measured=1.0,
        predicted=1.0,
    )
    return Judged(
        key=(MEASURED, "vllm", ANY, "hopper", "dense-bf16"),
        factors=START,
        runs=len(predicted),
        sources=("any",),
        unseen=(),
        cold=tuple(replace(pair, predicted=each) for each in predicted),
        unfit=(),
        is_by_source=True,
    )


def test_each_class_has_the_same_say_of_what_nobody_measured() -> None:
    well, less, badly = judged(*[1.1] * 90), judged(1.2), judged(3.0)

    assert cold_errors([well, less, badly]) == pytest.approx((2.0, 2.0))
    assert cold_errors([well, well, well, less, less, badly]) == pytest.approx((0.2, 0.2))
    assert cold_errors([judged(0.5), judged()]) == pytest.approx((1.0, 1.0))

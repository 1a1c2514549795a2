"""Constants that stand are judged again, and are the same afterwards."""

from service.calibration.fits.standing import Standing
from service.performance.fitted import fitted_rows


def test_rows_that_are_judged_again_keep_their_constants_their_day_and_their_place() -> None:
    rows = fitted_rows()
    judged = [row.model_dump() for row in reversed(rows)]
    for row in judged:
        row["expected_error_fraction"] = 0.5
        row["factors"] = dict.fromkeys(row["factors"], 0.0)
        row["fit"] = {**row["fit"], "judged_on_runs": 7, "date": "2030-01-01"}
    judged.append({**judged[0], "kernels": "of no row so far"})

    *kept, new = Standing().kept(judged)

    assert [row["factors"] for row in kept] == [row.factors.model_dump() for row in rows]
    assert [row["fit"]["date"] for row in kept] == [row.fit.date for row in rows]
    assert {(row["expected_error_fraction"], row["fit"]["judged_on_runs"]) for row in kept} == {(0.5, 7)}
    assert new == judged[-1]


def test_classes_that_are_medians_of_others_are_none_that_were_fitted() -> None:
    fitted = Standing().fitted

    assert len(fitted) == sum(row.fit.runs > 0 for row in fitted_rows())
    assert ("measured-kernels", "vllm", "*", "*", "*") not in fitted

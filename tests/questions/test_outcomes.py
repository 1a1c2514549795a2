"""Many outcomes are one table."""

from service.questions.outcomes import outcome_row, sheet_of


def test_a_table_has_every_column_that_a_row_has() -> None:
    faults = [
        {"field": "ttft_s", "detail": "should be greater than 0", "accepted": "more than 0"},
        {"field": "gpus", "detail": "unknown field", "accepted": None},
    ]
    rows = [
        outcome_row(0, 422, {"detail": "=wrong", "type": "/problems/invalid-request", "errors": faults}),
        outcome_row(1, 200, {"gpus": 2, "cost": {"usd_per_hour": 3.5}, "levers": []}),
        outcome_row(2, 503, {}),
    ]
    told = "invalid-request,ttft_s | gpus,should be greater than 0 | unknown field,more than 0 | "

    assert sheet_of(rows).splitlines() == [
        "index,status,detail,problem,field,fault,accepted,gpus,cost.usd_per_hour",
        f"0,422,'=wrong,{told},,",
        "1,200,,,,,,2,3.5",
        "2,503,,,,,,,",
    ]
    assert sheet_of([]) == ""

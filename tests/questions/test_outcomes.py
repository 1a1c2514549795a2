"""Many outcomes are one table."""

from service.questions.outcomes import outcome_row, sheet_of


def test_a_table_has_every_column_that_a_row_has() -> None:
    rows = [
        outcome_row(0, 422, {"detail": "=wrong", "errors": []}),
        outcome_row(1, 200, {"gpus": 2, "cost": {"usd_per_hour": 3.5}, "levers": []}),
    ]

    assert sheet_of(rows) == "index,status,detail,gpus,cost.usd_per_hour\n0,422,'=wrong,,\n1,200,,2,3.5\n"
    assert sheet_of([]) == ""

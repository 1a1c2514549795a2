"""Many outcomes are one table."""

from service.questions.outcomes import outcome_rows, sheet_of


def test_a_table_has_every_column_that_a_row_has() -> None:
    faults = [
        {"field": "ttft_s", "detail": "should be greater than 0", "accepted": "more than 0"},
        {"field": "gpus", "detail": "unknown field", "accepted": None},
    ]
    rows = [
        *outcome_rows(0, 422, {"detail": "=wrong", "type": "/problems/invalid-request", "errors": faults}),
        *outcome_rows(1, 200, {"gpus": 2, "cost": {"usd_per_hour": 3.5}, "levers": []}),
        *outcome_rows(2, 503, {}),
    ]
    told = "invalid-request,ttft_s | gpus,should be greater than 0 | unknown field,more than 0 | "

    assert sheet_of(rows).splitlines() == [
        "index,status,detail,problem,field,fault,accepted,gpus,cost.usd_per_hour",
        f"0,422,'=wrong,{told},,",
        "1,200,,,,,,2,3.5",
        "2,503,,,,,,,",
    ]
    assert sheet_of([]) == ""


def test_an_answer_that_is_a_list_has_a_row_for_each_entry() -> None:
    option = {"rank": 1, "gpu": "l40s", "usd_per_hour": 1.09, "warnings": ["stale", "int4"], "alternatives": []}
    answer = {"feasible": True, "model": "llama-3.1-8b", "options": [option, {**option, "rank": 2}], "warnings": []}
    none = {"feasible": False, "model": "llama-3.1-8b", "options": [], "warnings": []}
    rows = [*outcome_rows(0, 200, answer), *outcome_rows(1, 200, none)]

    assert [(row["index"], row["feasible"], row.get("rank"), row["warnings"]) for row in rows] == [
        (0, True, 1, "stale; int4"), (0, True, 2, "stale; int4"), (1, False, None, ""),
    ]  # fmt: skip
    assert sheet_of(rows).splitlines()[1].endswith("true,llama-3.1-8b,stale; int4,1,l40s,1.09")


def test_a_row_tells_the_checkpoint_and_the_warnings_as_the_table_of_one_answer_does() -> None:
    notes = [{"name": "checkpoint", "value": "nvidia/Llama-3.1-8B-Instruct-FP8"}, {"name": "block_size", "value": 16}]
    (row,) = outcome_rows(0, 200, {"gpus": 1, "assumptions": notes, "warnings": ["the price is stale"]})

    assert (row["checkpoint"], row["warnings"]) == ("nvidia/Llama-3.1-8B-Instruct-FP8", "the price is stale")

"""What became of many questions, as one table: a row each, under the columns that any of them has."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.questions.answers import Row, flat
from service.questions.formats import table

# Column -> what a fault of a problem calls it.
OF_FAULTS: Final = {"field": "field", "fault": "detail", "accepted": "accepted"}
BETWEEN: Final = " | "  # faults of one row, in the same order in each of these columns


def outcome_row(index: int, status: int, document: Mapping[str, Any]) -> Row:
    """Return the row of one question: its answer flat, or why there is none and which fields are at fault.

    >>> fault = {"field": "model", "detail": "no such model", "accepted": "llama-3.1-8b"}
    >>> row = outcome_row(0, 404, {"detail": "no such model", "type": "/problems/not-in-catalog", "errors": [fault]})
    >>> row["problem"], row["field"], row["accepted"]
    ('not-in-catalog', 'model', 'llama-3.1-8b')
    """
    is_answer = status == 200
    problem = None if is_answer else str(document.get("type", "")).rpartition("/")[2] or None
    faults: Sequence[Mapping[str, Any]] = () if is_answer else document.get("errors", ())
    told = {name: BETWEEN.join(str(fault[own] or "") for fault in faults) or None for name, own in OF_FAULTS.items()}
    answer = dict(flat(document)) if is_answer else {}
    detail = None if is_answer else document.get("detail")
    return {"index": index, "status": status, "detail": detail, "problem": problem, **told, **answer}


def sheet_of(rows: Sequence[Row]) -> str:
    """Return rows as CSV under every column that one of them has."""
    columns = dict.fromkeys(name for row in rows for name in row)
    return table([{name: row.get(name) for name in columns} for row in rows])

"""What became of many questions, as one table: a row each, under the columns that any of them has."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.questions.answers import Row, flat
from service.questions.formats import table


def outcome_row(index: int, status: int, document: Mapping[str, Any]) -> Row:
    """Return the row of one question: its answer flat, or why there is none.

    >>> outcome_row(0, 404, {"detail": "no such model", "errors": []})
    {'index': 0, 'status': 404, 'detail': 'no such model'}
    """
    told = {"detail": document.get("detail")} if status != 200 else {"detail": None, **dict(flat(document))}
    return {"index": index, "status": status, **told}


def sheet_of(rows: Sequence[Row]) -> str:
    """Return rows as CSV under every column that one of them has."""
    columns = dict.fromkeys(name for row in rows for name in row)
    return table([{name: row.get(name) for name in columns} for row in rows])

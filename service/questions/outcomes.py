"""What became of many questions, as one table under the columns that any of them has.

A row each; of an answer that is a list, as `/recommend`'s options and `/compare`'s rows are, a row for each entry.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.questions.answers import Row, flat
from service.questions.formats import table

# Column -> what a fault of a problem calls it.
OF_FAULTS: Final = {"field": "field", "fault": "detail", "accepted": "accepted"}
ANSWERED: Final = 200
LISTS: Final = ("options", "rows")  # of answers that are one
CHECKPOINT: Final = "checkpoint"
BETWEEN: Final = " | "  # faults of one row, in the same order in each of these columns


def outcome_rows(index: int, status: int, document: Mapping[str, Any]) -> Sequence[Row]:
    """Return the rows of one question: its answer flat, or why there is none and which fields are at fault.

    >>> fault = {"field": "model", "detail": "no such model", "accepted": "llama-3.1-8b"}
    >>> document = {"detail": "no such model", "type": "/problems/not-in-catalog", "errors": [fault]}
    >>> (row,) = outcome_rows(0, 404, document)
    >>> row["problem"], row["field"], row["accepted"]
    ('not-in-catalog', 'model', 'llama-3.1-8b')
    >>> answer = {"feasible": True, "options": [{"rank": 1, "gpu": "l40s"}, {"rank": 2, "gpu": "a10"}]}
    >>> [(row["index"], row["rank"], row["gpu"]) for row in outcome_rows(3, 200, answer)]
    [(3, 1, 'l40s'), (3, 2, 'a10')]
    """
    is_answer = status == ANSWERED
    problem = None if is_answer else str(document.get("type", "")).rpartition("/")[2] or None
    faults: Sequence[Mapping[str, Any]] = () if is_answer else document.get("errors", ())
    told = {name: BETWEEN.join(str(fault[own] or "") for fault in faults) or None for name, own in OF_FAULTS.items()}
    detail = None if is_answer else document.get("detail")
    row = {"index": index, "status": status, "detail": detail, "problem": problem, **told}
    return [{**row, **answer} for answer in _answers(document)] if is_answer else [row]


def _answers(document: Mapping[str, Any]) -> Sequence[Row]:
    """Return an answer flat: once, or once for each entry of its list, where that has any."""
    entries: Sequence[Mapping[str, Any]] = next((document[name] for name in LISTS if document.get(name)), ({},))
    whole = {**dict(flat(document)), **_beside(document)}
    return [{**whole, **dict(flat(entry)), **_beside(entry)} for entry in entries]


def _beside(document: Mapping[str, Any]) -> Row:
    """Return what the table of one answer tells of its lists: the checkpoint, and all warnings."""
    told: dict[str, Any] = {}
    if CHECKPOINT not in document and "assumptions" in document:
        notes = (note["value"] for note in document["assumptions"] if note["name"] == CHECKPOINT)
        told[CHECKPOINT] = next(notes, None)
    if "warnings" in document:
        told["warnings"] = "; ".join(document["warnings"])
    return told


def sheet_of(rows: Sequence[Row]) -> str:
    """Return rows as CSV under every column that one of them has."""
    columns = dict.fromkeys(name for row in rows for name in row)
    return table([{name: row.get(name) for name in columns} for row in rows])

"""What `/workloads` takes and shows: bodies, and examples of them."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response

from service.api.media import CSV
from service.catalog.entries import Entry
from service.questions.asked import BESIDE_THE_QUESTION
from service.questions.formats import table
from service.questions.parts.part import check_inside
from service.workloads.workload import ASKED_OF_ONE, LOAD_FROM

MOST_FIELDS: Final = 100
OF_QUESTIONS: Final = {LOAD_FROM, *(name for each in ASKED_OF_ONE for name in each.fields)} - set(BESIDE_THE_QUESTION)
COLUMNS: Final = ("name", "version", "changed_at", "answers")
SHEET: Final = {CSV: {"schema": {"type": "string"}}}
QUESTION = {
    "model": "llama-3.3-70b", "gpu": "h100", "weight_format": "fp8", "tensor_parallel_size": 2,
    "request_rate_per_s": 10, "input_tokens": 2000, "output_tokens": 500, "ttft_s": 2, "tpot_s": 0.05,
}  # fmt: skip
SHOWN = {
    "name": "chat",
    "version": 1,
    "changed_at": "2026-11-22T02:30:00Z",
    "answers": ["size", "replicas"],
    "question": QUESTION,
}

CHANGED = {
    "version": 2,
    "changed_at": "2026-11-22T02:30:00Z",
    "changed_by": "configured key 1f2e3d4c",
    "before": QUESTION,
    "after": {**QUESTION, "request_rate_per_s": 20},
}


class WorkloadBody(Entry):
    """What is kept under a name."""

    question: dict[str, Any] = Field(
        max_length=MOST_FIELDS,
        description="fields of /size, /capacity, /recommend and /replicas; each takes those it knows. In the place of "
        "a load, load_from: {prometheus_url, query, field, cooldown_s, max_age_s, loading_s, loading_bytes_per_s}",
        examples=[QUESTION],
    )

    @model_validator(mode="before")
    @classmethod
    def _inside(cls, body: Any) -> Any:
        """Refuse fields of a question that stand beside it by where they go."""
        check_inside(body, OF_QUESTIONS)
        return body


class WorkloadShown(BaseModel):
    """A workload at one version, which is its ETag."""

    model_config = ConfigDict(frozen=True)

    name: str
    version: int
    changed_at: datetime
    answers: tuple[str, ...] = Field(description="the questions that its fields are enough for")
    question: dict[str, Any]


class WorkloadListing(Entry):
    """How a list of workloads is written."""

    format: Literal["json", "csv"] = Field(default="json", description="csv: every workload, on one sheet")


class WorkloadList(BaseModel):
    """Every workload, by name."""

    model_config = ConfigDict(frozen=True)

    items: tuple[WorkloadShown, ...]


def sheet_of_workloads(items: Iterable[WorkloadShown]) -> Response:
    """Return workloads as CSV, a row each: its fields as they were written, under `question.` and their names."""
    rows = [
        {
            "name": one.name,
            "version": one.version,
            "changed_at": one.changed_at.isoformat(),
            "answers": " ".join(one.answers),
            **{f"question.{name}": _cell(value) for name, value in sorted(one.question.items())},
        }
        for one in items
    ]
    columns = dict.fromkeys((*COLUMNS, *(name for row in rows for name in row)))
    return Response(table([{name: row.get(name) for name in columns} for row in rows], [*columns]), media_type=CSV)


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


class Change(BaseModel):
    """One write: who, when, what stood there before and after."""

    model_config = ConfigDict(frozen=True)

    version: int
    changed_at: datetime
    changed_by: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Changes(BaseModel):
    """The newest changes, newest first."""

    model_config = ConfigDict(frozen=True)

    items: tuple[Change, ...]


class Ended(BaseModel):
    """A workload that was deleted."""

    model_config = ConfigDict(frozen=True)

    name: str
    version: int

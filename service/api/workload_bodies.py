"""What `/workloads` takes and shows: bodies, and examples of them."""

from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from service.catalog.entries import Entry

MOST_FIELDS: Final = 100
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


class WorkloadShown(BaseModel):
    """A workload at one version, which is its ETag."""

    model_config = ConfigDict(frozen=True)

    name: str
    version: int
    changed_at: datetime
    answers: tuple[str, ...] = Field(description="the questions that its fields are enough for")
    question: dict[str, Any]


class WorkloadList(BaseModel):
    """Every workload, by name."""

    model_config = ConfigDict(frozen=True)

    items: tuple[WorkloadShown, ...]


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

"""How the answer is written."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from service.questions.parts.part import Part

Format = Literal["json", "text", "csv", "yaml", "prometheus"]


class Writing(Part):
    """How the answer is written; none of it changes the answer."""

    format: Format = Field(
        default="json",
        description="how the answer is written; where it is not stated, Accept may name text/csv, application/yaml or "
        "text/plain alone",
        examples=["csv"],
    )
    field: Annotated[str, StringConstraints(max_length=100, pattern=r"^[a-z0-9_.]+$")] | None = Field(
        default=None,
        description="one number of the answer as plain text, such as gpus or kv_cache.tokens",
        examples=["gpus"],
    )
    workload: Annotated[str, StringConstraints(max_length=128, pattern=r"^[A-Za-z0-9_.:/-]+$")] | None = Field(
        default=None,
        description="what gauges call this question, in their label workload; default: told apart by what was asked",
        examples=["chat"],
    )

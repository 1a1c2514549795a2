"""What every part shares."""

import pytest
from pydantic import ValidationError, ValidationInfo, field_validator

from service.questions.parts.part import CONTRADICTION, Part, absent, contradiction


class Pair(Part):
    one: int | None = None
    other: int | None = None

    @field_validator("other")
    @classmethod
    def _with_one(cls, value: int | None, info: ValidationInfo) -> int | None:
        if absent(info, "one"):
            raise contradiction("one", "other goes with one", "both")
        return value


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        Pair.model_validate({"on": 1})


def test_a_contradiction_names_its_own_field() -> None:
    with pytest.raises(ValidationError) as refused:
        Pair(other=1)

    (error,) = refused.value.errors()
    assert (error["type"], error["ctx"]["field"], error["ctx"]["accepted"]) == (CONTRADICTION, "one", "both")
    assert error["msg"] == "other goes with one; accepted: both"


def test_a_field_at_fault_is_not_absent() -> None:
    with pytest.raises(ValidationError) as refused:
        Pair.model_validate({"one": "x", "other": 1})

    assert [error["loc"] for error in refused.value.errors()] == [("one",)]
    assert Pair(one=1, other=1).other == 1

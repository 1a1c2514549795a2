"""A model by name or as a pasted config: one of them, and weights only with a config."""

from typing import Any

import pytest
from pydantic import ValidationError

from service.questions.examples import LLAMA_CONFIG
from service.questions.parts.model import NamedModel, PastedModel
from service.questions.refusals import RefusalError
from service.questions.sources import PASTED_ID, Sources


@pytest.mark.parametrize("part", [NamedModel, PastedModel])
@pytest.mark.parametrize("asked", [{}, {"model": None}])
def test_a_model_must_be_stated(part: type[NamedModel], asked: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        part.model_validate(asked)

    (error,) = refused.value.errors()
    assert error["ctx"]["field"] == "model"


def test_a_name_at_fault_is_told_once() -> None:
    with pytest.raises(ValidationError) as refused:
        PastedModel.model_validate({"model": ""})

    assert [error["type"] for error in refused.value.errors()] == ["string_too_short"]


def test_a_config_may_stand_for_a_name(sources: Sources) -> None:
    pasted = PastedModel.model_validate({"model_config": LLAMA_CONFIG, "weight_bytes": 20_000_000_000})
    named = PastedModel.model_validate({"model": "llama-3.1-8b"})

    assert (pasted.model_facts(sources).id, pasted.model_facts(sources).weight_bytes) == (PASTED_ID, 20_000_000_000)
    assert named.model_facts(sources) is NamedModel(model="llama-3.1-8b").model_facts(sources)


@pytest.mark.parametrize(
    ("asked", "field", "accepted"),
    [
        ({"model": "llama-3.1-8b", "model_config": LLAMA_CONFIG}, "model", "model_config"),
        ({"model": "llama-3.1-8b", "weight_bytes": 1}, "weight_bytes", "model_config"),
        ({"model": "llama-3.1-8b", "num_parameters": 1}, "num_parameters", "model_config"),
        ({"model": "llama-9"}, "model", "llama-"),
    ],
)
def test_what_is_ambiguous_or_unknown_is_refused(
    sources: Sources, asked: dict[str, Any], field: str, accepted: str
) -> None:
    with pytest.raises(RefusalError) as refused:
        PastedModel.model_validate(asked).model_facts(sources)

    assert refused.value.faults[0].field == field
    assert accepted in (refused.value.faults[0].accepted or "")

"""How an answer is written: a format, or one field."""

import pytest
from pydantic import ValidationError

from service.questions.parts.writing import Writing


def test_json_is_written_unless_asked_otherwise() -> None:
    assert (Writing().format, Writing().field) == ("json", None)


@pytest.mark.parametrize("asked", [{"format": "xml"}, {"field": "gpus; rm"}, {"field": "x" * 101}])
def test_other_formats_and_paths_are_refused(asked: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Writing.model_validate(asked)

"""A refusal says what was at fault, and what would be accepted."""

import pytest

from service.engine import errors
from service.engine.errors import EngineError, InvalidQuestionError, RefusedStartError, raise_own

REFUSALS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EngineError)]


@pytest.mark.parametrize("kind", REFUSALS)
def test_every_refusal_names_its_field(kind: type[EngineError]) -> None:
    refusal = kind("there are too many", field="model_config.layers", accepted="1 to 4")

    assert (str(refusal), refusal.detail) == ("there are too many", "there are too many")
    assert (refusal.field, refusal.accepted) == ("model_config.layers", "1 to 4")


def test_a_refusal_without_its_field_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="field"):
        EngineError("there are too many")  # type: ignore[call-arg]


def test_a_fault_of_the_question_is_raised_where_nothing_else_was_answered() -> None:
    own, of_gpu = InvalidQuestionError("two at once", field="a"), RefusedStartError("no kernels", field="gpu")

    for refused, asked in (([own], 2), ([of_gpu], 1), ([], 0)):
        raise_own(refused, asked)
    with pytest.raises(InvalidQuestionError, match="two at once"):
        raise_own([of_gpu, own], 2)

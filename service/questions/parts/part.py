"""What every part shares, and how a part refuses fields that do not go together."""

from collections.abc import Container

from pydantic import BaseModel, ConfigDict, ValidationInfo
from pydantic_core import PydanticCustomError

CONTRADICTION = "contradiction"


class Part(BaseModel):
    """Some fields of a question. Unknown fields are refused, so that a misspelt one is never a default.

    A question lists its parts last field first: Pydantic takes the fields of the last base first.
    A rule over several fields belongs to the last of them, so that everything wrong is told at once.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


def contradiction(field: str, sentence: str, accepted: str) -> PydanticCustomError:
    """Return the refusal of fields that do not go together; `field` is the one to look at first."""
    context = {"field": field, "sentence": sentence, "accepted": accepted}
    return PydanticCustomError(CONTRADICTION, "{sentence}; accepted: {accepted}", context)


def check_inside(body: object, names: Container[str]) -> None:
    """Refuse fields of a question that stand beside `question` by where they go.

    Raises:
        PydanticCustomError: a body has some.
    """
    beside = [name for name in body if name in names] if isinstance(body, dict) else []
    if beside:
        sentence = f"{', '.join(beside)} belong{'s' if len(beside) == 1 else ''} inside `question`"
        raise contradiction(beside[0], sentence, f'{{"question": {{"{beside[0]}": ..., ...}}}}')


def absent(info: ValidationInfo, field: str) -> bool:
    """Return whether an earlier field was not stated; one that is itself at fault was."""
    return field in info.data and info.data[field] is None

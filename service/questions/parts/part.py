"""What every part shares, and how a part refuses fields that do not go together."""

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


def absent(info: ValidationInfo, field: str) -> bool:
    """Return whether an earlier field was not stated; one that is itself at fault was."""
    return field in info.data and info.data[field] is None

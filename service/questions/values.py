"""Kinds of values in questions: their ranges, and how a query string or a body may write them."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticKnownError

from service.engine.inputs import KvCacheDtype, ProductLine, Tier, WeightFormat

MAX_TOKENS = 100_000_000
MAX_REQUESTS = 10_000_000
MAX_REQUESTS_PER_S = 1e6
# One request in 29 days, where simulated times still hold eight digits. A clock that runs to thousands of far longer
# gaps has no digits left for the milliseconds of a step, and times come out wrong.
MIN_REQUESTS_PER_S = 4e-7


def _plainly(kind: Literal["int", "float"]) -> BeforeValidator:
    """Return a check that refuses what Python takes for a number and a caller hardly means: true, and 1_000."""

    def written_plainly(value: object) -> object:
        if isinstance(value, bool):
            raise PydanticKnownError("int_type" if kind == "int" else "float_type")
        if isinstance(value, str) and "_" in value:
            raise PydanticKnownError("int_parsing" if kind == "int" else "float_parsing")
        return value

    return BeforeValidator(written_plainly)


def _choice(value: object) -> object:
    """Accept a number of a list of choices as a query string writes it; a boolean is none of them."""
    if isinstance(value, bool):
        return str(value)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


def _names(value: object) -> object:
    """Accept lists as lists, repeated query parameters, or one text with commas; a blank name stays, to be refused."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return [piece.strip() for part in value for piece in part.split(",")]
    return value


def several(value: object) -> object:
    """Accept a list as `_names` does, or its only value."""
    return _names(value) if isinstance(value, str | list) else [value]


WHOLE = _plainly("int")
NUMBER = _plainly("float")
Text = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", strip_whitespace=True)
]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS), WHOLE]
Requests = Annotated[int, Field(ge=1, le=MAX_REQUESTS), WHOLE]
RequestsPerS = Annotated[float, Field(ge=MIN_REQUESTS_PER_S, le=MAX_REQUESTS_PER_S, allow_inf_nan=False), NUMBER]
Bytes = Annotated[int, Field(ge=1, le=1 << 50), WHOLE]
Gpus = Annotated[int, Field(ge=1, le=100_000), WHOLE]
Parallel = Annotated[int, Field(ge=1, le=1024), WHOLE]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False), NUMBER]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), NUMBER]
BlockSize = Annotated[Literal[1, 2, 4, 8, 16, 32, 64, 128, 256], BeforeValidator(_choice)]
LoraRank = Annotated[Literal[1, 8, 16, 32, 64, 128, 256, 320, 512], BeforeValidator(_choice)]
Texts = Annotated[list[Text], Field(max_length=200), BeforeValidator(_names)]
Formats = Annotated[list[WeightFormat], Field(max_length=7), BeforeValidator(_names)]
ProductLines = Annotated[list[ProductLine], Field(max_length=3), BeforeValidator(_names)]
Tiers = Annotated[list[Tier], Field(max_length=2), BeforeValidator(_names)]
CacheDtypes = Annotated[list[KvCacheDtype], Field(max_length=4), BeforeValidator(_names)]

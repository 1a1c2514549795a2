"""Pages of a list: what is on one, and the token that asks for the next."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Annotated, Final, Protocol, TypeVar

from pydantic import BaseModel, Field

from service.questions.refusals import Fault, RefusalError

NONE_OF_OURS: Final = "no token of this list"
ACCEPTED: Final = "`next_page_token` of the page before, or nothing for the first page"


class Named(Protocol):
    """An entry of a list."""

    @property
    def id(self) -> str:
        """Return what entries are in the order of."""


Entry = TypeVar("Entry", bound=Named)


class Paged(BaseModel):
    """Which page of a list."""

    page_size: Annotated[int, Field(ge=1, le=500, description="entries of one page [count]")] = 100
    page_token: Annotated[str, Field(max_length=400)] | None = Field(
        default=None, description="`next_page_token` of the page before; without it, or empty, the first page"
    )


def one_page(entries: Sequence[Entry], of: str, asked: Paged) -> tuple[tuple[Entry, ...], str | None]:
    """Return a page of the entries of a list, and the token of the next; None where this is the last.

    Raises:
        RefusalError: the token is not one of this list.
    """
    after = _entry_id(of, asked.page_token) if asked.page_token else None
    rest = entries if after is None else [entry for entry in entries if entry.id > after]
    page = tuple(rest[: asked.page_size])
    return page, _token(of, page[-1].id) if len(rest) > asked.page_size else None


def _token(of: str, entry_id: str) -> str:
    """Return the token of the page after an entry, which may be gone by the time that page is asked for.

    >>> _token("gpus", "h100-sxm-80gb"), _entry_id("gpus", "Z3B1czpoMTAwLXN4bS04MGdi")
    ('Z3B1czpoMTAwLXN4bS04MGdi', 'h100-sxm-80gb')
    """
    return urlsafe_b64encode(f"{of}:{entry_id}".encode()).decode().rstrip("=")


def _entry_id(of: str, token: str) -> str:
    try:
        read = urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    except ValueError:
        read = ""
    list_name, _, entry_id = read.partition(":")
    if list_name != of or _token(of, entry_id) != token:
        raise RefusalError("invalid-request", NONE_OF_OURS, Fault("page_token", NONE_OF_OURS, ACCEPTED))
    return entry_id

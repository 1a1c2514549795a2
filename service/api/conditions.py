"""Writes that say what they saw: nobody's change is lost unseen by whoever states its tag.

RFC 9110, section 13.1: a write is not made unless `If-Match` names what is there, by strong comparison, and not where
`If-None-Match: *` asks for an entry that is new. Who states neither writes whatever is there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Header
from sqlmodel import Session

from service.api.etags import tag_of
from service.api.problems import FieldProblem, ProblemError
from service.catalog.reading import EntryKind, Kept, read_entry

ANY: Final = "*"
Stated = Annotated[str | None, Header(max_length=1000, description="the entry that was seen, as the ETag of GET, or *")]
IsNew = Annotated[str | None, Header(max_length=100, description="*: only where there is none yet")]
Change = Callable[[Session], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a write asks of the entry it changes."""

    tags: frozenset[str] | None  # one of which it has, * for any; None: nothing is asked
    is_new: bool  # there is none yet

    def held(self, kind: EntryKind[Kept], entry_id: str, change: Change) -> Change:
        """Return a change that is made only where the entry is what was asked for; it may refuse in words of its own.

        Raises:
            ProblemError: when it is made, and the entry is another one.
        """
        if self.tags is None and not self.is_new:
            return change

        def checked(session: Session) -> None:
            now = read_entry(session, kind, entry_id)
            change(session)
            self._check(None if now is None else tag_of(now.model_dump_json().encode()))

        return checked

    def _check(self, tag: str | None) -> None:
        if self.is_new and tag is not None:
            raise _other("if-none-match", "there is such an entry already", tag)
        if self.tags is not None and (tag is None or self.tags.isdisjoint({tag, ANY})):
            detail = "there is no such entry" if tag is None else "the entry is another one by now"
            raise _other("if-match", detail, tag)


def _other(header: str, detail: str, tag: str | None) -> ProblemError:
    headers = {} if tag is None else {"ETag": tag}
    told, met = f"{detail}; nothing was written", "If-None-Match: *" if tag is None else f"If-Match: {tag}"
    return ProblemError(412, "other-version", told, [FieldProblem(field=header, detail=told, accepted=met)], headers)


async def stated(if_match: Stated = None, if_none_match: IsNew = None) -> Condition:
    """Return what the headers ask for.

    Raises:
        ProblemError: a write cannot be asked for what is stated.
    """
    if if_none_match is not None and if_none_match.strip() != ANY:
        detail = "If-None-Match on a write: * alone is understood"
        fault = FieldProblem(field="if-none-match", detail=detail, accepted=f"{ANY}, or If-Match with the tag of GET")
        raise ProblemError(400, "bad-request", detail, [fault])
    tags = None if if_match is None else frozenset(tag.strip() for tag in if_match.split(","))
    return Condition(tags=tags, is_new=if_none_match is not None)


async def seen(if_match: Stated = None) -> Condition:
    """Return what the headers of a deletion ask for."""
    return await stated(if_match)


ConditionDep = Annotated[Condition, Depends(stated)]
SeenDep = Annotated[Condition, Depends(seen)]

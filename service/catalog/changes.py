"""Who changed which entry of the catalog: a row for each, written with the change or not at all."""

import getpass
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from json import JSONDecodeError
from typing import Any

from pydantic import BaseModel
from sqlmodel import Session, col, select

from service.catalog.errors import InvalidCatalogError
from service.catalog.reading import GPUS, OFFERS, EntryKind, read_entry
from service.catalog.store import current_version, delete_gpu, delete_offer
from service.catalog.tables import CatalogChangeRow, OfferRow

Change = Callable[[Session], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One entry that was written among many."""

    kind: str
    entry_id: str
    before: BaseModel | None
    after: BaseModel


def note_written(session: Session, who: str, written: Iterable[Written]) -> None:
    """Keep who wrote many entries at once, under the revision that has them all."""
    revision, now = current_version(session)[1], datetime.now(UTC)
    session.add_all(
        CatalogChangeRow(
            revision=revision,
            kind=each.kind,
            entry_id=each.entry_id,
            changed_at=now,
            changed_by=who[:200],
            before=None if each.before is None else each.before.model_dump(mode="json"),
            after=each.after.model_dump(mode="json"),
        )
        for each in written
    )
    session.flush()


def of_command_line() -> str:
    """Return who types the commands: by name, by number where the machine knows no name."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = f"user {os.getuid()}"
    return f"command line of {name}"


def recorded(kind: EntryKind[Any], entry_id: str, who: str, change: Change) -> Change:
    """Return a change to one entry that keeps who made it, when, and what stood there before and after.

    Raises:
        InvalidCatalogError: when it is made, and its row holds what no statement can read, so that none replaces it.
    """

    def made(session: Session) -> None:
        before = _document(session, kind, entry_id)
        try:
            change(session)
        except JSONDecodeError as error:
            why = f"a column of the {kind.name} {entry_id!r} in the database is no JSON; mend or delete the row there"
            raise InvalidCatalogError(why) from error
        session.expire_all()
        row = CatalogChangeRow(
            revision=current_version(session)[1],
            kind=kind.name,
            entry_id=entry_id,
            changed_at=datetime.now(UTC),
            changed_by=who[:200],
            before=before,
            after=_document(session, kind, entry_id),
        )
        session.add(row)
        session.flush()

    return made


def gpu_deletion(gpu_id: str, who: str) -> Change:
    """Return the deletion of a GPU that keeps who made it, for each of the offers that go with it, too."""

    def made(session: Session) -> None:
        for offer_id in session.exec(select(OfferRow.id).where(OfferRow.gpu_id == gpu_id)).all():
            recorded(OFFERS, offer_id, who, partial(delete_offer, offer_id=offer_id))(session)
        recorded(GPUS, gpu_id, who, partial(delete_gpu, gpu_id=gpu_id))(session)

    return made


def _document(session: Session, kind: EntryKind[Any], entry_id: str) -> dict[str, Any] | None:
    """Return an entry as it stands; what makes no sense, which a write may mend, is told as that."""
    try:
        entry = read_entry(session, kind, entry_id)
    except InvalidCatalogError as error:
        return {"id": entry_id, "unreadable": str(error)}
    return None if entry is None else dict(entry.model_dump(mode="json"))


def read_changes(
    session: Session, kind: str | None, entry_id: str | None, most: int, before_number: int | None
) -> tuple[CatalogChangeRow, ...]:
    """Return the newest changes of one entry, of a kind, or of all; the newest first, those before a number."""
    wanted = select(CatalogChangeRow)
    if kind is not None:
        wanted = wanted.where(CatalogChangeRow.kind == kind)
    if entry_id is not None:
        wanted = wanted.where(CatalogChangeRow.entry_id == entry_id)
    if before_number is not None:
        wanted = wanted.where(col(CatalogChangeRow.number) < before_number)
    return tuple(session.exec(wanted.order_by(col(CatalogChangeRow.number).desc()).limit(most)).all())

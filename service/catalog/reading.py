"""Reads the catalog out of the database: what did not change since the last time is neither parsed nor built again."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError
from sqlalchemy import JSON, Select, Table, Text, cast, type_coerce
from sqlalchemy import select as sql_select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import selectinload
from sqlalchemy.types import NullType
from sqlmodel import Session, col, select

from service.catalog.catalog_entries import CatalogEntries, TakenOut
from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry
from service.catalog.errors import InvalidCatalogError
from service.catalog.faults import told
from service.catalog.measurement_rows import MeasurementEntry
from service.catalog.store import Version, current_version
from service.catalog.tables import CatalogChangeRow, GpuRow, MeasurementRow, ModelRow, OfferRow, metadata

logger = logging.getLogger(__name__)
Kept = TypeVar("Kept", ModelEntry, GpuEntry, OfferEntry, MeasurementEntry)
Row = type[ModelRow] | type[GpuRow] | type[OfferRow] | type[MeasurementRow]
Marks = Mapping[str, str]  # by id: a hash of all the rows that make up an entry, in every process the same
MOST_AT_ONCE: Final = 500  # ids that every database takes in one statement


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A table with rows of entries: in which column their id stands, and whose rows they are."""

    table: Table
    owner: str
    kind: str | None = None  # which of those that share the table


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryKind(Generic[Kept]):
    """Where entries of one kind lie."""

    name: str
    row: Row
    entry: type[Kept]
    parts: tuple[_Part, ...]  # its own row first
    loaded: tuple[Any, ...] = ()  # relationships to read along


TABLES: Final = metadata.tables
MODELS: Final = EntryKind(
    name="model",
    row=ModelRow,
    entry=ModelEntry,
    parts=(
        _Part(table=TABLES["models"], owner="id"),
        _Part(table=TABLES["checkpoints"], owner="model_id"),
        _Part(table=TABLES["aliases"], owner="target_id", kind="model"),
    ),
    loaded=(ModelRow.checkpoint_rows, ModelRow.alias_rows),
)
GPUS: Final = EntryKind(
    name="gpu",
    row=GpuRow,
    entry=GpuEntry,
    parts=(
        _Part(table=TABLES["gpus"], owner="id"),
        _Part(table=TABLES["aliases"], owner="target_id", kind="gpu"),
    ),
    loaded=(GpuRow.alias_rows,),
)
OFFERS: Final = EntryKind(
    name="offer", row=OfferRow, entry=OfferEntry, parts=(_Part(table=TABLES["offers"], owner="id"),)
)
MEASUREMENTS: Final = EntryKind(
    name="measurement",
    row=MeasurementRow,
    entry=MeasurementEntry,
    parts=(_Part(table=TABLES["measurements"], owner="id"),),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """The catalog as one look at the database found it."""

    version: Version
    entries: CatalogEntries
    marks: Mapping[str, Marks]  # by kind of entry


def read_catalog(session: Session, before: Reading | None = None) -> Reading:
    """Return the whole catalog; entries whose rows are as they were before are the same objects.

    Raises:
        InvalidCatalogError: a row makes no sense; the message names it.
    """
    version = current_version(session)
    marks = {kind.name: _marks(session, kind) for kind in (MODELS, GPUS, OFFERS, MEASUREMENTS)}
    kept = before.entries if before else CatalogEntries(revision=0, models=(), gpus=(), offers=())
    were = before.marks if before else {}
    entries = CatalogEntries(
        revision=version[1],
        models=_entries(session, MODELS, marks, kept.models, were),
        gpus=_entries(session, GPUS, marks, kept.gpus, were),
        offers=_entries(session, OFFERS, marks, kept.offers, were),
        measurements=_entries(session, MEASUREMENTS, marks, kept.measurements, were),
        taken_out=_taken_out(session, kept.taken_out if before and before.version[0] == version[0] else (), marks),
    )
    return Reading(version=version, entries=entries, marks=marks)


def _taken_out(session: Session, known: Sequence[TakenOut], there: Mapping[str, Marks]) -> tuple[TakenOut, ...]:
    """Return what was deleted and is not there again, from the changes since the last that is known."""
    last = max((each.number for each in known), default=0)
    deletions = select(
        CatalogChangeRow.number, CatalogChangeRow.kind, CatalogChangeRow.entry_id, CatalogChangeRow.before
    )
    deletions = deletions.where(
        col(CatalogChangeRow.after).is_(None),
        col(CatalogChangeRow.kind).in_((GPUS.name, MODELS.name)),
        col(CatalogChangeRow.number) > last,
    )
    rows = session.exec(deletions.order_by(col(CatalogChangeRow.number))).all()
    new = (
        TakenOut.model_validate({"number": number, "kind": kind, "id": entry_id, "names": _names(entry_id, before)})
        for number, kind, entry_id, before in rows
    )
    return tuple(each for each in (*known, *new) if each.id not in there[each.kind])


def _names(entry_id: str, entry: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return everything that an entry was called, as far as it could be read."""
    stated = entry or {}
    stored = (checkpoint.get("hf_id") for checkpoint in stated.get("checkpoints") or ())
    names = (entry_id, stated.get("name"), stated.get("hf_id"), *(stated.get("aliases") or ()), *stored)
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def _marks(session: Session, kind: EntryKind[Any]) -> Marks:
    """Return what tells whether an entry changed, from the rows as they are stored, whoever wrote them."""
    gathered: dict[str, list[bytes]] = {}
    for position, part in enumerate(kind.parts):
        for row in session.connection().execute(_as_stored(part)):
            if position == 0 or row[0] in gathered:
                gathered.setdefault(row[0], []).append(repr(tuple(row)).encode())
    return {
        entry_id: blake2b(b"\n".join(sorted(rows)), digest_size=16).hexdigest() for entry_id, rows in gathered.items()
    }


def _as_stored(part: _Part) -> Select[Any]:
    """Return a query for a part's rows in which nothing is parsed."""
    columns = part.table.columns
    stored = [
        cast(column, Text) if isinstance(column.type, JSON) else type_coerce(column, NullType()) for column in columns
    ]
    statement = sql_select(columns[part.owner], *stored)
    return statement if part.kind is None else statement.where(columns["kind"] == part.kind)


def _entries(
    session: Session,
    kind: EntryKind[Kept],
    stored: Mapping[str, Marks],
    kept: Sequence[Kept],
    were: Mapping[str, Marks],
) -> tuple[Kept, ...]:
    """Return the entries in the order of ids, as Python orders text: databases differ."""
    marks, before = stored[kind.name], were.get(kind.name, {})
    entries = {entry.id: entry for entry in kept if entry.id in marks and before.get(entry.id) == marks[entry.id]}
    changed = sorted(marks.keys() - entries.keys())
    for first in range(0, len(changed), MOST_AT_ONCE):
        entries.update(_validated(session, kind, changed[first : first + MOST_AT_ONCE]))
    return tuple(entries[entry_id] for entry_id in sorted(marks))


def read_entry(session: Session, kind: EntryKind[Kept], entry_id: str) -> Kept | None:
    """Return one entry as the database has it now; None where there is none.

    Raises:
        InvalidCatalogError: its row makes no sense.
    """
    return _validated(session, kind, (entry_id,)).get(entry_id)


def _validated(session: Session, kind: EntryKind[Kept], ids: Sequence[str]) -> dict[str, Kept]:
    try:
        return {row.id: kind.entry.model_validate(row) for row in _rows(session, kind, ids)}
    except SQLAlchemyError:
        raise
    except Exception as error:
        if len(ids) > 1:  # whichever half holds the culprit says so
            middle = len(ids) // 2
            return {**_validated(session, kind, ids[:middle]), **_validated(session, kind, ids[middle:])}
        raise InvalidCatalogError(
            f"the {kind.name} {ids[0]!r} in the database makes no sense: {_why(error)}"
        ) from error


def _rows(session: Session, kind: EntryKind[Any], ids: Sequence[str]) -> Sequence[Any]:
    statement = select(kind.row).where(col(kind.row.id).in_(ids))
    return session.exec(statement.options(*(selectinload(part) for part in kind.loaded))).all()


def _why(error: Exception) -> str:
    """Return what is wrong with a row in a few words, which may be shown."""
    if isinstance(error, ValidationError):
        return told(error)[0]
    logger.warning("a column cannot be read", exc_info=error)
    return "a column cannot be read"

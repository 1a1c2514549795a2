"""What callers measured, as the catalog keeps it: the figures of a text with their lines, never the text."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints
from sqlalchemy import func
from sqlmodel import Session, col, select

from service.catalog.entries import CatalogId, Entry, Words
from service.catalog.errors import ConflictError, NotInCatalogError
from service.catalog.tables import MeasurementChangeRow, MeasurementRow

MOST_MEASUREMENTS = 1_000
MOST_MEASURED = 1e18  # of any figure, in its unit
Kind = Literal["start-up log", "benchmark"]
Setting = str | int | float | bool


def _in_utc(time: datetime) -> datetime:
    """Return a time with its zone; SQLite keeps none."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)


class MeasuredFigure(Entry):
    """One figure of a text. [bytes, s, 1/s, tokens]."""

    value: Annotated[float, Field(ge=0, le=MOST_MEASURED, allow_inf_nan=False)]
    line: Annotated[int, Field(ge=1)]


class MeasurementEntry(Entry):
    """One text that somebody measured: whose it was, what it was asked as, what it says."""

    id: CatalogId
    what: Annotated[Words, StringConstraints(min_length=1, max_length=100)]
    kind: Kind
    model: CatalogId
    gpu: CatalogId
    question: dict[str, Setting]  # to /capacity, whose answer it corrects
    figures: dict[str, MeasuredFigure]
    stored_at: Annotated[datetime, AfterValidator(_in_utc)]


def by_model(entries: Iterable[MeasurementEntry]) -> Mapping[str, tuple[MeasurementEntry, ...]]:
    """Return measurements by their model."""
    ordered = sorted(entries, key=lambda entry: (entry.model, entry.id))
    return {model: tuple(group) for model, group in groupby(ordered, key=lambda entry: entry.model)}


def put_measurement(session: Session, entry: MeasurementEntry, who: str) -> None:
    """Keep a measurement, and who brought it.

    Raises:
        ConflictError: there is no room for another.
    """
    if session.exec(select(func.count()).select_from(MeasurementRow)).one() >= MOST_MEASUREMENTS:
        detail = f"there are {MOST_MEASUREMENTS} measurements already; delete one first"
        raise ConflictError(detail, "store", "false, or true after DELETE /measurements/{id} of one")
    columns = entry.model_dump(mode="json", exclude={"stored_at"})
    session.merge(MeasurementRow(**columns, stored_at=entry.stored_at))
    session.add(_change(session, entry.id, who, None, columns))
    session.flush()


def delete_measurement(session: Session, measurement_id: str, who: str) -> None:
    """Delete a measurement; who did is kept.

    Raises:
        NotInCatalogError: there is none.
    """
    row = session.get(MeasurementRow, measurement_id)
    if row is None:
        raise NotInCatalogError("measurement", measurement_id, ())
    before = MeasurementEntry.model_validate(row).model_dump(mode="json", exclude={"stored_at"})
    session.add(_change(session, measurement_id, who, before, None))
    session.delete(row)
    session.flush()


def read_changes(session: Session, measurement_id: str, most: int) -> tuple[MeasurementChangeRow, ...]:
    """Return who stored and who deleted a measurement, the newest first."""
    wanted = select(MeasurementChangeRow).where(MeasurementChangeRow.measurement == measurement_id)
    return tuple(session.exec(wanted.order_by(col(MeasurementChangeRow.number).desc()).limit(most)).all())


def _change(
    session: Session, measurement_id: str, who: str, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> MeasurementChangeRow:
    last = select(func.max(MeasurementChangeRow.number)).where(MeasurementChangeRow.measurement == measurement_id)
    return MeasurementChangeRow(
        measurement=measurement_id,
        number=1 + (session.exec(last).one() or 0),
        changed_at=datetime.now(UTC),
        changed_by=who[:200],
        before=before,
        after=after,
    )

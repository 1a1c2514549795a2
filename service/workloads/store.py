"""Reads and writes workloads. Whoever writes holds the row, states the version it saw, and leaves a change behind."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, col, select

from service.workloads.errors import ExistsError, NoWorkloadError, OtherVersionError, TooManyError, UnconditionalError
from service.workloads.tables import WorkloadChangeRow, WorkloadRow
from service.workloads.workload import Workload

MOST_WORKLOADS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What must hold for a write: one of the versions that were seen (If-Match), any, or that there is none yet."""

    tags: frozenset[str] | None = None  # one of which it has, * for any; None: nothing is asked
    is_new: bool = False

    def check(self, row: WorkloadRow | None) -> None:
        """Hold a row to it.

        Raises:
            OtherVersionError: it is at another version, or not there.
            ExistsError: it is there already.
            UnconditionalError: nothing was stated, and somebody's version would be lost unseen.
        """
        if self.is_new and row is not None:
            raise ExistsError(row.version)
        if self.tags is not None and row is None:
            raise OtherVersionError(None)
        if self.tags is not None and row is not None and self.tags.isdisjoint({f'"{row.version}"', "*"}):
            raise OtherVersionError(row.version)
        if row is not None and self.tags is None:
            raise UnconditionalError(row.version)


def read_workloads(session: Session) -> Mapping[str, Workload]:
    """Return every workload by its name."""
    rows = session.exec(select(WorkloadRow).order_by(col(WorkloadRow.name))).all()
    return {row.name: _workload(row) for row in rows}


def read_changes(session: Session, name: str, most: int, before_version: int | None) -> tuple[WorkloadChangeRow, ...]:
    """Return the newest changes of a workload, newest first, those before a version."""
    wanted = select(WorkloadChangeRow).where(WorkloadChangeRow.workload == name)
    if before_version is not None:
        wanted = wanted.where(col(WorkloadChangeRow.version) < before_version)
    return tuple(session.exec(wanted.order_by(col(WorkloadChangeRow.version).desc()).limit(most)).all())


def put_workload(
    session: Session, name: str, question: Mapping[str, Any], who: str, condition: Condition
) -> tuple[Workload, bool]:
    """Write a workload, and return it with whether it is new. A name that was deleted counts on from there.

    Raises:
        OtherVersionError, ExistsError, UnconditionalError: the condition does not hold; nothing was written.
        TooManyError: there is no room for another.
    """
    row = _held(session, name)
    condition.check(row)
    now, before = datetime.now(UTC), None if row is None else dict(row.question)
    version = 1 + (_last_version(session, name) if row is None else row.version)
    if row is None:
        if session.exec(select(func.count()).select_from(WorkloadRow)).one() >= MOST_WORKLOADS:
            raise TooManyError(MOST_WORKLOADS)
        session.add(WorkloadRow(name=name, version=version, question=dict(question), changed_at=now))
    else:
        row.version, row.question, row.changed_at = version, dict(question), now
    session.add(_change(name, version, now, who, before, dict(question)))
    session.flush()
    return Workload(name=name, version=version, question=question, changed_at=now), before is None


def delete_workload(session: Session, name: str, who: str, condition: Condition) -> int:
    """Delete a workload, and return the version of its end.

    Raises:
        NoWorkloadError: there is none.
        OtherVersionError, UnconditionalError: the condition does not hold; nothing was deleted.
    """
    row = _held(session, name)
    if row is None and condition == Condition():
        raise NoWorkloadError(name, ())
    condition.check(row)
    if row is None:
        raise NoWorkloadError(name, ())
    version = row.version + 1
    session.add(_change(name, version, datetime.now(UTC), who, dict(row.question), None))
    session.delete(row)
    session.flush()
    return version


def _held(session: Session, name: str) -> WorkloadRow | None:
    """Return a row that no other writer sees until this one is done; SQLite has one writer at a time anyway."""
    return session.get(WorkloadRow, name, with_for_update=True)


def _last_version(session: Session, name: str) -> int:
    wanted = select(func.max(WorkloadChangeRow.version)).where(WorkloadChangeRow.workload == name)
    return session.exec(wanted).one() or 0


def _change(
    name: str, version: int, now: datetime, who: str, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> WorkloadChangeRow:
    return WorkloadChangeRow(
        workload=name, version=version, changed_at=now, changed_by=who[:200], before=before, after=after
    )


def _workload(row: WorkloadRow) -> Workload:
    return Workload(name=row.name, version=row.version, question=row.question, changed_at=in_utc(row.changed_at))


def in_utc(time: datetime) -> datetime:
    """Return a time of the database with its zone; SQLite keeps none."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)

"""Rows at hand: read from the database at most once a second, in a lane of their own, and kept while it is away."""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError
from sqlmodel import Session

from service.api.lanes import FullError, Lane
from service.api.problems import ProblemError
from service.api.writes import ANSWER_S, IN_DOUBT, MOST_WAITING, NOTHING_WRITTEN, RETRY
from service.catalog.database import reading, writing
from service.catalog.deadline import DeadlineError, check_deadline

Rows = TypeVar("Rows")
Result = TypeVar("Result")
FRESH_S: Final = 1.0
LOOK_S: Final = 0.9  # an autoscaler that reads workloads waits three seconds in all
UNREAD: Final = "the database does not answer, and was not read before"
AWAY: Final = (SQLAlchemyError, DeadlineError, TimeoutError, FullError)


class RowsFile(Protocol[Rows]):
    """Where rows outlive the process."""

    def read(self) -> Rows | None:
        """Return what was written last."""

    def write(self, rows: Rows, /) -> None:
        """Keep rows."""


class Shelf(Generic[Rows]):
    """What the database last said; it may go away, and this stays."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        read: Callable[[Session], Rows],
        write_s: float,
        file: RowsFile[Rows] | None = None,
    ) -> None:
        """Start with nothing read.

        Args:
            name: of the threads.
            engine: whose rows.
            read: what is read of them, whole.
            write_s: by when a writer is promised an answer. [s]
            file: where rows are kept for a start without a database; None: nowhere.
        """
        self._engine, self._read, self._file = engine, read, file
        self._rows: Rows | None = None
        self._read_at = float("-inf")
        self._num_writes = 0
        self._lock = Lock()
        self._looks = Lane(f"{name}-look", width=1, waiting=MOST_WAITING, patience_s=LOOK_S)
        self._writes = Lane(f"{name}-write", width=1, waiting=MOST_WAITING, patience_s=write_s - ANSWER_S)

    async def rows(self, fresh_s: float = FRESH_S) -> Rows:
        """Return the rows, at most so old while the database answers.

        Args:
            fresh_s: how old they may be. [s]

        Raises:
            ProblemError: it does not answer, and never did.
        """
        since = monotonic() - fresh_s
        if self._read_at <= since:
            try:
                await self._looks.run(lambda: self._refresh(since))
            except AWAY as error:
                if self._rows is None and self._file is not None:
                    self._rows = self._file.read()
                if self._rows is None:
                    raise ProblemError(503, "database-unavailable", UNREAD, headers=RETRY) from error
        if self._rows is None:
            raise ProblemError(503, "database-unavailable", UNREAD, headers=RETRY)
        return self._rows

    def _refresh(self, since: float) -> None:
        if self._read_at > since:  # somebody read it while this one waited
            return
        began_at, num_writes = monotonic(), self._num_writes
        with reading(self._engine) as session:
            rows = self._read(session)
        is_new = rows != self._rows
        with self._lock:
            self._rows = rows
            self._read_at = began_at if num_writes == self._num_writes else float("-inf")
        if is_new and self._file is not None:
            self._file.write(rows)

    async def look(self, read: Callable[[Session], Result]) -> Result:
        """Return what a reading session returns.

        Raises:
            ProblemError: the database does not answer.
        """

        def looked() -> Result:
            with reading(self._engine) as session:
                return read(session)

        try:
            return await self._looks.run(looked)
        except AWAY as error:
            raise ProblemError(503, "database-unavailable", "the database does not answer", headers=RETRY) from error

    async def write(self, change: Callable[[Session], Result]) -> Result:
        """Make a change in one transaction; the next look sees it.

        Raises:
            ProblemError: it could not be made.
        """
        try:
            return await self._writes.run(lambda: self._written(change))
        except FullError as error:
            detail = "too many writes wait already; nothing was written"
            raise ProblemError(503, "busy", detail, headers=RETRY) from error
        except TimeoutError as error:
            raise ProblemError(503, "database-unavailable", IN_DOUBT, headers=RETRY) from error
        except IntegrityError as error:
            raise ProblemError(412, "other-version", "another write came in between; nothing was written") from error
        except DataError as error:
            raise ProblemError(422, "invalid-request", "the database cannot hold one of the values") from error
        except (SQLAlchemyError, DeadlineError) as error:
            raise ProblemError(503, "database-unavailable", NOTHING_WRITTEN, headers=RETRY) from error

    def _written(self, change: Callable[[Session], Result]) -> Result:
        try:
            with writing(self._engine) as session:
                result: Any = change(session)
                check_deadline()
                session.commit()
        finally:
            with self._lock:
                self._num_writes += 1
                self._read_at = float("-inf")
        kept: Result = result
        return kept

    def close(self) -> None:
        """Begin nothing more."""
        self._looks.close(at_once=True)
        self._writes.close()

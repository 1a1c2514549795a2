"""Writes to the catalog: in a lane of their own, and every way in which they fail, in words."""

from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError
from sqlmodel import Session

from service.api.lanes import FullError, Lane
from service.api.problems import FieldProblem, ProblemError
from service.catalog.deadline import DeadlineError
from service.catalog.errors import InDoubtError, InvalidCatalogError
from service.catalog.keeper import CatalogKeeper
from service.catalog.snapshot import Snapshot

Result = TypeVar("Result")
ANSWER_S: Final = 0.1  # left for the way back
MOST_WAITING: Final = 63
RETRY: Final = {"Retry-After": "2"}
NOTHING_WRITTEN: Final = "the catalog database does not answer; nothing was written, and answers are not affected"
IN_DOUBT: Final = "the catalog database did not confirm the write in time; sending it again does no harm"


class CatalogWriter:
    """Makes changes to the catalog, one after the other, as the database would anyway."""

    def __init__(self, keeper: CatalogKeeper, within_s: float) -> None:
        """Keep whose catalog, and by when callers are promised an answer, whatever the database does."""
        self._keeper = keeper
        self.lane = Lane("write", width=1, waiting=MOST_WAITING, patience_s=within_s - ANSWER_S)

    async def make(
        self, change: Callable[[Session], Result], check: Callable[[Snapshot], object] = lambda _: None
    ) -> tuple[Result, int]:
        """Make a change, and return its result and the revision that has it.

        Raises:
            ProblemError: it could not be made; a database that is away, stopped, locked or busy is a quick 503.
        """
        try:
            return await self.lane.run(lambda: self._keeper.write(change, check))
        except FullError as error:
            detail = "too many writes wait already; nothing was written"
            raise ProblemError(503, "busy", detail, headers=RETRY) from error
        except TimeoutError as error:
            self._keeper.note_silence()
            raise ProblemError(503, "database-unavailable", IN_DOUBT, headers=RETRY) from error
        except (SQLAlchemyError, DeadlineError, InDoubtError, InvalidCatalogError) as error:
            _refuse(error)


def _refuse(error: Exception) -> NoReturn:
    match error:
        case InvalidCatalogError():
            raise _conflict(str(error), "one with which the catalog holds together") from error
        case DataError():  # what no check foresaw, and the database cannot hold
            raise ProblemError(422, "invalid-request", "the database cannot hold one of the values") from error
        case IntegrityError():
            detail = "another write came in between, or the values contradict each other; nothing was written"
            raise _conflict(detail, "the same again, if what others wrote leaves room for it") from error
        case InDoubtError():
            raise ProblemError(503, "database-unavailable", IN_DOUBT, headers=RETRY) from error
        case _:
            raise ProblemError(503, "database-unavailable", NOTHING_WRITTEN, headers=RETRY) from error


def _conflict(detail: str, accepted: str) -> ProblemError:
    """Return that an entry contradicts what the database holds, of which no field of the request need be at fault."""
    return ProblemError(409, "conflict", detail, [FieldProblem(field="entry", detail=detail, accepted=accepted)])

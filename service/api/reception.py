"""Where questions come in over HTTP: kept answers at once, and one computation for all who ask the same."""

from asyncio import FIRST_COMPLETED, Task, create_task, ensure_future, shield, sleep, wait
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import thread_time
from typing import Any, Final, TypeVar

from starlette.requests import Request

from service.api.admission import Admission, OverloadError, TooDearError
from service.api.at_once import AtOnce, kind_of
from service.api.problems import ProblemError
from service.catalog.snapshot import Snapshot
from service.questions.answers import Answer
from service.questions.asked import Asked, Desk, Question, check_revision
from service.questions.formats import Written, written

Result = TypeVar("Result")
BATCH_PAUSE_S: Final = 0.02
BUSY: Final = "as many questions wait as can be answered in time; ask again"
BUSY_HEADERS: Final = {"Retry-After": "1"}
TOO_DEAR: Final = (
    "this question was not answered in time, and what was found so far is kept: ask again, or for fewer choices, or "
    "for a shorter load"
)


class ClientLeftError(RuntimeError):
    """Nobody is there to answer."""


@dataclass(slots=True)
class _Shared:
    """One computation, and how many wait for it."""

    task: Task[Any]
    askers: int = 0


class Reception:
    """Answers questions on the event loop's behalf, in threads, within a patience."""

    def __init__(self, desk: Desk, patience_s: float) -> None:
        """Keep who answers, and by when callers are promised an answer or a refusal."""
        self.desk = desk
        self.admission = Admission(patience_s)
        self.at_once = AtOnce(desk)
        self.num_computed = 0  # answers that threads were asked for
        self.num_inside = 0  # questions that were let in and are not answered yet
        self._under_way: dict[Hashable, _Shared] = {}

    @property
    def is_full(self) -> bool:
        """Return whether the next question is turned away before anybody reads it.

        Of a burst, what is still being read counts too: a refusal should cost less than reading a question.
        """
        quick = self.admission.quick
        return quick.is_full or self.num_inside - self.admission.num_dear >= quick.room

    @property
    def is_idle(self) -> bool:
        """Return whether nobody waits for a computation."""
        return not self.num_inside and not self._under_way

    async def written(self, request: Request, question: Question, asked: Asked, catalog: Snapshot) -> Written:
        """Return the answer in the format asked for; who leaves meanwhile is no longer worked for.

        Raises:
            ProblemError: too much is waiting, or it takes too long.
            RefusalError: another revision is pinned, or the question is not answered.
            EngineError: the engine refuses it.
            ClientLeftError: the client did not wait.
        """
        return await self.rendered(request, await self.answered(request, question, asked, catalog), asked)

    async def answered(self, request: Request, question: Question, asked: Asked, catalog: Snapshot) -> Answer[Any]:
        """Return the answer, as `written` does, before it is written."""
        check_revision(asked, catalog)
        key = self.desk.key(question, asked, catalog)
        kept = self.desk.kept_answer(key, catalog)
        if kept is not None:
            return kept
        kind = question.name, asked.kind
        with self._refusing():
            return await while_there(request, self._shared(key, kind, lambda: self._timed(question, asked, catalog)))

    def _timed(self, question: Question, asked: Asked, catalog: Snapshot) -> Answer[Any]:
        """Return the answer, and learn what its kind takes."""
        kind, began_s = kind_of(question, asked), thread_time()
        answer = self.desk.answer(question, asked, catalog)
        if kind is not None:
            self.at_once.quick.tell(kind, thread_time() - began_s)
        return answer

    async def answered_in_batch(self, question: Question, asked: Asked, catalog: Snapshot) -> Answer[Any]:
        """Return the answer to one of many questions, whose client is waited on elsewhere.

        Raises:
            ProblemError: too much is waiting, or it takes too long.
            RefusalError: another revision is pinned, or the question is not answered.
            EngineError: the engine refuses it.
        """
        check_revision(asked, catalog)
        key = self.desk.key(question, asked, catalog)
        kept = self.desk.kept_answer(key, catalog)
        if kept is not None:
            return kept
        answer = self.at_once.answer(question, asked, catalog)
        if answer is not None:
            await sleep(0)  # single questions come in between
            return answer
        with self._refusing():
            while self.admission.quick.is_full:  # noqa: ASYNC110 - single questions go first; a batch has time
                await sleep(BATCH_PAUSE_S)
            return await self._shared(key, (question.name, asked.kind), lambda: self._timed(question, asked, catalog))

    async def rendered(self, request: Request, answer: Answer[Any], asked: Asked) -> Written:
        """Return an answer in the format asked for: as YAML, a long one takes its time."""
        if asked.format == "json" and asked.field is None:
            return written(answer, asked)
        with self._refusing():
            work = self.admission.run(("rendered", asked.format), lambda: written(answer, asked))
            return await while_there(request, work)

    async def done(self, request: Request, kind: Hashable, work: Callable[[], Result]) -> Result:
        """Return what any other work returns, done in a thread when it is its turn.

        Raises:
            ProblemError: too much is waiting, or it takes too long.
            ClientLeftError: the client did not wait.
        """
        with self._refusing():
            return await while_there(request, self.admission.run(kind, work))

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Say over HTTP why nothing was done."""
        try:
            yield
        except OverloadError as error:
            raise busy(error.retry_after_s) from error
        except TooDearError as error:
            raise ProblemError(503, "too-dear", TOO_DEAR, headers=BUSY_HEADERS) from error

    async def _shared(self, key: Hashable, kind: Hashable, work: Callable[[], Answer[Any]]) -> Answer[Any]:
        """Return what the work returns, which is done once for all who ask at the same time."""
        shared = self._under_way.get(key)
        if shared is None:
            self.num_computed += 1
            shared = self._under_way[key] = _Shared(create_task(self.admission.run(kind, work)))
            shared.task.add_done_callback(lambda _: self._under_way.pop(key, None))
        shared.askers += 1
        try:
            answer: Answer[Any] = await shield(shared.task)
        finally:
            shared.askers -= 1
            if not shared.askers and not shared.task.done():
                shared.task.cancel()
                self._under_way.pop(key, None)
        return answer

    def close(self) -> None:
        """Begin nothing more."""
        self.admission.close()


def busy(retry_after_s: int = 1) -> ProblemError:
    """Return the refusal of what would wait too long."""
    return ProblemError(503, "busy", BUSY, headers={"Retry-After": str(retry_after_s)})


async def while_there(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Return what the work returns, given up when the client leaves.

    Raises:
        ClientLeftError: it did.
    """
    task, leaving = create_task(work), ensure_future(_left(request.receive))
    try:
        await wait({task, leaving}, return_when=FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientLeftError
    finally:
        leaving.cancel()
        task.cancel()


async def _left(receive: Callable[[], Awaitable[Any]]) -> None:
    """Return when the client has gone; whatever else it sends is of no interest."""
    while (await receive())["type"] != "http.disconnect":
        pass

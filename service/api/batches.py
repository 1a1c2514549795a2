"""Many questions at once: read from JSON or CSV, answered in order, each with its own success or problem."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Final

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.api.media import CSV, NDJSON
from service.api.problems import (
    FieldProblem,
    ProblemError,
    engine_problem,
    problem_response,
    refusal_problem,
)
from service.api.reception import Reception
from service.catalog.snapshot import Snapshot
from service.engine.errors import EngineError
from service.questions.answers import Answer
from service.questions.asked import Asked, Question
from service.questions.many import UnreadableError, of_json, of_lines, of_sheet
from service.questions.misnamed import misnamed
from service.questions.misread import misread
from service.questions.outcomes import outcome_rows, sheet_of
from service.questions.refusals import Fault, RefusalError

WRITTEN_ALIKE: Final = "all answers of a batch are written alike"
IN_ACCEPT: Final = f"the header Accept: application/json, {NDJSON} or {CSV}"
PART_CHARACTERS: Final = 64 << 10  # of a document: each part that leaves costs a write, and a wait
PART_S: Final = 0.5  # after which a shorter one leaves
READ: Final[Mapping[str, Callable[[bytes], Sequence[Any]]]] = {CSV: of_sheet, NDJSON: of_lines}  # and JSON
Outcome = tuple[int, str, str]  # status, `answer` or `problem`, its JSON


async def questions_in(request: Request) -> Sequence[Any]:
    """Return the questions of a body, each as it stands there.

    Raises:
        ProblemError: it cannot be read.
        RefusalError: the body holds none, or too many.
    """
    body = await request.body()
    read = READ.get(request.headers.get("content-type", "").split(";")[0].strip().lower(), of_json)
    try:
        return read(body)
    except UnreadableError as error:
        others = f"; of CSV, the header content-type: {CSV}; of lines of JSON, content-type: {NDJSON}"
        accepted = f"{error.accepted}{others if read is of_json else ''}"
        fault = FieldProblem(field="body", detail=error.detail, accepted=accepted)
        raise ProblemError(400, "bad-request", f"the body is {error.detail}", [fault]) from error


def _refuse_a_format(asked: Asked) -> None:
    """Refuse what would be ignored: all answers of a batch are written alike.

    Raises:
        RefusalError: the question says how its own answer is written.
    """
    faults = [
        Fault(name, WRITTEN_ALIKE, IN_ACCEPT)
        for name, is_stated in (("format", asked.format != "json"), ("field", asked.field is not None))
        if is_stated
    ]
    if faults:
        raise RefusalError("invalid-request", WRITTEN_ALIKE, *faults)


class Batch:
    """Questions on their way to answers."""

    def __init__(self, reception: Reception, question: Question, snapshot: Snapshot) -> None:
        """Keep who answers, and from which catalog: one for all of them."""
        self._reception, self._question, self._snapshot = reception, question, snapshot

    async def outcome(self, fields: Any) -> Outcome:
        """Return one question's answer or problem; whatever is wrong with it is its own."""
        try:
            answer = await self._answer(fields)
        except RefusalError as error:
            return _told(refusal_problem(error))
        except EngineError as error:
            return _told(engine_problem(error))
        except ProblemError as error:
            return _told(problem_response(error.status, error.kind, error.detail, error.errors))
        return 200, "answer", answer.json

    async def _answer(self, fields: Any) -> Answer[Any]:
        try:
            asked = self._question.body.model_validate(fields)
        except ValidationError as error:
            # Names are looked up on a thread: what is no object states none, and a thousand of them cost no hop each.
            is_named = isinstance(fields, dict) and fields
            names = await run_in_threadpool(misnamed, fields, self._snapshot) if is_named else ()
            raise misread(error.errors(), self._question.fields, misnamed=names) from error
        _refuse_a_format(asked)
        return await self._reception.answered_in_batch(self._question, asked, self._snapshot)

    async def lines(self, questions: Sequence[Any]) -> AsyncIterator[str]:
        """Yield a line for each question, in order, with how far it is."""
        for index, fields in enumerate(questions):
            status, kind, document = await self.outcome(fields)
            done = f'"done":{index + 1},"of":{len(questions)}'
            yield f'{{"index":{index},"status":{status},{done},"{kind}":{document}}}\n'

    async def sheet(self, questions: Sequence[Any]) -> str:
        """Return one table, a row for each question, or for each entry of an answer that is a list."""
        outcomes = [await self.outcome(fields) for fields in questions]
        rows = (outcome_rows(index, told[0], json.loads(told[2])) for index, told in enumerate(outcomes))
        return sheet_of([row for of_one in rows for row in of_one])

    async def document(self, questions: Sequence[Any]) -> AsyncIterator[str]:
        """Yield one JSON document, as its parts become known."""
        failed, part, began_at = 0, '{"answers":[', monotonic()
        for index, fields in enumerate(questions):
            status, kind, document = await self.outcome(fields)
            failed += status != 200
            part += f'{"," if index else ""}{{"index":{index},"status":{status},"{kind}":{document}}}'
            if len(part) > PART_CHARACTERS or monotonic() > began_at + PART_S:
                yield part
                part, began_at = "", monotonic()
        yield f'{part}],"succeeded":{len(questions) - failed},"failed":{failed}}}\n'


def _told(problem: Response) -> Outcome:
    return problem.status_code, "problem", bytes(problem.body).decode().rstrip()

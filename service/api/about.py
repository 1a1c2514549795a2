"""A question about a workload, asked on behalf of whoever scrapes, scales or deploys by it."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request

from service.api.reception import Reception
from service.catalog.snapshot import Snapshot
from service.questions.answers import Answer
from service.questions.asked import Asked, Question
from service.questions.refusals import RefusalError
from service.questions.replicas import REPLICAS
from service.workloads.workload import Workload, asked_of

NO_PODS: Final = (
    "no number of pods carries this load within its limits, so there is no number to scale to; "
    "/size and /capacity of this workload say why"
)


async def answer_about(
    request: Request,
    workload: Workload,
    question: Question,
    overrides: Mapping[str, Any],
    reception: Reception,
    snapshot: Snapshot,
) -> tuple[Answer[Any], Asked]:
    """Return the answer, and how it is to be written; of pods only where there is a number to scale to.

    Raises:
        RefusalError: together the fields are no question, or no number of pods is enough.
        EngineError: the engine refuses it.
        ProblemError: too much is waiting, or it takes too long.
        ClientLeftError: the client did not wait.
    """
    asked = asked_of(workload, question, overrides, writing={"workload": workload.name})
    answer = await reception.answered(request, question, asked, snapshot)
    if question is REPLICAS and not answer.is_feasible:
        raise RefusalError("infeasible", NO_PODS)
    return answer, asked

"""What callers measured: a log or a benchmark's result, held against the prediction."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import BaseModel, ConfigDict, Field

from service.api.dependencies import ReceptionDep, SnapshotDep
from service.api.media import JsonRoute
from service.api.problems import problem_responses
from service.measurements.checking import Checked, check

MOST_CHARACTERS = 4_000_000
EXAMPLE = {
    "text": "INFO Model loading took 15.0 GiB memory\nINFO GPU KV cache size: 460,496 tokens",
    "question": {"model": "llama-3.1-8b", "gpu": "a100-80gb", "engine_version": "0.31.0"},
}
ABRIDGED = {
    "what": "vLLM start-up log",
    "kind": "start-up log",
    "model": "llama-3.1-8b-instruct",
    "gpu": "a100-sxm-80gb",
    "terms": [
        {"name": "kv_cache.tokens", "measured": 460496, "predicted": 462976, "error_fraction": 0.0054, "line": 2}
    ],
    "error_fraction": 0.0054,
    "explanations": [],
}
PROBLEMS = problem_responses(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
router = APIRouter(tags=["measurements"], route_class=JsonRoute)


class Measured(BaseModel):
    """A text that somebody measured, and what it does not say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MOST_CHARACTERS,
            description="a start-up log of vLLM, SGLang or TensorRT-LLM, or the JSON of vllm bench serve "
            "--save-result, GuideLLM, genai-perf or AIPerf",
        ),
    ]
    question: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        max_length=64,
        description="fields of /capacity that the text does not say, such as gpu; they come before what it says",
    )


@router.post(
    "/measurements",
    operation_id="post_measurements",
    summary="Are you right about what I measured?",
    responses={**PROBLEMS, 200: {"content": {"application/json": {"x-abridged": ABRIDGED}}}},
)
async def post_measurement(
    request: Request,
    measured: Annotated[Measured, Body(openapi_examples={"start-up": {"summary": "a start-up log", "value": EXAMPLE}})],
    snapshot: SnapshotDep,
    reception: ReceptionDep,
) -> Checked:
    """Answer with predicted beside measured, term by term, and what would explain the difference."""
    stated: dict[str, Any] = measured.question
    return await reception.done(request, "measurements", lambda: check(measured.text, stated, snapshot, reception.desk))

"""What monitors and deployers of workloads read, each in the shape it reads.

Sources:
    prometheus/blackbox_exporter, `README.md` and `prober/handler.go`: `/probe?target=...&module=...`, always 200 with
    `probe_success` and `probe_duration_seconds`; 400 for a module that is unknown or a target that is missing.
    prometheus/docs, `http_sd.md`: a JSON list of target groups, labels are strings, exactly 200, empty list for none.
    argoproj/argo-cd, `docs/operator-manual/applicationset/Generators-Plugin.md`: POST `/api/v1/getparams.execute`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from time import monotonic
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.api.about import answer_about, workload_called
from service.api.dependencies import ReceptionDep, SnapshotDep, WorkloadsDep, stated_once
from service.api.etags import TaggedRoute
from service.api.media import EXPOSITION
from service.api.problems import FieldProblem, ProblemError, problem_responses
from service.api.reception import ClientLeftError
from service.api.routers.questions import CLIENT_LEFT
from service.catalog.entries import Entry
from service.catalog.faults import MOST_SENTENCE_SHOWN
from service.engine.errors import EngineError
from service.questions.answers import flat
from service.questions.asked import Question
from service.questions.formats import written
from service.questions.misread import unknown_field
from service.questions.refusals import MOST_FAULTS, MOST_NAME_SHOWN, Fault, RefusalError
from service.questions.replicas import REPLICAS
from service.workloads.errors import LoadUnknownError, WorkloadError
from service.workloads.workload import ASKED_OF_ONE, Workload, WorkloadName, is_asked

router = APIRouter(tags=["workloads"], dependencies=[Depends(stated_once)], route_class=TaggedRoute)
PROBLEMS = problem_responses(
    HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE
)
WITH_BODY = problem_responses(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
PROBED = 'probe_success{workload="chat"} 1.0\nsizer_replicas{gpu="h100-sxm-80gb",workload="chat"} 4.0\n'
WORKLOAD: Final = "workload"  # the one parameter that is read
MODULES = {question.name: question for question in ASKED_OF_ONE}


class Module(Entry):
    """Which question workloads are probed with, and nothing else: what would be ignored is refused."""

    module: Annotated[str, Field(max_length=20)] = Field(
        default=REPLICAS.name, description="which question: size, capacity, ..."
    )


class ProbeQuery(Module):
    """Which workload is probed with which question."""

    target: WorkloadName | None = Field(default=None, description="name of a workload", examples=["chat"])


class TargetGroup(BaseModel):
    """One workload to probe, as Prometheus discovers it."""

    model_config = ConfigDict(frozen=True)

    targets: tuple[str, ...]
    labels: dict[str, str]


class PluginInput(BaseModel):
    """What an ApplicationSet asks for."""

    model_config = ConfigDict(frozen=True)

    parameters: dict[str, Any] = Field(
        default_factory=dict,
        max_length=100,
        description="`workload`: the name of one; without it, all of them. No other is taken",
    )


class PluginRequest(BaseModel):
    """A request of Argo CD's plugin generator."""

    model_config = ConfigDict(frozen=True)

    applicationSetName: str = Field(default="", max_length=300)  # noqa: N815 - its own name
    input: PluginInput


class PluginOutput(BaseModel):
    """One flat object of parameters for each workload."""

    model_config = ConfigDict(frozen=True)

    parameters: tuple[dict[str, Any], ...]


class PluginAnswer(BaseModel):
    """What the plugin generator reads."""

    model_config = ConfigDict(frozen=True)

    output: PluginOutput


class _Probed(Collector):
    """Whether a workload was answered, and how long it took."""

    def __init__(self, workload: str, seconds: float, *, is_answered: bool) -> None:
        self._values = (
            ("probe_success", "Whether the workload was answered", float(is_answered)),
            ("probe_duration_seconds", "How long the answer took", seconds),
        )
        self._workload = workload

    def collect(self) -> Iterator[Metric]:
        """Yield both gauges."""
        for name, words, value in self._values:
            gauge = GaugeMetricFamily(name, words, labels=("workload",))
            gauge.add_metric((self._workload,), value)
            yield gauge


@router.get(
    "/probe",
    operation_id="get_probe",
    summary="Probe a workload",
    responses={
        **PROBLEMS,
        200: {
            "description": "Gauges: probe_success, and of a workload that was answered every number of its answer.",
            "content": {"text/plain": {"schema": {"type": "string"}, "example": PROBED}},
        },
    },
    response_class=Response,
)
async def probe(
    request: Request,
    probed: Annotated[ProbeQuery, Query()],
    shelf: WorkloadsDep,
    snapshot: SnapshotDep,
    reception: ReceptionDep,
) -> Response:
    """Answer as blackbox_exporter does: a workload without an answer is `probe_success 0`, and no other number."""
    target, question = probed.target, _question_of(probed.module)
    if target is None:
        fault = FieldProblem(field="target", detail="missing", accepted="the name of a workload, such as chat")
        detail = "the target is missing: name a workload, as in /probe?target=chat"
        raise ProblemError(400, "bad-request", detail, [fault])
    began_at, gauges = monotonic(), ""
    try:
        workload = await workload_called(shelf, target)
        how = {"format": "prometheus"}
        answer, asked = await answer_about(request, workload, question, how, reception, snapshot)
        gauges = written(answer, asked).text
    except (RefusalError, EngineError, WorkloadError, ProblemError):
        gauges = ""
    except ClientLeftError:
        return Response(status_code=CLIENT_LEFT)
    told = _Probed(target, monotonic() - began_at, is_answered=bool(gauges))
    return Response(generate_latest(told).decode() + gauges, media_type=EXPOSITION)


@router.get(
    "/sd",
    operation_id="get_sd",
    summary="Discover workloads",
    responses={
        **problem_responses(HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE),
        200: {
            "content": {
                "application/json": {
                    "example": [{"targets": ["chat"], "labels": {"__meta_sizer_model": "llama-3.3-70b"}}]
                }
            }
        },
    },
)
async def discover(discovered: Annotated[Module, Query()], shelf: WorkloadsDep) -> tuple[TargetGroup, ...]:
    """Return each workload that the module's question is asked about, as /probe answers it, as a target of http_sd.

    Its scalar fields are labels for relabelling.
    """
    question = _question_of(discovered.module)
    return tuple(_group(workload) for workload in (await shelf.rows()).values() if is_asked(workload, question))


def _question_of(module: str) -> Question:
    """Return the question of a module's name."""
    question = MODULES.get(module)
    if question is None:
        accepted = ", ".join(MODULES)
        fault = FieldProblem(field="module", detail="there is no such module", accepted=accepted)
        raise ProblemError(400, "bad-request", f"there is no such module; accepted: {accepted}", [fault])
    return question


def _group(workload: Workload) -> TargetGroup:
    labels = {"__meta_sizer_version": str(workload.version)}
    for name, value in workload.question.items():
        if isinstance(value, str | int | float):
            labels[f"__meta_sizer_{name}"] = str(value)
    return TargetGroup(targets=(workload.name,), labels=labels)


@router.post(
    "/api/v1/getparams.execute",
    operation_id="post_getparams",
    summary="Parameters for an ApplicationSet of Argo CD",
    responses={
        **PROBLEMS,
        **WITH_BODY,
        200: {
            "content": {
                "application/json": {
                    "example": {"output": {"parameters": [{"workload": "chat", "replicas": 4, "gpus_per_replica": 2}]}}
                }
            }
        },
    },
)
async def getparams(
    request: Request, wanted: PluginRequest, shelf: WorkloadsDep, snapshot: SnapshotDep, reception: ReceptionDep
) -> PluginAnswer:
    """Return the pods of each workload that is asked for them, flat.

    One without an answer refuses all, so that no Application is pruned.
    """
    _check_parameters(wanted.input.parameters)
    workloads = await shelf.rows()
    name = wanted.input.parameters.get(WORKLOAD)
    every = tuple(workload for workload in workloads.values() if is_asked(workload, REPLICAS))
    chosen = every if name is None else (await workload_called(shelf, name[:200]),)
    rows = [await _parameters(request, workload, reception, snapshot) for workload in chosen]
    return PluginAnswer(output=PluginOutput(parameters=tuple(rows)))


def _check_parameters(stated: Mapping[str, Any]) -> None:
    """Refuse what would be ignored: a misspelt name would be answered with every workload."""
    strangers = [name for name in stated if name != WORKLOAD][:MOST_FAULTS]
    if strangers:
        faults = (unknown_field(name[:MOST_NAME_SHOWN], (WORKLOAD,), WORKLOAD) for name in strangers)
        placed = [replace(fault, field=f"input.parameters.{fault.field}") for fault in faults]
        names = ", ".join(fault.field for fault in placed)
        raise RefusalError("invalid-request", f"not understood: {names[:MOST_SENTENCE_SHOWN]}", *placed)
    if not isinstance(stated.get(WORKLOAD, ""), str | None):
        fault = Fault(f"input.parameters.{WORKLOAD}", "should be a string", 'the name of one workload, such as "chat"')
        raise RefusalError("invalid-request", f"not understood: {fault.field}", fault)


async def _parameters(
    request: Request, workload: Workload, reception: ReceptionDep, snapshot: SnapshotDep
) -> Mapping[str, Any]:
    try:
        answer, _ = await answer_about(request, workload, REPLICAS, {}, reception, snapshot)
    except ClientLeftError as error:
        raise ProblemError(503, "busy", "nobody waits for this any longer") from error
    except LoadUnknownError as error:
        raise error.named(workload.name) from error
    except RefusalError as error:
        raise RefusalError(error.kind, f"workload {workload.name}: {error.detail}", *error.faults) from error
    except EngineError as error:
        named = f"workload {workload.name}: {error.detail}"
        raise type(error)(named, field=error.field, accepted=error.accepted, others=error.others) from error
    document = answer.document
    scalars = {path.replace(".", "_"): value for path, value in flat(document) if value is not None}
    return {"workload": workload.name, **scalars, "engine_args": " ".join(document["engine_args"])}

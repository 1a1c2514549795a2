"""A question about a workload, asked on behalf of whoever scrapes, scales or deploys by it; its load may be traffic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request

from service.api.reception import Reception
from service.api.shelf import Shelf
from service.catalog.snapshot import Snapshot
from service.engine.answers.noted import note
from service.engine.errors import EngineError
from service.engine.fleet.results import Assumption, Origin
from service.questions.answers import Answer
from service.questions.asked import BESIDE_THE_QUESTION, Asked, Question
from service.questions.refusals import RefusalError
from service.questions.replicas import REPLICAS
from service.workloads.errors import NoWorkloadError
from service.workloads.load_from import LOADING_SOURCE, SMALLEST_LOAD, LoadFrom
from service.workloads.traffic import Followed, Traffic
from service.workloads.workload import LOADS, Workload, asked_of, called

NO_PODS: Final = (
    "no number of pods carries this load within its limits, so there is no number to scale to; "
    "/size and /capacity of this workload say why"
)


@dataclass(frozen=True, slots=True)
class Loading:
    """How long a new pod takes to help, and how that is known."""

    seconds: float
    assumption: Assumption


async def workload_called(shelf: Shelf[Mapping[str, Workload]], name: str) -> Workload:
    """Return the workload of a name; what is missing may have just been written over another replica.

    Raises:
        NoWorkloadError: there is none.
        ProblemError: the database does not answer, and never did.
    """
    try:
        return called(await shelf.rows(), name)
    except NoWorkloadError:
        return called(await shelf.rows(fresh_s=0), name)


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
        LoadUnknownError: its load is traffic, and nobody knows it.
        ClientLeftError: the client did not wait.
    """
    told: Sequence[Assumption] = ()
    warned: Sequence[str] = ()
    load_from = workload.load_from
    if load_from is not None and not LOADS & overrides.keys():
        loading = await _loading(request, workload, load_from, overrides, reception, snapshot)
        traffic: Traffic = request.app.state.traffic
        followed = await traffic.followed(load_from, loading.seconds)
        overrides = {**overrides, load_from.field: followed.load.amount}
        told, warned = _told(load_from, followed, loading), _warned(load_from, followed)
    asked = asked_of(workload, question, overrides, writing={"workload": workload.name})
    answer = await reception.answered(request, question, asked, snapshot)
    if question is REPLICAS and not answer.is_feasible:
        raise RefusalError("infeasible", NO_PODS)
    return answer.with_measured(told, warned), asked


async def _loading(
    request: Request,
    workload: Workload,
    load_from: LoadFrom,
    overrides: Mapping[str, Any],
    reception: Reception,
    snapshot: Snapshot,
) -> Loading:
    """Return how long a pod loads: as stated, else its weights at a bandwidth, else not at all, which is told."""
    if load_from.loading_s is not None:
        source = "load_from.loading_s: until a new pod answers"
        return Loading(load_from.loading_s, note("loading_s", load_from.loading_s, "request", source))
    known = {
        name: value for name, value in overrides.items() if name in REPLICAS.fields and name not in BESIDE_THE_QUESTION
    }
    try:
        asked = asked_of(workload, REPLICAS, {**known, load_from.field: SMALLEST_LOAD[load_from.field]}, writing={})
        pod = await reception.answered(request, REPLICAS, asked, snapshot)
    except (RefusalError, EngineError):
        source = "no head start: which model each pod loads is not known; load_from.loading_s states it"
        return Loading(0.0, note("loading_s", 0.0, "default", source))
    weight_bytes: int = pod.result.weights.weight_bytes
    is_stated = "loading_bytes_per_s" in load_from.model_fields_set
    seconds = round(weight_bytes / load_from.loading_bytes_per_s, 1)
    source = f"{weight_bytes / 1e9:.1f} GB of weights at {load_from.loading_bytes_per_s / 1e6:.0f} MB/s"
    told = source + (", as stated" if is_stated else f": {LOADING_SOURCE}")
    return Loading(seconds, note("loading_s", seconds, "request" if is_stated else "default", told))


def _told(load_from: LoadFrom, followed: Followed, loading: Loading) -> Sequence[Assumption]:
    """Return what the load rests on."""
    load = followed.load
    words = (
        f"{load.now:.6g} now, {load.most:.6g} at most within {load_from.cooldown_s:g} s, "
        f"{load.expected:.6g} expected in {loading.seconds:g} s; {load.needed:.6g} the most so expected within that "
        f"time, {'to a whole one up' if load.field == 'concurrent_requests' else 'to three digits up'}"
    )
    age = "of the last sample" + (f"; no newer one: {followed.failure}" if followed.failure else "")
    origin: Origin = "request" if "cooldown_s" in load_from.model_fields_set else "default"
    return (
        note(load.field, load.amount, "measured", words),
        note("load_age_s", round(followed.age_s, 1), "measured", age),
        note("cooldown_s", load_from.cooldown_s, origin, "what was needed is kept for as long"),
        loading.assumption,
    )


def _warned(load_from: LoadFrom, followed: Followed) -> Sequence[str]:
    """Return that the load is not of now, where it is not, and until when it counts."""
    if followed.failure is None:
        return ()
    age = f"the load is {followed.age_s:.0f} s old, as the Prometheus tells no newer one: {followed.failure}"
    return (f"{age}; it counts until it is {load_from.max_age_s:g} s old",)

"""What a workload is held against before it is kept: its fields, the catalog, the engine, and whom it may ask."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from starlette.concurrency import run_in_threadpool

from service.api.dependencies import ReceptionDep, SnapshotDep, TrafficDep
from service.catalog.snapshot import Snapshot
from service.questions.misnamed import misnamed
from service.questions.sources import Sources
from service.workloads.named import check_answered, check_named
from service.workloads.traffic import check_allowed
from service.workloads.workload import answered_by, load_source


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadChecks:
    """What a question is held against."""

    catalog: Snapshot
    sources: Sources
    allowed: frozenset[str]  # addresses of a Prometheus that may be asked

    async def check(self, question: Mapping[str, Any]) -> None:
        """Let pass what is answered today, or will be when prices, inventory or load are others.

        Raises:
            RefusalError: a field is unknown or at fault, or names what the catalog does not have.
            EngineError: the engine refuses it.
        """
        answered_by(question, misnamed=lambda: misnamed(question, self.catalog))
        check_named(question, self.catalog)
        source = load_source(question)
        if source is not None:
            check_allowed(source, self.allowed)
        await run_in_threadpool(check_answered, question, self.sources)


async def get_checks(snapshot: SnapshotDep, traffic: TrafficDep, reception: ReceptionDep) -> WorkloadChecks:
    """Return what workloads are held against: by memory alone, as no refusal is about times."""
    sources = reception.desk.without_times().sources(snapshot)
    return WorkloadChecks(catalog=snapshot, sources=sources, allowed=traffic.allowed)


WorkloadChecksDep = Annotated[WorkloadChecks, Depends(get_checks)]

"""What one replica carries, and how many replicas a load takes."""

from dataclasses import dataclass
from math import ceil

from service.engine.arithmetic import ceil_div
from service.engine.errors import InvalidQuestionError
from service.engine.inputs import Headroom, Load
from service.engine.plan import MemoryPlan
from service.engine.results import BindingConstraint


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCapacity:
    """The load of one replica at which the first limit is reached."""

    max_concurrent_requests: int
    max_request_rate_per_s: float | None  # None: time is unknown
    binds: BindingConstraint


def memory_capacity(plan: MemoryPlan) -> ReplicaCapacity:
    """Return the requests one replica holds at once, by cache and by the scheduler's own cap.

    requests = data_parallel_size x min(requests_in_cache, max_num_seqs)
    """
    if not plan.weights_fit:
        return ReplicaCapacity(max_concurrent_requests=0, max_request_rate_per_s=None, binds="weights")
    per_rank = min(plan.requests_in_cache, plan.settings.max_num_seqs)
    return ReplicaCapacity(
        max_concurrent_requests=per_rank * plan.layout.data_parallel_size,
        max_request_rate_per_s=None,
        binds="kv_cache" if plan.requests_in_cache <= plan.settings.max_num_seqs else "max_num_seqs",
    )


def concurrency_of(load: Load) -> int:
    """Return the requests in flight: as asked, or by Little's law from rate and duration.

    concurrent_requests = ceil(request_rate_per_s x request_duration_s)
    """
    if load.concurrent_requests is not None:
        return load.concurrent_requests
    if load.request_rate_per_s is None or load.request_duration_s is None:
        raise InvalidQuestionError(
            "no load was stated",
            field="concurrent_requests",
            accepted="concurrent_requests, or request_rate_per_s with request_duration_s",
        )
    return max(ceil(load.request_rate_per_s * load.request_duration_s), 1)


def with_headroom(concurrent_requests: int, headroom: Headroom) -> int:
    """Return the load to plan for: the asked one and the share kept free on top of it."""
    return max(ceil(concurrent_requests * (1 + headroom.headroom_fraction)), 1)


def replicas_needed(concurrent_requests: int, capacity: ReplicaCapacity) -> int:
    """Return the replicas that hold the requests: ceil(requests / requests per replica)."""
    return ceil_div(concurrent_requests, capacity.max_concurrent_requests)

"""A benchmark on one stream of a planned replica, served to its end: what published runs are compared with."""

from dataclasses import replace

from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import block_pool, copies_in, settings_of
from service.engine.time.samples import ScheduleResult, whole
from service.engine.time.simulation import Machine
from service.engine.time.steps import Timing
from service.engine.time.traffic import SimulatedLoad, Traffic


def streams_of(plan: MemoryPlan) -> int:
    """Return the streams of requests that a replica serves side by side, each by its own steps: of stages, and ranks.

    Ranks of data parallelism whose tokens meet in experts take every step together, and are one.
    """
    streams = plan.layout.data_parallel_size * plan.layout.pipeline_parallel_size
    return streams // copies_in(plan)


def benchmarked(
    plan: MemoryPlan,
    timing: Timing,
    traffic: Traffic,
    load: SimulatedLoad,
    *,
    evicts: bool = False,
    read_every: int = 1,
) -> ScheduleResult:
    """Return what the users of a load on one stream see, to its last request.

    Args:
        plan: what the replica holds.
        timing: seconds of its iterations, and of what a request waits outside them.
        traffic: the requests as they are announced; nothing is shared between them where it says so.
        load: the requests as they are sent.
        evicts: requests join as soon as there is room for their prompts, also where the engine reserves by default.
        read_every: iterations, of which one reads prompts while others decode.
    """
    settings = settings_of(plan, timing, traffic)
    settings = replace(settings, reserves_output=settings.reserves_output and not evicts, read_every=read_every)
    return whole(Machine(timing, block_pool(plan), settings).simulated(load))

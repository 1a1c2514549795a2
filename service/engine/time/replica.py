"""One replica: a server of a load with the plan of its memory."""

from dataclasses import dataclass, replace

from service.engine.inputs import Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import Serving, block_pool, serving_of
from service.engine.time.drafting import with_drafts
from service.engine.time.server import Server
from service.engine.time.simulations import Simulations
from service.engine.time.steps import StepTimers, Timing, deployed
from service.engine.time.traffic import Traffic, traffic_of


@dataclass(frozen=True, kw_only=True, eq=False)  # without slots, for what is made once
class Replica(Server):
    """One replica: its memory, its times, and the requests it serves."""

    plan: MemoryPlan

    def capped(self, plan: MemoryPlan) -> "Replica":
        """Return the same replica under a plan that runs fewer requests at once; it carries no more than this one does.

        Args:
            plan: its memory with another `max_num_seqs`.
        """
        same = _replica(plan, serving_of(plan, self.timing, self.serving.traffic), self.simulations)
        return replace(same, uncapped=self)


def replica_of(plan: MemoryPlan, timing: Timing, traffic: Traffic, simulations: Simulations) -> Replica:
    """Return a replica with drafts as its settings say.

    Args:
        plan: its memory.
        timing: its times, without drafts.
        traffic: what it serves.
        simulations: the store of what is found about it.
    """
    return _replica(plan, serving_of(plan, with_drafts(timing, plan), traffic), simulations)


def _replica(plan: MemoryPlan, serving: Serving, simulations: Simulations) -> Replica:
    return Replica(plan=plan, serving=serving, pool=block_pool(plan), simulations=simulations)


def timed(plan: MemoryPlan, timers: StepTimers | None, load: Load) -> Replica | None:
    """Return a plan with its times; None where it holds no request or nobody times it."""
    if timers is None or not plan.holds_one_request:
        return None
    timing = timers.timer(deployed(plan))
    if timing is None:
        return None
    return replica_of(plan, _sending(timing, plan, load), traffic_of(load), timers.simulations)


def quickly_timed(plan: MemoryPlan, timers: StepTimers, load: Load) -> Serving | None:
    """Return how a plan serves a load by a quick estimate, drafts left aside; None where nobody times it."""
    timing = timers.quick(deployed(plan))
    return None if timing is None else serving_of(plan, _sending(timing, plan, load), traffic_of(load))


def sent_s(plan: MemoryPlan, load: Load) -> float:
    """Return the seconds in which the cache of one mean prompt is sent on, by all its GPUs at once; 0: it stays."""
    rate = load.sent_bytes_per_s
    return 0.0 if rate is None else plan.kv_cache.bytes_per_request_per_gpu / rate


def _sending(timing: Timing, plan: MemoryPlan, load: Load) -> Timing:
    """Return times with that of sending, which no iteration waits for: a first token does, as for what is no step."""
    if load.sent_bytes_per_s is None:
        return timing
    return replace(timing, request_overhead=timing.request_overhead.longer(sent_s(plan, load)))

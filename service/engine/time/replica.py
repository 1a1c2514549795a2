"""What users of one replica see at a load.

A replica of data- and pipeline-parallel ranks serves that many streams of requests side by side;
each stream has its share of the users, of the cache and of `max_num_seqs`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, inf
from typing import Final, Literal, TypeVar

from service.engine.inputs import Limits
from service.engine.memory.plan import MemoryPlan, cache_growth
from service.engine.time.drafting import tokens_per_step
from service.engine.time.scheduler import (
    BlockPool,
    LatencyLimit,
    ScheduleResult,
    SchedulerSettings,
    SimulatedLoad,
    simulate,
    simulate_within,
)
from service.engine.time.steps import StepTimer
from service.engine.time.traffic import Traffic, mean_length, open_loop, steady_users

Violation = Literal["ttft", "tpot", "throughput"]
Asked = TypeVar("Asked")

FEWEST_MEASURED: Final = 64
MOST_MEASURED: Final = 256
OPEN_WARM_UP: Final = 64
OPEN_MEASURED: Final = 256
# Prompts that take more iterations than this are sampled less often, down to so many.
MOST_CHUNKS: Final = 32
FEWEST_LONG: Final = 24
IN_FLIGHT_ROUNDS: Final = 12
# Beyond this many users per slot a closed loop only queues, and its queue is known without simulating it.
MOST_USERS_PER_SLOT: Final = 2
# Results that are kept, of users and of arrivals: about 7 kB each.
MOST_KEPT: Final = 1024
# A queue that grows by more than this share of arrivals never empties.
GROWING: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replica:
    """One replica: its memory, its step times, and the requests it serves."""

    plan: MemoryPlan
    timer: StepTimer
    traffic: Traffic
    most_requests_per_s: float = inf  # within the limit on TTFT alone, where a cap keeps pace

    @property
    def streams(self) -> int:
        """Return the batches that run side by side: data-parallel ranks x pipeline stages."""
        return self.plan.layout.data_parallel_size * self.plan.layout.pipeline_parallel_size

    @property
    def slots(self) -> int:
        """Return the requests that run at once, by cache and by `max_num_seqs`."""
        per_rank = min(self.plan.requests_in_cache, self.plan.settings.max_num_seqs)
        return per_rank * self.plan.layout.data_parallel_size


@lru_cache(maxsize=2048)
def replica_of(plan: MemoryPlan, timer: StepTimer, traffic: Traffic, most_requests_per_s: float = inf) -> Replica:
    """Return the one replica of these parts, so that what is found about it is found once."""
    return Replica(plan=plan, timer=timer, traffic=traffic, most_requests_per_s=most_requests_per_s)


# What was found about replicas, by load: users of a closed loop, or arrivals per second.
_by_users: dict[tuple[Replica, int], ScheduleResult] = {}
_by_rate: dict[tuple[Replica, float], ScheduleResult] = {}


def at_concurrency(replica: Replica, concurrent_requests: int) -> ScheduleResult:
    """Return what so many users see who always have one request in flight.

    Args:
        replica: the replica; its fullest stream is simulated.
        concurrent_requests: users of the whole replica; those beyond its slots wait. [count]
    """
    result = _by_users.get((replica, concurrent_requests))
    if result is None:
        users, simulated = _users_of_stream(replica, concurrent_requests)
        found = _simulated(replica, _users_load(replica, simulated))
        result = _whole(found if users == simulated else _queueing(found, users, simulated), replica.streams)
        _keep(_by_users, (replica, concurrent_requests), result)
    return result


def at_rate(replica: Replica, request_rate_per_s: float) -> ScheduleResult:
    """Return what users see who come at a rate. [1/s]."""
    result = _by_rate.get((replica, request_rate_per_s))
    if result is None:
        found = _simulated(replica, _arrivals_load(replica, request_rate_per_s))
        result = _whole(found, replica.streams)
        _keep(_by_rate, (replica, request_rate_per_s), result)
    return result


@lru_cache(maxsize=8192)
def broken_by_users(replica: Replica, concurrent_requests: int, limits: Limits) -> Violation | None:
    """Return the limit that users within the slots see broken; a broken one is told before all are served."""
    result = _by_users.get((replica, concurrent_requests))
    if result is not None:
        return violated(result, limits)
    found = _within(replica, _users_load(replica, _users_of_stream(replica, concurrent_requests)[1]), limits)
    if not isinstance(found, ScheduleResult):
        return found
    _keep(_by_users, (replica, concurrent_requests), _whole(found, replica.streams))
    return None


@lru_cache(maxsize=8192)
def broken_by_rate(replica: Replica, request_rate_per_s: float, limits: Limits) -> Violation | None:
    """Return the limit that arrivals see broken, or their queue that grows; a broken limit is told at once."""
    result = _by_rate.get((replica, request_rate_per_s))
    if result is None:
        found = _within(replica, _arrivals_load(replica, request_rate_per_s), limits)
        if not isinstance(found, ScheduleResult):
            return found
        result = _whole(found, replica.streams)
        _keep(_by_rate, (replica, request_rate_per_s), result)
    grows = result.queue_growth_per_s > GROWING * request_rate_per_s
    return violated(result, limits) or ("throughput" if grows else None)


def _simulated(replica: Replica, load: SimulatedLoad) -> ScheduleResult:
    return simulate(replica.timer, load, pool=block_pool(replica), settings=scheduler_settings(replica))


def _within(replica: Replica, load: SimulatedLoad, limits: Limits) -> ScheduleResult | LatencyLimit:
    pool, settings = block_pool(replica), scheduler_settings(replica)
    return simulate_within(replica.timer, load, pool=pool, settings=settings, limits=limits)


def _keep(known: dict[Asked, ScheduleResult], asked: Asked, result: ScheduleResult) -> None:
    if len(known) >= MOST_KEPT:
        known.clear()
    known[asked] = result


def _users_of_stream(replica: Replica, concurrent_requests: int) -> tuple[int, int]:
    """Return the users of the fullest stream, and how many of them need simulating."""
    users = ceil(concurrent_requests / replica.streams)
    return users, min(users, MOST_USERS_PER_SLOT * _slots_of_stream(replica))


def _slots_of_stream(replica: Replica) -> int:
    return max(ceil(replica.slots / replica.streams), 1)


def _users_load(replica: Replica, users: int) -> SimulatedLoad:
    measured = min(max(2 * users, FEWEST_MEASURED), MOST_MEASURED)
    return steady_users(replica.traffic, users, measured, _slots_of_stream(replica))


def _arrivals_load(replica: Replica, request_rate_per_s: float) -> SimulatedLoad:
    """Return one stream's arrivals. Of prompts of many iterations each, fewer tell as much and take as long."""
    chunks = mean_length(replica.traffic.inputs) / replica.plan.settings.max_num_batched_tokens
    fewer = max(chunks / MOST_CHUNKS, 1.0)
    warm_up, measured = ceil(OPEN_WARM_UP / fewer), max(ceil(OPEN_MEASURED / fewer), FEWEST_LONG)
    return open_loop(
        replica.traffic,
        request_rate_per_s / replica.streams,
        warm_up,
        measured,
        in_flight(replica, request_rate_per_s),
    )


def in_flight(replica: Replica, request_rate_per_s: float) -> int:
    """Return about how many requests of a rate one stream has in flight: n = rate x output x tpot(n)."""
    most = max(replica.slots, 1)
    users = 1
    for _ in range(IN_FLIGHT_ROUNDS):
        lives_s = mean_length(replica.traffic.outputs) * tpot_estimate_s(replica, users)
        users = min(max(round(request_rate_per_s * lives_s), 1), most)
    return users // replica.streams


def _queueing(found: ScheduleResult, users: int, simulated: int) -> ScheduleResult:
    """Return the steady state of more users than were simulated: all of them wait longer, by Little's law.

    wait = (users - simulated) / requests_per_s
    """
    wait_s = (users - simulated) / found.requests_per_s
    return replace(found, ttft_s=found.ttft_s.later(wait_s), end_to_end_s=found.end_to_end_s.later(wait_s))


def _whole(found: ScheduleResult, streams: int) -> ScheduleResult:
    """Return one stream's result for all streams of the replica."""
    if streams == 1:
        return found
    return replace(
        found,
        requests_per_s=streams * found.requests_per_s,
        output_tokens_per_s=streams * found.output_tokens_per_s,
        queue_growth_per_s=streams * found.queue_growth_per_s,
        mean_running=streams * found.mean_running,
        preemptions=streams * found.preemptions,
    )


def scheduler_settings(replica: Replica) -> SchedulerSettings:
    """Return the engine's settings for one stream."""
    settings = replica.plan.settings
    stages = replica.plan.layout.pipeline_parallel_size
    return SchedulerSettings(
        max_num_batched_tokens=settings.max_num_batched_tokens,
        max_num_seqs=max(settings.max_num_seqs // stages, 1),
        prefix_cache_hit_fraction=replica.traffic.prefix_cache_hit_fraction,
        reserves_output=replica.plan.rules.engine == "tensorrt-llm",
        tokens_per_step=made_per_step(replica),
        tokens_scheduled=settings.num_speculative_tokens + 1,
    )


def made_per_step(replica: Replica) -> float:
    """Return the tokens an iteration makes for each request: one, and the drafts that are accepted."""
    drafted = replica.plan.settings.num_speculative_tokens
    return tokens_per_step(drafted, replica.traffic.speculative_acceptance_fraction) if drafted else 1.0


@lru_cache(maxsize=1024)
def block_pool(replica: Replica) -> BlockPool:
    """Return the cache of one stream, as the scheduler sees it."""
    plan = replica.plan
    shape = cache_growth(plan)
    # Blocks in flight are shared by all requests of a step; windows hold their own tokens.
    reserve = shape.blocks_per_request(plan.context_tokens, plan.in_flight_tokens)
    steady = shape.blocks_per_request(plan.context_tokens, 0)
    usable = plan.kv_cache.num_gpu_blocks - 1 - (reserve - steady)
    knots = _knots(plan.settings.max_model_len, plan.kv_cache.block_size)
    return BlockPool(
        num_blocks=max(usable / plan.layout.pipeline_parallel_size, 1.0),
        tokens=tuple(float(tokens) for tokens in knots),
        blocks=tuple(float(shape.blocks_per_request(tokens, 0)) for tokens in knots),
    )


def _knots(longest_tokens: int, block_size: int) -> Sequence[int]:
    """Return lengths in whole blocks, doubling, so that rounding up to blocks does not bend the line."""
    knots = [block_size]
    while knots[-1] < max(longest_tokens, 2 * block_size):
        knots.append(2 * knots[-1])
    return knots


def violated(found: ScheduleResult, limits: Limits) -> Violation | None:
    """Return the limit that a result breaks at the asked percentile."""
    if limits.ttft_s is not None and found.ttft_s.percentile(limits.percentile) > limits.ttft_s:
        return "ttft"
    if limits.tpot_s is not None and found.tpot_s.percentile(limits.percentile) > limits.tpot_s:
        return "tpot"
    return None


@lru_cache(maxsize=8192)
def tpot_estimate_s(replica: Replica, concurrent_requests: int) -> float:
    """Return the mean time per output token of users in flight, without simulating them. [s].

        tpot = decode(n, context) + n / output x prompt

    n requests decode side by side; for each token they make, the engine also reads its share of the
    prompts that take their places.
    """
    load = replica.traffic
    inputs, outputs = mean_length(load.inputs), mean_length(load.outputs)
    decoding = concurrent_requests / replica.streams
    alone = replica.timer.decode_s(decoding, inputs + outputs / 2)
    if load.arrives_read:
        return alone / made_per_step(replica)
    new_tokens = max(inputs * (1 - load.prefix_cache_hit_fraction), 1.0)
    budget = replica.plan.settings.max_num_batched_tokens
    batch = min(max(new_tokens, min(decoding * new_tokens, budget) / 2), budget)
    prompt = replica.timer.mixed_s(batch, inputs / 2, 0.0, 0.0) * new_tokens / batch
    return alone / made_per_step(replica) + decoding / max(outputs, 1.0) * prompt


@lru_cache(maxsize=2048)
def saturation_rate(replica: Replica) -> float:
    """Return the rate at which the queue grows without end: the throughput with every slot taken. [1/s]."""
    if replica.slots < 1:
        return 0.0
    return at_concurrency(replica, replica.slots).requests_per_s

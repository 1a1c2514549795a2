"""What users of one replica see at a load, and the largest load within limits.

A replica of data- and pipeline-parallel ranks serves that many streams of requests side by side;
each stream has its share of the users, of the cache and of `max_num_seqs`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, inf
from typing import Final, Literal

from service.engine.drafting import tokens_per_step
from service.engine.inputs import Limits
from service.engine.kv_cache.plan import in_flight_tokens
from service.engine.load import Traffic, mean_length, open_loop, steady_users
from service.engine.plan import MemoryPlan, cache_growth
from service.engine.scheduler import BlockPool, ScheduleResult, SchedulerSettings, simulate
from service.engine.steps import StepTimer

Violation = Literal["ttft", "tpot", "throughput"]

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
# Rates are searched on a grid of 2^(1/32), about 2 %, from 2^-14 to 2^14 per second.
RATE_STEPS_PER_OCTAVE: Final = 32
RATE_OCTAVES: Final = 14
# Loads above this are searched in steps of about 3 %.
FINE_SEARCH: Final = 32
# An estimate this many times beyond a limit, or this far below it, needs no simulation.
HOPELESS, SAFE = 1.6, 0.4
# A queue that grows by more than this share of arrivals never empties.
GROWING: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replica:
    """One replica: its memory, its step times, and the requests it serves."""

    plan: MemoryPlan
    timer: StepTimer
    traffic: Traffic

    @property
    def streams(self) -> int:
        """Return the batches that run side by side: data-parallel ranks x pipeline stages."""
        return self.plan.layout.data_parallel_size * self.plan.layout.pipeline_parallel_size

    @property
    def slots(self) -> int:
        """Return the requests that run at once, by cache and by `max_num_seqs`."""
        per_rank = min(self.plan.requests_in_cache, self.plan.settings.max_num_seqs)
        return per_rank * self.plan.layout.data_parallel_size


@lru_cache(maxsize=8192)
def replica_of(plan: MemoryPlan, timer: StepTimer, traffic: Traffic) -> Replica:
    """Return the one replica of these parts, so that what is found about it is found once."""
    return Replica(plan=plan, timer=timer, traffic=traffic)


@lru_cache(maxsize=2048)
def at_concurrency(replica: Replica, concurrent_requests: int) -> ScheduleResult:
    """Return what so many users see who always have one request in flight.

    Args:
        replica: the replica; its fullest stream is simulated.
        concurrent_requests: users of the whole replica; those beyond its slots wait. [count]
    """
    users = ceil(concurrent_requests / replica.streams)
    slots = max(ceil(replica.slots / replica.streams), 1)
    most = MOST_USERS_PER_SLOT * slots
    simulated = min(users, most)
    measured = min(max(2 * simulated, FEWEST_MEASURED), MOST_MEASURED)
    found = simulate(
        replica.timer,
        steady_users(replica.traffic, simulated, measured, slots),
        pool=block_pool(replica),
        settings=scheduler_settings(replica),
    )
    return _whole(found if users == simulated else _queueing(found, users, simulated), replica.streams)


@lru_cache(maxsize=2048)
def at_rate(replica: Replica, request_rate_per_s: float) -> ScheduleResult:
    """Return what users see who come at a rate. [1/s]."""
    rate = request_rate_per_s / replica.streams
    # Prompts of many iterations each: fewer of them tell as much, and take as long.
    chunks = mean_length(replica.traffic.inputs) / replica.plan.settings.max_num_batched_tokens
    fewer = max(chunks / MOST_CHUNKS, 1.0)
    warm_up, measured = ceil(OPEN_WARM_UP / fewer), max(ceil(OPEN_MEASURED / fewer), FEWEST_LONG)
    found = simulate(
        replica.timer,
        open_loop(replica.traffic, rate, warm_up, measured, _in_flight(replica, request_rate_per_s)),
        pool=block_pool(replica),
        settings=scheduler_settings(replica),
    )
    return _whole(found, replica.streams)


def _in_flight(replica: Replica, request_rate_per_s: float) -> int:
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


@lru_cache(maxsize=4096)
def block_pool(replica: Replica) -> BlockPool:
    """Return the cache of one stream, as the scheduler sees it."""
    plan = replica.plan
    shape = cache_growth(plan)
    # Blocks in flight are shared by all requests of a step; windows hold their own tokens.
    reserve = shape.blocks_per_request(plan.context_tokens, in_flight_tokens(plan.settings))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a search for the largest load has come; at its end `load` is that load."""

    load: float  # carried for certain: users, or requests per second; 0 when not even the smallest one is
    fails_at: float  # the smallest load known to fail
    violates: Violation | None  # what it fails by; None: nothing but room for more


def violated(found: ScheduleResult, limits: Limits) -> Violation | None:
    """Return the limit that a result breaks at the asked percentile."""
    if limits.ttft_s is not None and found.ttft_s.percentile(limits.percentile) > limits.ttft_s:
        return "ttft"
    if limits.tpot_s is not None and found.tpot_s.percentile(limits.percentile) > limits.tpot_s:
        return "tpot"
    return None


@lru_cache(maxsize=8192)
def most_users(replica: Replica, limits: Limits) -> Reach:
    """Return the most concurrent requests within limits that the replica holds.

    The search visits the same loads whatever the limits are, so that a looser one never finds less.
    """
    *_, last = user_search(replica, limits)
    return last


def user_search(replica: Replica, limits: Limits) -> Iterator[Reach]:
    """Yield each step of the search for the most users."""
    if limits.ttft_s is None and limits.tpot_s is None:
        yield Reach(load=replica.slots, fails_at=replica.slots + 1, violates=None)
        return

    def fails(users: int) -> Violation | None:
        if users > replica.slots:
            return "throughput"
        if limits.tpot_s is not None:
            share = tpot_estimate_s(replica, users) / limits.tpot_s
            if share > HOPELESS:
                return "tpot"
            if share < SAFE and limits.ttft_s is None:
                return None
        return violated(at_concurrency(replica, users), limits)

    for reach in _largest(fails):
        yield replace(reach, violates=None) if reach.violates == "throughput" else reach


@lru_cache(maxsize=65536)
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


def _largest(fails: Callable[[int], Violation | None]) -> Iterator[Reach]:
    """Yield the way to the largest passing number below the first failing power of two."""
    low, high = 0, 1
    why = fails(high)
    while why is None:
        low, high = high, 2 * high
        yield Reach(load=low, fails_at=inf, violates=None)
        why = fails(high)
    yield Reach(load=low, fails_at=high, violates=why)
    while high - low > max(1, low // FINE_SEARCH):
        middle = (low + high) // 2
        reason = fails(middle)
        if reason is None:
            low = middle
        else:
            high, why = middle, reason
        yield Reach(load=low, fails_at=high, violates=why)


@lru_cache(maxsize=8192)
def hoped_users(replica: Replica, limits: Limits, hope: float) -> int:
    """Return users that a quickly timed replica would not exceed within limits, were it faster by a factor."""
    alone = replica.timer.mixed_s(
        mean_length(replica.traffic.inputs), mean_length(replica.traffic.inputs) / 2, 0.0, 0.0
    )
    new_fraction = 0.0 if replica.traffic.arrives_read else 1 - replica.traffic.prefix_cache_hit_fraction
    if limits.ttft_s is not None and alone * new_fraction > hope * limits.ttft_s:
        return 0
    if limits.tpot_s is None:
        return replica.slots
    low, high = 0, replica.slots + 1
    while high - low > 1:
        middle = (low + high) // 2
        if tpot_estimate_s(replica, middle) > hope * limits.tpot_s:
            high = middle
        else:
            low = middle
    return low


def estimated_rate(replica: Replica, users: int) -> float:
    """Return the throughput of so many users, without simulating them. [1/s]."""
    return users / (max(mean_length(replica.traffic.outputs), 1.0) * tpot_estimate_s(replica, users))


@lru_cache(maxsize=8192)
def saturation_rate(replica: Replica) -> float:
    """Return the rate at which the queue grows without end: the throughput with every slot taken. [1/s]."""
    if replica.slots < 1:
        return 0.0
    return at_concurrency(replica, replica.slots).requests_per_s


@lru_cache(maxsize=8192)
def highest_rate(replica: Replica, limits: Limits) -> Reach:
    """Return the highest arrival rate within limits; without limits, the one at which the queue diverges.

    The search visits the same rates whatever the limits are, so that a looser one never finds less.
    """
    *_, last = rate_search(replica, limits)
    return last


def rate_search(replica: Replica, limits: Limits) -> Iterator[Reach]:
    """Yield each step of the search for the highest rate."""
    hopeless = HOPELESS * estimated_rate(replica, MOST_USERS_PER_SLOT * max(replica.slots, 1))
    low, high = -RATE_OCTAVES * RATE_STEPS_PER_OCTAVE, RATE_OCTAVES * RATE_STEPS_PER_OCTAVE
    why: Violation | None = None
    while high - low > 1:
        middle = (low + high) // 2
        rate = _rate(middle)
        reason: Violation | None = "throughput" if rate > hopeless else _unmet(replica, rate, limits)
        if reason is None:
            low = middle
        else:
            high, why = middle, reason
        reached = 0.0 if low == -RATE_OCTAVES * RATE_STEPS_PER_OCTAVE else _rate(low)
        yield Reach(load=reached, fails_at=_rate(high), violates=why)


def _unmet(replica: Replica, request_rate_per_s: float, limits: Limits) -> Violation | None:
    """Return the limit that an open loop breaks; a queue that grows breaks the last one."""
    if limits.ttft_s is not None or limits.tpot_s is not None:
        found = at_rate(replica, request_rate_per_s)
        broken = violated(found, limits)
        if broken is not None:
            return broken
        if found.queue_growth_per_s > GROWING * request_rate_per_s:
            return "throughput"
    return "throughput" if request_rate_per_s > saturation_rate(replica) else None


def _rate(step: int) -> float:
    return float(2 ** (step / RATE_STEPS_PER_OCTAVE))

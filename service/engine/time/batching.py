"""How one replica batches: the engine's settings and the cache of one stream, and the streams side by side.

A replica of data- and pipeline-parallel ranks serves that many streams of requests side by side;
each stream has its share of the users, of the cache and of `max_num_seqs`.

Copies of the attention whose tokens meet in experts take every step together, and are simulated as one stream: each of
them reads no more tokens a step than it has, and all wait for the fullest.

    tokens of a step = own share x fullest copy + (1 - own share) x mean of all,  own share of `Timing`
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf
from typing import Final

from service.engine.engines.rules import EngineRules
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import Architecture
from service.engine.memory.plan import MemoryPlan, cache_growth
from service.engine.time.drafting import steps_spread, tokens_per_step
from service.engine.time.records import PACE, Records, new_records
from service.engine.time.steps import Timing
from service.engine.time.traffic import Traffic

# Of more copies a part stands for all, that divides them: of sixteen one reads in nearly every step already.
MOST_TOGETHER: Final = 16
MOST_RUNNING: Final = 16_384  # requests of one simulated stream


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """The engine's settings that shape its batches."""

    max_num_batched_tokens: int  # [tokens]
    max_num_seqs: int
    prefix_cache_hit_fraction: float = 0.0
    reserves_output: bool = False  # a request joins only with room for its last token: no eviction
    expects_output: bool = False  # a request joins only beside a share of what others have yet to write
    reads_alone: bool = False  # nobody decodes in iterations that read prompts
    read_every: int = 1  # iterations, of which one reads prompts while others decode
    copies: int = 1  # of the attention, which take every step together, as their tokens meet in the experts
    own_share: float = 1.0  # of a step, that goes by a copy's own tokens; the rest by those of all
    tokens_per_step: float = 1.0  # above 1 with speculative decoding: accepted drafts and the model's own
    steps_spread: float = 0.0  # of an answer, by the chance of its drafts: standard deviation over its square root
    tokens_scheduled: int = 1  # of each decoding request, accepted or not
    steps_planned_ahead: int = 0  # iterations a new request sits out because they were planned before it came


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPool:
    """The cache: how many blocks there are, and how many a request of a given length holds.

    `tokens` and `blocks` are knots of a rising function, linear between them and beyond the last.
    """

    num_blocks: float
    tokens: tuple[float, ...]
    blocks: tuple[float, ...]

    def of_request(self, tokens: float) -> float:
        """Return the blocks of one request. [blocks].

        >>> BlockPool(num_blocks=100, tokens=(16.0, 32.0), blocks=(1.0, 2.0)).of_request(24)
        1.5
        """
        knots = self.tokens
        right = min(max(bisect_right(knots, tokens), 1), len(knots) - 1)
        left = right - 1
        slope = (self.blocks[right] - self.blocks[left]) / (knots[right] - knots[left])
        return self.blocks[left] + slope * (tokens - knots[left])


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What serves and what is served: all that the pace of a replica depends on, but for its cache."""

    timing: Timing
    traffic: Traffic
    settings: SchedulerSettings  # of one stream
    streams: int  # data-parallel ranks x pipeline stages
    slots: int  # requests that run at once, by cache and by `max_num_seqs`
    stages: int = 1  # of a rank: their streams share its cache

    @cached_property
    def estimated(self) -> tuple[Records, Records]:
        """Return its step times, and the means of its traffic, as compiled estimates read them."""
        traffic, settings, records = self.traffic, self.settings, new_records(1, PACE)
        inputs = traffic.inputs.mean()
        new_tokens = 0.0 if traffic.arrives_read else max(inputs * (1 - traffic.prefix_cache_hit_fraction), 1.0)
        records["input_tokens"], records["output_tokens"] = inputs, traffic.outputs.mean()
        records["new_tokens"], records["max_num_batched_tokens"] = new_tokens, settings.max_num_batched_tokens
        records["tokens_per_step"], records["streams"] = settings.tokens_per_step, self.streams
        records["slots"] = self.slots
        return self.timing.records, records

    @property
    def groups(self) -> int:
        """Return the streams that are simulated: copies that take every step together are one. [count]."""
        return self.streams // self.settings.copies

    @property
    def slots_of_group(self) -> int:
        """Return the requests that the copies of a simulated stream run at once. [count]."""
        return self.settings.copies * self.slots_of_stream

    @property
    def decoding_of_group(self) -> int:
        """Return the requests that decode at once in all of them, at most. [count]."""
        return self.settings.copies * self.decoding_of_stream

    @property
    def waits_for_prompts(self) -> bool:
        """Return whether tokens wait for all chunks of prompts, or for those of other copies of the attention."""
        return self.settings.reads_alone or self.settings.copies > 1

    @property
    def slots_of_stream(self) -> int:
        """Return the requests that one stream runs at once, at least 1."""
        return max(ceil(self.slots / self.streams), 1)

    def in_every_stream(self, users: int) -> int:
        """Return the users there would be, were every stream as full as the fullest: as arrivals fill them. [count]."""
        return self.streams * ceil(users / self.streams)

    def cache_share(self, users: int) -> float:
        """Return what the fullest stream has of the cache that its rank's stages share, in equal parts of a stage.

        Of six requests over five stages two are in one of them, and hold a third of what all hold: 5 / 3 of a part.

        Args:
            users: of all streams. [count]
        """
        of_rank = max(ceil(users * self.stages / self.streams), 1)
        return self.stages * ceil(of_rank / self.stages) / of_rank

    @property
    def decoding_of_stream(self) -> int:
        """Return the requests that decode at once in one stream, at most: as many as its steps can read meanwhile.

            decoding <= steps x budget / (prompt + steps x tokens a step), where steps = output / tokens kept a step

        An engine that reads in steps of its own fills its slots first.
        """
        if self.settings.reads_alone:
            return self.slots_of_stream
        _, (means,) = self.estimated
        steps = max(float(means["output_tokens"]) / self.settings.tokens_per_step, 1.0)
        taken = float(means["new_tokens"]) + steps * self.settings.tokens_scheduled
        return max(min(self.slots_of_stream, ceil(steps * self.settings.max_num_batched_tokens / taken)), 1)


def with_tokens(settings: EngineSettings, layout: Layout, rules: EngineRules) -> float:
    """Return the requests of one attention replica that a step has tokens for; infinite where prompts are read alone.

        requests = stages x ceil(max_num_batched_tokens / (k + 1)),  k drafted tokens

    One that answers takes its drafts' tokens of every step, accepted or not, and while none is left nobody joins:
    vLLM 0.33 `v1/core/sched/scheduler.py` (`schedule`: `while token_budget > 0`).
    """
    if rules.serving_engine.reads_alone:
        return inf
    each = settings.num_speculative_tokens + 1
    return layout.pipeline_parallel_size * ceil(settings.max_num_batched_tokens / each)


def running_at_once(plan: MemoryPlan) -> int:
    """Return the requests that one attention replica runs at once: by cache, by slots, and by the tokens of a step."""
    settings = plan.settings
    return int(min(plan.requests_in_cache, settings.max_num_seqs, with_tokens(settings, plan.layout, plan.rules)))


def serving_of(plan: MemoryPlan, timing: Timing, traffic: Traffic) -> Serving:
    """Return how a plan serves a traffic."""
    layout = plan.layout
    per_rank = running_at_once(plan)
    return Serving(
        timing=timing,
        traffic=traffic,
        settings=settings_of(plan, timing, traffic),
        streams=layout.data_parallel_size * layout.pipeline_parallel_size,
        slots=per_rank * layout.data_parallel_size,
        stages=layout.pipeline_parallel_size,
    )


def copies_of(architecture: Architecture, layout: Layout, rules: EngineRules, running: int) -> int:
    """Return the copies of the attention whose tokens meet in the experts of every step, as many as are followed.

    Args:
        architecture: the model.
        layout: how one replica is spread.
        rules: the engine version's.
        running: requests that one copy runs at once. [count]
    """
    copies = layout.data_parallel_size
    if copies == 1 or not architecture.has_experts or not rules.serving_engine.copies_step_together:
        return 1
    most = min(MOST_TOGETHER, max(MOST_RUNNING // max(running, 1), 1))
    return max(each for each in range(1, most + 1) if copies % each == 0)


def share_of_reader(timing: Timing, copies: int) -> float:
    """Return what a prompt takes of a step of its tokens where one of so many copies reads, and no other does."""
    return timing.own_share + (1.0 - timing.own_share) / copies if copies > 1 else 1.0


def together(settings: SchedulerSettings, timing: Timing, copies: int) -> SchedulerSettings:
    """Return the settings of one stream of so many copies of the attention whose tokens meet."""
    if copies == 1:
        return settings
    return replace(settings, max_num_seqs=copies * settings.max_num_seqs, copies=copies, own_share=timing.own_share)


def settings_of(plan: MemoryPlan, timing: Timing, traffic: Traffic) -> SchedulerSettings:
    """Return the engine's settings for one stream: of all copies of the attention whose tokens meet, together."""
    of_one = scheduler_settings(plan.settings, plan.layout, plan.rules, traffic)
    return together(of_one, timing, copies_in(plan))


def copies_in(plan: MemoryPlan) -> int:
    """Return the copies of the attention that a stream of a plan follows. [count]."""
    return copies_of(plan.model.architecture, plan.layout, plan.rules, running_at_once(plan))


def scheduler_settings(
    settings: EngineSettings, layout: Layout, rules: EngineRules, traffic: Traffic
) -> SchedulerSettings:
    """Return the engine's settings for one stream of one copy of the attention."""
    drafted = settings.num_speculative_tokens
    return SchedulerSettings(
        max_num_batched_tokens=settings.max_num_batched_tokens,
        max_num_seqs=ceil(settings.max_num_seqs / layout.pipeline_parallel_size),  # the fullest stage's
        prefix_cache_hit_fraction=traffic.prefix_cache_hit_fraction,
        reserves_output=rules.serving_engine.reserves_output,
        expects_output=rules.serving_engine.expects_output,
        reads_alone=rules.serving_engine.reads_alone,
        tokens_per_step=tokens_per_step(drafted, traffic.speculative_acceptance_fraction) if drafted else 1.0,
        steps_spread=steps_spread(drafted, traffic.speculative_acceptance_fraction) if drafted else 0.0,
        tokens_scheduled=drafted + 1,
        steps_planned_ahead=rules.steps_planned_ahead,
    )


def block_pool(plan: MemoryPlan) -> BlockPool:
    """Return the cache of one stream, as the scheduler sees it."""
    knots = _knots(plan.settings.max_model_len, plan.kv_cache.block_size)
    shape = cache_growth(plan)
    # Blocks in flight are shared by all requests of a step; windows hold their own tokens.
    reserve = shape.blocks_per_request(plan.context_tokens, plan.in_flight_tokens)
    steady = shape.blocks_per_request(plan.context_tokens, 0)
    usable = plan.kv_cache.num_gpu_blocks - 1 - (reserve - steady)
    of_copy = max(usable / plan.layout.pipeline_parallel_size, 1.0)
    return BlockPool(
        num_blocks=copies_in(plan) * of_copy,
        tokens=tuple(float(tokens) for tokens in knots),
        blocks=tuple(float(shape.blocks_per_request(tokens, 0)) for tokens in knots),
    )


def _knots(longest_tokens: int, block_size: int) -> Sequence[int]:
    """Return lengths in whole blocks, doubling, so that rounding up to blocks does not bend the line."""
    knots = [block_size]
    while knots[-1] < max(longest_tokens, 2 * block_size):
        knots.append(2 * knots[-1])
    return knots

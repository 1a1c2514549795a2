"""What no deployment of a layout is better than in time, told before anything is planned or simulated.

A layout's own step times, with as many slots as its memory has room for at most, leave no hope for most of a dozen
layouts with eight settings each: those are not looked at.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import Final, cast

from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.rooms import Rooms
from service.engine.fleet.settings import Resolved
from service.engine.fleet.variants import batched_tokens
from service.engine.inputs import Layout, Load
from service.engine.memory.held import Room
from service.engine.time.batching import SchedulerSettings, Serving, copies_of, scheduler_settings, together
from service.engine.time.demand import wanted_of
from service.engine.time.estimate import alone_by, budgets_at_best, fewest_at_best, reading_s, token_s
from service.engine.time.roomy import share_of
from service.engine.time.steps import Deployed, StepTimers, Timing, keeps_states
from service.engine.time.traffic import traffic_of

ENDLESS_SLOTS: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)  # without slots, for what is made once
class Ceilings:
    """The ceilings of one question: by memory, where that alone decides, else by time."""

    question: SizeQuestion
    resolved: Resolved
    rooms: Rooms

    def replicas_at_best(self, layout: Layout, at_most: float, *, is_own: bool) -> float:
        """Return the fewest replicas of a layout that may carry the load, with spares; infinite where none do.

        Args:
            layout: of one replica.
            at_most: the most replicas of interest, spares included. [replicas]
            is_own: under the engine's own settings, or any.
        """
        question, spares = self.question, self.question.headroom.spare_replicas
        if question.is_of_memory:
            return self.replicas_that_hold(layout, is_own=is_own)
        if at_most <= spares or not self.rooms.may_hold(question.load, layout, is_own=is_own):
            return inf
        budgets = (self.resolved.settings.max_num_batched_tokens,) if is_own else self._in_question
        fewest = 1.0
        for serving in self._servings(layout, is_own=is_own):
            wanted = wanted_of(question.load, question.headroom)
            fewest = fewest_at_best(serving, budgets, wanted, question.limits, at_most - spares)
            if fewest == inf:
                break
        return fewest + spares

    def _servings(self, layout: Layout, *, is_own: bool) -> Iterator[Serving]:
        """Yield how a layout would serve whose stages passed nothing on and had endless room, then how it does at best.

        Stages together read and compute what one does: its step times, which other stages share, tell of most layouts.
        None where only a plan tells.
        """
        timers, resolved = self.question.timers, self.resolved
        # What a caller measured is of one layout; what drafts make of a step is for the plan to tell.
        is_alone = resolved.rules.measured or resolved.settings.num_speculative_tokens
        if timers is not None and layout.pipeline_parallel_size > 1 and not is_alone:
            timing = timers.timer(timed_as(resolved, replace(layout, pipeline_parallel_size=1)))
            if timing is not None:
                yield served_with(timing, resolved, layout, self.question.load, ENDLESS_SLOTS)
        serving = self.serving(layout, is_own=is_own)
        if serving is not None:
            yield serving

    def replicas_that_hold(self, layout: Layout, *, is_own: bool = False) -> float:
        """Return the same by memory alone: one, where time decides."""
        spares = self.question.headroom.spare_replicas
        if not self.question.is_of_memory:
            return 1 + spares
        return self.rooms.replicas_at_best(self.question, layout, is_own=is_own) + spares

    def replicas_by_weight(self, layout: Layout) -> float:
        """Return the same, and infinite where the GPUs of a layout are lighter than the weights alone."""
        return inf if self.rooms.is_too_heavy(layout) else self.replicas_that_hold(layout)

    def may_serve(self, layout: Layout, hope: float) -> bool:
        """Return whether any settings may: by memory, or one request in time, were kernels faster by a factor.

        What it takes to read its prompt, and to make one of its tokens, is the same under all settings: where a quick
        estimate of that is too long, none of them need be planned.
        """
        question, resolved = self.question, self.resolved
        limits, timers = question.limits, question.timers
        if question.is_of_memory:
            return self.replicas_that_hold(layout) < inf
        if timers is None or resolved.settings.num_speculative_tokens:
            return True
        timing = timers.quick(timed_as(resolved, layout)) if limits.are_stated else None
        if timing is None:
            return True
        traffic, streams = traffic_of(question.load), layout.data_parallel_size * layout.pipeline_parallel_size
        is_read = limits.ttft_s is None or reading_s(timing, traffic) <= hope * limits.ttft_s
        return is_read and (limits.tpot_s is None or token_s(timing, traffic, streams) <= hope * limits.tpot_s)

    def budgets(self, layout: Layout, at_most: float) -> tuple[int, ...]:
        """Return the token budgets under which so many replicas of a layout may carry the load. [tokens].

        Args:
            layout: of one replica.
            at_most: the most replicas of interest, spares included. [replicas]
        """
        question, replicas = self.question, at_most - self.question.headroom.spare_replicas
        if replicas < 1 or not self.rooms.may_hold(question.load, layout, is_own=False):
            return ()
        if question.is_of_memory:
            under = ((tokens, self.rooms.replicas_under(question, layout, tokens)) for tokens in self._in_question)
            return tuple(tokens for tokens, fewest in under if fewest <= replicas and fewest < inf)
        serving = self.serving(layout, is_own=False)
        if serving is None:
            return self._in_question
        share = share_of(wanted_of(question.load, question.headroom), replicas)
        return budgets_at_best(serving, self._in_question, share, question.limits)

    @cached_property
    def _in_question(self) -> tuple[int, ...]:
        return batched_tokens(self.resolved)

    def serving(self, layout: Layout, *, is_own: bool) -> Serving | None:
        """Return how a layout serves with all the room it may have; None where only a plan tells."""
        room_of = partial(self.rooms.of, layout, is_own=is_own)
        return serving_at_best(self.question.timers, self.resolved, layout, self.question.load, room_of)


def serving_at_best(
    timers: StepTimers | None, resolved: Resolved, layout: Layout, load: Load, room_of: Callable[[], Room | None]
) -> Serving | None:
    """Return how a layout serves a load with all the room it may have; None where only a plan tells.

    Args:
        timers: what times it; None: nobody.
        resolved: the engine's own settings, or those stated.
        layout: of one replica.
        load: users or arrivals.
        room_of: what the layout has room for at most, where that is known.
    """
    if timers is None or resolved.settings.num_speculative_tokens:  # the plan tells what drafts make of it
        return None
    timing = timers.timer(timed_as(resolved, layout))
    if timing is None:
        return None
    room = room_of()
    slots = ENDLESS_SLOTS if room is None else room.users(load.input_tokens + load.output_tokens)
    return served_with(timing, resolved, layout, load, slots)


def served_with(timing: Timing, resolved: Resolved, layout: Layout, load: Load, slots: int) -> Serving:
    """Return how a layout serves a load with so many slots, before it is planned.

    As many copies of the attention are followed as settings may have followed: of fewer, each reads as if all did.
    """
    traffic, architecture = traffic_of(load), resolved.model.architecture
    of_one = scheduler_settings(resolved.settings, layout, resolved.rules, traffic)
    copies = copies_of(architecture, layout, resolved.rules, running=1)
    return Serving(
        timing=timing,
        traffic=traffic,
        settings=together(of_one, timing, copies),
        streams=layout.data_parallel_size * layout.pipeline_parallel_size,
        slots=slots,
    )


def unplanned(timing: Timing, layout: Layout, load: Load, max_num_batched_tokens: int) -> Serving:
    """Return how a layout serves a load with endless room and without drafts: for estimates, before it is planned."""
    settings = SchedulerSettings(
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_seqs=ENDLESS_SLOTS,
        prefix_cache_hit_fraction=load.prefix_cache_hit_fraction,
    )
    streams = layout.data_parallel_size * layout.pipeline_parallel_size
    return Serving(timing=timing, traffic=traffic_of(load), settings=settings, streams=streams, slots=ENDLESS_SLOTS)


def least_s(question: SizeQuestion, resolved: Resolved, layout: Layout) -> float:
    """Return the time of one request alone, which no load makes less; 0 where nobody tells it. [s].

    It is kept apart from all other times, and takes a tenth of their room: by it alone most layouts are left out.
    """
    timers, key = question.timers, timed_as(resolved, layout)
    if timers is None or resolved.settings.num_speculative_tokens:
        return 0.0

    def alone() -> Timing | None:
        timing = timers.timer(key)
        return None if timing is None else replace(timing, steps=timing.steps.alone())

    timing = cast("Timing | None", timers.simulations.alone.get_or((timers, key.key), alone))
    return 0.0 if timing is None else alone_by(timing, traffic_of(question.load))


def timed_as(resolved: Resolved, layout: Layout) -> Deployed:
    """Return what the step times of a layout depend on, before it is planned."""
    return Deployed(
        model=resolved.model,
        checkpoint=resolved.checkpoint,
        gpu=resolved.gpu,
        layout=layout if layout.decode_context_parallel_size == 1 else replace(layout, decode_context_parallel_size=1),
        kv_cache_dtype=resolved.settings.kv_cache_dtype,
        rules=resolved.rules,
        keeps_states=keeps_states(resolved.model, resolved.settings),
    )

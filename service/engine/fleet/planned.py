"""The memory plans of what is deployed: one for each layout that the engine would start."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from service.engine.engines.device import Device, device_of
from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.drafted import drafted_space
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import Resolved
from service.engine.fleet.shortlist import most_together
from service.engine.fleet.space import Space, Target, space_of
from service.engine.inputs import Layout, StatedLayout
from service.engine.memory.held import requests_in_cache
from service.engine.memory.kernels import asked_of, runs_over_ranks
from service.engine.memory.plan import MemoryPlan, memory_plan, pool_error_bytes

# Of the longest requests in a pool: so many leave one where the pool is smaller by its error.
CERTAINLY_HELD: Final = 4.0


def legal_layouts(resolved: Resolved, stated: StatedLayout) -> Space:
    """Return the layouts that the engine would start, smallest first.

    Raises:
        UnsupportedLayoutError: the engine refuses every layout with the stated parts.
    """
    architecture, quantization = resolved.model.architecture, resolved.checkpoint.quantization
    device = device_of(resolved.gpu, resolved.rules)
    exchange = resolved.stated.all2all_backend
    target = Target(gpu=resolved.gpu, engine=resolved.rules.engine, device=device, all2all_backend=exchange)
    space = drafted_space(space_of(architecture, quantization, target, stated), architecture, resolved.settings, device)
    if resolved.stated.enable_two_batch_overlap:
        return _overlapping(space)
    if stated.decode_context_parallel_size is not None or not space.ranks_of_context:
        return space
    return _read_over_ranks(space, resolved, device)


def _overlapping(space: Space) -> Space:
    """Return the same layouts with batches that overlap."""
    usual, unusual = (
        tuple(replace(layout, enable_two_batch_overlap=True) for layout in layouts)
        for layouts in (space.usual, space.unusual)
    )
    return Space(usual=usual, unusual=unusual)


def _read_over_ranks(space: Space, resolved: Resolved, device: Device) -> Space:
    """Return a space without caches spread over ranks for which no kernel puts together what is asked for.

    What others spread as well was left out before; this is of the cache's dtype and blocks.
    """
    settings, architecture = resolved.settings, resolved.model.architecture
    without = {
        ranks
        for ranks in space.ranks_of_context
        if not runs_over_ranks(architecture, asked_of(architecture, settings, ranks), device)
    }
    if not without:
        return space
    return replace(
        space, unusual=tuple(each for each in space.unusual if each.decode_context_parallel_size not in without)
    )


def layouts_of(question: SizeQuestion, resolved: Resolved) -> Space:
    """Return the layouts in question: legal, and on GPUs of one server, near to each other, where the question says so.

    Raises:
        UnsupportedLayoutError: the engine refuses every layout with the stated parts, or none is as small as a server.
    """
    space, most = legal_layouts(resolved, question.layout), most_together(question.gpu)
    if not question.stays_in_server:
        return space
    usual, unusual = (
        tuple(layout for layout in layouts if layout.gpus_per_replica <= most)
        for layouts in (space.usual, space.unusual)
    )
    if usual or unusual:
        return Space(usual=usual, unusual=unusual)
    raise UnsupportedLayoutError(
        f"the layout takes more than the {most} {question.gpu.name} of a server that are near to each other",
        field="gpus",
        accepted=f"gpus={question.gpu.id}, to have such replicas considered",
    )


def surely_planned(resolved: Resolved, layout: Layout, input_tokens: int, output_tokens: int) -> MemoryPlan:
    """Return the plan for requests of these lengths, which holds none where its error may leave none. [tokens].

    A pool that is predicted to hold one request, and is smaller than that by its stated error, is not a deployment:
    the engine may refuse to start.
    """
    plan = planned(resolved, layout, input_tokens, output_tokens)
    error, held = pool_error_bytes(plan), plan.requests_in_cache
    if not held or (held > 1 and plan.memory.kv_cache_bytes >= 2 * error):
        return plan
    # A stated context that the smaller pool does not hold is told as a missing margin, when the command is made.
    smallest = replace(_with_smallest_pool(resolved, plan), shorten_to_fit=True)
    smaller = planned(smallest, layout, input_tokens, output_tokens)
    return plan if smaller.requests_in_cache else replace(plan, requests_in_cache=0)


def surely_served(resolved: Resolved, layout: Layout) -> int:
    """Return the longest context that is served though the pool be as small as its error allows. [tokens]."""
    plan = planned(resolved, layout, 0, 0)
    if plan.kv_cache.max_concurrency > CERTAINLY_HELD:
        return plan.settings.max_model_len
    return planned(_with_smallest_pool(resolved, plan), layout, 0, 0).settings.max_model_len


def _with_smallest_pool(resolved: Resolved, plan: MemoryPlan) -> Resolved:
    """Return settings that give a pool as small as a plan's may be."""
    pool_bytes = max(plan.memory.kv_cache_bytes - pool_error_bytes(plan), 1)
    return replace(resolved, settings=replace(resolved.settings, kv_cache_memory_bytes=pool_bytes))


def held_of(resolved: Resolved, layout: Layout, input_tokens: int, output_tokens: int) -> Callable[[int], int]:
    """Return what tells by `max_num_seqs` how many requests the cache holds, as `planned` says. [count]."""
    held = requests_in_cache(
        resolved.model,
        resolved.checkpoint,
        resolved.gpu,
        layout,
        resolved.settings,
        resolved.rules,
        context_tokens=input_tokens + output_tokens,
        longest_tokens=0 if resolved.shorten_to_fit else resolved.settings.max_model_len,
    )
    return held or by_plans(resolved, lambda other: planned(other, layout, input_tokens, output_tokens))


def by_plans(resolved: Resolved, plan_of: Callable[[Resolved], MemoryPlan]) -> Callable[[int], int]:
    """Return what tells by `max_num_seqs` how many requests the cache holds, by whole plans. [count]."""

    def held(max_num_seqs: int) -> int:
        settings = replace(resolved.settings, max_num_seqs=max_num_seqs)
        return plan_of(replace(resolved, settings=settings)).requests_in_cache

    return held


def planned(resolved: Resolved, layout: Layout, input_tokens: int, output_tokens: int) -> MemoryPlan:
    """Return the memory plan of one layout for requests of these lengths. [tokens]."""
    return memory_plan(
        resolved.model,
        resolved.checkpoint,
        resolved.gpu,
        layout,
        resolved.settings,
        resolved.rules,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        shorten_to_fit=resolved.shorten_to_fit,
    )

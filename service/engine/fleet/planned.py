"""The memory plans of what is deployed: one for each layout that the engine would start."""

from collections.abc import Callable
from dataclasses import replace

from service.engine.engines.device import device_of
from service.engine.fleet.settings import Resolved
from service.engine.fleet.space import Space, Target, space_of
from service.engine.inputs import Layout, StatedLayout
from service.engine.memory.plan import MemoryPlan, memory_plan, requests_in_cache


def legal_layouts(resolved: Resolved, stated: StatedLayout) -> Space:
    """Return the layouts that the engine would start, smallest first.

    Raises:
        UnsupportedLayoutError: the engine refuses every layout with the stated parts.
    """
    architecture, quantization = resolved.model.architecture, resolved.checkpoint.quantization
    device = device_of(resolved.gpu, resolved.rules)
    target = Target(gpu=resolved.gpu, engine=resolved.rules.engine, device=device)
    return space_of(architecture, quantization, target, stated)


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

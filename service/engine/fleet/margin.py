"""Settings that still start where the ledger errs: what is printed keeps its stated error as margin."""

from dataclasses import dataclass, replace
from typing import Final

from service.engine.arithmetic import GIB
from service.engine.fleet.batches import tokens_of_each
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.planned import CERTAINLY_HELD, planned
from service.engine.inputs import EngineSettings
from service.engine.memory.plan import MemoryPlan, pool_error_bytes

# What a process takes of an empty GPU before the engine looks at what is free.
CONTEXT_BYTES: Final = round(0.5 * GIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeSettings:
    """Settings to print, and what a reader must know about them."""

    settings: EngineSettings
    notes: tuple[str, ...]


def safe_settings(deployment: Deployment) -> SafeSettings:
    """Return the settings with which the engine starts though its pool is as small as the ledger's error allows."""
    plan, stated = deployment.plan, deployment.resolved.stated
    pool_bytes = max(plan.memory.kv_cache_bytes - pool_error_bytes(plan), 1)
    smallest = plan if _is_ample(plan, pool_bytes) else _with_pool(deployment, pool_bytes)
    longest = smallest.kv_cache.estimated_max_model_len
    settings = plan.settings
    notes: list[str] = []
    if longest < settings.max_model_len:
        if stated.max_model_len is None:
            settings = replace(settings, max_model_len=max(longest, plan.context_tokens))
            notes += _lowered("max_model_len", settings.max_model_len, plan.settings.max_model_len)
        if longest < settings.max_model_len:
            starts = plan.rules.serving_engine.starts_beside_small_pools
            refused = "longer requests" if starts else f"max_model_len {settings.max_model_len}"
            notes.append(
                f"no margin: the predicted pool holds requests of {plan.kv_cache.estimated_max_model_len} tokens, and "
                f"where the ledger errs of {longest}; {refused} may be refused"
            )
    seqs = _most_seqs(plan, smallest)
    if seqs < settings.max_num_seqs:
        is_refused = _most_seqs(plan, plan) < settings.max_num_seqs
        notes += _lowered("max_num_seqs", seqs, settings.max_num_seqs, is_refused=is_refused)
        settings = replace(settings, max_num_seqs=seqs)
    if plan.rules.memory_share == "total" and _wanted_bytes(plan) > plan.gpu.memory_bytes - CONTEXT_BYTES:
        notes.append(
            f"gpu_memory_utilization {settings.gpu_memory_utilization:g} may be refused: less than that share of the "
            "GPU is free when the engine starts"
        )
    return SafeSettings(settings=settings, notes=tuple(notes))


def _lowered(name: str, printed: int, sized: int, *, is_refused: bool = False) -> tuple[str, ...]:
    """Return that the command has less of a setting than the answer was sized with, and why."""
    if printed == sized:
        return ()
    why = "the engine refuses to start with that" if is_refused else "with that it may not start where the ledger errs"
    return (f"the command has {name} {printed}, not {sized}: {why}",)


def _is_ample(plan: MemoryPlan, pool_bytes: int) -> bool:
    """Return whether half the pool holds the longest context with room to spare, and the smallest is no less."""
    is_held = plan.kv_cache.max_concurrency > CERTAINLY_HELD and 2 * pool_bytes >= plan.memory.kv_cache_bytes
    return is_held and not _has_states(plan)


def _has_states(plan: MemoryPlan) -> bool:
    return any(mixer.is_recurrent for mixer in plan.model.architecture.mixers)


def _with_pool(deployment: Deployment, pool_bytes: int) -> MemoryPlan:
    """Return the plan of the same settings with a pool of this size."""
    plan = deployment.plan
    settings = replace(
        deployment.resolved.settings,
        kv_cache_memory_bytes=pool_bytes,
        max_model_len=plan.settings.max_model_len,
        max_num_seqs=plan.settings.max_num_seqs,
    )
    resolved = replace(deployment.resolved, settings=settings, shorten_to_fit=False)
    return planned(resolved, plan.layout, deployment.load.input_tokens, deployment.load.output_tokens)


def _most_seqs(plan: MemoryPlan, smallest: MemoryPlan) -> int:
    """Return the largest `max_num_seqs` that the engine starts with, up to the one that was sized."""
    slots = max(plan.settings.max_num_batched_tokens // tokens_of_each(plan.settings, plan.rules), 1)
    most = plan.rules.serving_engine.command_line.most_sequences(
        slots, smallest.kv_cache.num_gpu_blocks if _has_states(plan) else None
    )
    return plan.settings.max_num_seqs if most is None else min(plan.settings.max_num_seqs, most)


def _wanted_bytes(plan: MemoryPlan) -> float:
    if plan.settings.kv_cache_memory_bytes is not None:
        return 0.0
    return plan.settings.gpu_memory_utilization * plan.gpu.memory_bytes

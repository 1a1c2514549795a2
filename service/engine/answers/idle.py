"""What was stated and decides nothing, or less than it says."""

from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import StatedLayout
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import running_at_once


def idle_warnings(plan: MemoryPlan, stated: StatedSettings, layout: StatedLayout) -> tuple[str, ...]:
    """Return which parts of a question the engine, or the model, makes nothing of."""
    return (*_of_states(plan, stated), *_of_one_rank(plan, layout), *_of_crowded_steps(plan))


def _of_states(plan: MemoryPlan, stated: StatedSettings) -> tuple[str, ...]:
    """Return which stated settings are of states that the model does not keep."""
    dtypes = {"mamba_cache_dtype": stated.mamba_cache_dtype, "mamba_ssm_cache_dtype": stated.mamba_ssm_cache_dtype}
    if plan.kv_cache.state_bytes_per_request:
        return ()
    return tuple(
        f"{name} decides nothing: {plan.model.id} has no recurrent states"
        for name, dtype in dtypes.items()
        if dtype != "auto"
    )


def _of_one_rank(plan: MemoryPlan, layout: StatedLayout) -> tuple[str, ...]:
    """Return that experts were to be dealt out where one rank has them all."""
    if not layout.expert_parallel or plan.layout.expert_parallel:
        return ()
    return ("expert_parallel decides nothing: a single rank holds every expert of its layers whole",)


def _of_crowded_steps(plan: MemoryPlan) -> tuple[str, ...]:
    """Return that drafts leave a step tokens for fewer requests than cache and slots do."""
    settings, at_once = plan.settings, running_at_once(plan)
    if at_once >= min(plan.requests_in_cache, settings.max_num_seqs):
        return ()
    drafted, tokens = settings.num_speculative_tokens, settings.max_num_batched_tokens
    room = f"a step of {tokens} tokens (max_num_batched_tokens) has them for {at_once} requests"
    return (f"{room} with {drafted} drafts each: more than those wait, whatever max_num_seqs is",)

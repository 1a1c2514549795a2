"""What binds, what one step more or fewer would do, and what a caller could change."""

from dataclasses import replace

from service.engine.answers.results import Change, GpuStep, Lever
from service.engine.arithmetic import GIB
from service.engine.errors import EngineError
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.deployments import Deployment, best, deployments
from service.engine.fleet.questions import SizeQuestion, StatedSettings
from service.engine.fleet.results import BindingConstraint
from service.engine.inputs import Limits
from service.engine.memory.plan import MemoryPlan
from service.engine.time.replica import Replica


def binding_constraint(chosen: Deployment, smaller: Deployment | None) -> BindingConstraint:
    """Return the limit that forbids fewer GPUs.

    With several replicas it is what fills one of them; with one replica it is what the next
    smaller layout could not do; on the smallest layout it is what will fill first.
    """
    if not chosen.is_feasible:
        return _reason(chosen)
    if chosen.replicas > 1 or smaller is None:
        return chosen.capacity.binds
    return _reason(smaller)


def _reason(deployment: Deployment) -> BindingConstraint:
    if not deployment.plan.weights_fit:
        return "weights"
    if not deployment.plan.holds_one_request:
        return "kv_cache"
    return deployment.capacity.binds


def one_step_less(chosen: Deployment, smaller: Deployment | None) -> GpuStep | None:
    """Return what fewer GPUs would violate: one replica less, or the next smaller layout."""
    if not chosen.is_feasible:
        return None
    if chosen.replicas > 1:
        gpus = chosen.gpus - chosen.layout.gpus_per_replica
        return GpuStep(gpus=gpus, feasible=False, violates=chosen.capacity.binds)
    if smaller is None:
        return None
    return GpuStep(gpus=smaller.layout.gpus_per_replica, feasible=False, violates=_reason(smaller))


def one_step_more(chosen: Deployment) -> GpuStep | None:
    """Return the next count that adds a whole replica."""
    if not chosen.is_feasible:
        return None
    return GpuStep(gpus=chosen.gpus + chosen.layout.gpus_per_replica, feasible=True, violates=None)


def changes_to_try(question: SizeQuestion) -> tuple[tuple[Change, StatedSettings], ...]:
    """Return the changes worth trying: narrower cache, narrower weights, each alone."""
    stated = question.settings
    tries: list[tuple[Change, StatedSettings]] = []
    if stated.kv_cache_dtype != "fp8":
        tries.append((Change(name="kv_cache_dtype", value="fp8"), replace(stated, kv_cache_dtype="fp8")))
    loaded = stated.quantization or stated.weight_format or own_checkpoint(question.model).weight_format
    if loaded in ("bf16", "fp16"):
        tries.append((Change(name="weight_format", value="fp8"), replace(stated, weight_format="fp8")))
    if loaded in ("bf16", "fp16", "fp8", "int8"):
        in_four_bits = replace(stated, weight_format="int4", quantization=None)
        tries.append((Change(name="weight_format", value="int4"), in_four_bits))
    return tuple(tries)


def levers(question: SizeQuestion, chosen: Deployment) -> tuple[Lever, ...]:
    """Return the single changes that would save GPUs, or make an infeasible question feasible."""
    saving: list[Lever] = []
    for change, stated in changes_to_try(question):
        fewer = chosen.gpus - 1 if chosen.is_feasible else None
        try:
            candidates = deployments(replace(question, settings=stated), fewer)
        except EngineError:
            continue  # the caller's layout is not legal for this format
        if not candidates:
            continue
        other = best(candidates, question.limits)
        if other.is_feasible and (not chosen.is_feasible or other.gpus < chosen.gpus):
            saved = chosen.gpus - other.gpus if chosen.is_feasible else 0
            saving.append(Lever(change={change.name: change.value}, gpus=other.gpus, saves_gpus=saved))
    return tuple(sorted(saving, key=lambda lever: (lever.gpus, *lever.change)))


def would_fit(chosen: Deployment, limits: Limits, saving: tuple[Lever, ...]) -> tuple[str, ...]:
    """Return, for an infeasible question, sentences that say what would make it fit."""
    if chosen.is_feasible:
        return ()
    sentences = looser_limits(chosen.replica, limits) if chosen.replica is not None else missing_memory(chosen.plan)
    changes = (f"{name}={value} fits on {it.gpus} GPUs" for it in saving for name, value in it.change.items())
    return (*sentences, *changes)


def looser_limits(replica: Replica, limits: Limits) -> tuple[str, ...]:
    """Return the limits that one request alone would meet on the fastest layout."""
    alone = replica.alone()
    layout = replica.plan.layout
    where = f"on {layout.gpus_per_replica} GPUs (tensor_parallel_size {layout.tensor_parallel_size})"
    seen = {"ttft_s": alone.ttft_s.percentile(limits.percentile), "tpot_s": alone.tpot_s.percentile(limits.percentile)}
    asked = {"ttft_s": limits.ttft_s, "tpot_s": limits.tpot_s}
    return tuple(
        f"{name} of at least {seen[name]:.3g}: a single request alone takes that long {where}"
        for name, limit in asked.items()
        if limit is not None and seen[name] > limit
    ) or (f"a looser limit: single requests meet it {where}, and the load does not",)


def missing_memory(plan: MemoryPlan) -> tuple[str, ...]:
    """Return what memory alone would have to change."""
    missing = plan.shortfall_bytes
    layout = plan.layout
    shape = (
        f"tensor_parallel_size {layout.tensor_parallel_size}, pipeline_parallel_size {layout.pipeline_parallel_size}"
    )
    sentences = [
        f"{missing} bytes ({missing / GIB:.1f} GiB) more memory on each of {layout.gpus_per_replica} GPUs ({shape})"
    ]
    if plan.weights_fit and plan.kv_cache.estimated_max_model_len > 0:
        sentences.append(f"requests of at most {plan.kv_cache.estimated_max_model_len} tokens")
    return tuple(sentences)

"""What binds, and what would make an infeasible question feasible."""

from math import ceil, floor, log10
from typing import Final

from service.engine.answers.levers import written
from service.engine.answers.results import Lever
from service.engine.arithmetic import size_in_brackets, three_digits
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.pools import PoolPair, least_ttft_s
from service.engine.fleet.results import BindingConstraint
from service.engine.inputs import Limits
from service.engine.memory.plan import MemoryPlan
from service.engine.time.replica import Replica
from service.engine.time.results import Latency

# Nobody waits so long for a token who reads along.
LONGEST_TTFT_S: Final = 60.0
LONGEST_TPOT_S: Final = 5.0
# What an interactive service keeps where nobody says otherwise.
INTERACTIVE: Final = Limits(ttft_s=5.0, tpot_s=0.1)


def binding_constraint(chosen: Deployment, smaller: Deployment | None) -> BindingConstraint:
    """Return the limit that forbids fewer GPUs.

    With several replicas it is what fills one of them; with one replica it is what the next
    smaller layout could not do; on the smallest layout it is what will fill first.
    """
    if not chosen.is_feasible:
        return reason(chosen)
    if chosen.replicas > 1 or smaller is None:
        return chosen.capacity.binds
    return reason(smaller)


def reason(deployment: Deployment) -> BindingConstraint:
    """Return why a deployment carries no more: what is missing, or what fills it."""
    plan = deployment.plan
    if not plan.weights_fit:
        return "kv_cache" if fitting_pool_bytes(plan) else "weights"
    if not plan.holds_one_request:
        return "kv_cache"
    return deployment.capacity.binds


def would_fit(chosen: Deployment, limits: Limits, saving: tuple[Lever, ...]) -> tuple[str, ...]:
    """Return, for an infeasible question, sentences that say what would make it fit."""
    if chosen.is_feasible:
        return ()
    sentences = looser_limits(chosen.replica, limits) if chosen.replica is not None else missing_memory(chosen.plan)
    changes = (f"{written(lever.change)} fits on {lever.gpus} GPU{'s' * (lever.gpus > 1)}" for lever in saving)
    return (*sentences, *changes)


def doubtful_limits(limits: Limits) -> tuple[str, ...]:
    """Return which limits are so long that another unit may have been meant."""
    longest = {"ttft_s": (limits.ttft_s, LONGEST_TTFT_S), "tpot_s": (limits.tpot_s, LONGEST_TPOT_S)}
    return tuple(
        f"{name}={limit:g} is in seconds; were milliseconds meant, state {limit / 1000:g}"
        for name, (limit, longest_s) in longest.items()
        if limit is not None and limit >= longest_s
    )


def unlimited_waits(limits: Limits, latency: Latency | None) -> tuple[str, ...]:
    """Return how long users wait where nobody limits it, and it is longer than an interactive service lets them."""
    return () if latency is None else long_waits(limits, latency.ttft_s.p95, latency.tpot_s.p95)


def long_waits(limits: Limits, ttft_p95_s: float, tpot_p95_s: float) -> tuple[str, ...]:
    """Return the same from waits at the 95th percentile, limit by limit. [s].

    A limit on pace alone is kept by steps that read few prompts: whoever is not read yet waits for the first token.
    """
    waits = {
        "ttft_s": (limits.ttft_s, ttft_p95_s, INTERACTIVE.ttft_s, "for the first token"),
        "tpot_s": (limits.tpot_s, tpot_p95_s, INTERACTIVE.tpot_s, "for each further token"),
    }
    long = [
        (name, wait, most, what)
        for name, (limit, wait, most, what) in waits.items()
        if limit is None and most is not None and wait > most
    ]
    if not long:
        return ()
    unlimited = " and ".join(name for name, *_ in long) if limits.are_stated else "latency"
    told = " and ".join(f"{three_digits(wait)} s {what}" for _, wait, _, what in long)
    limited = "&".join(f"{name}={most:g}" for name, _, most, _ in long)
    sentence = f"no limit on {unlimited} was stated: at the 95th percentile users wait {told}"
    return (f"{sentence}; {limited} sizes for shorter waits",)


def looser_limits(replica: Replica, limits: Limits) -> tuple[str, ...]:
    """Return the limits that one request alone would meet on the fastest layout."""
    alone = replica.alone()
    layout = replica.plan.layout
    staged = f", pipeline_parallel_size {layout.pipeline_parallel_size}" if layout.pipeline_parallel_size > 1 else ""
    gpus = "1 GPU" if layout.gpus_per_replica == 1 else f"{layout.gpus_per_replica} GPUs"
    where = f"on {gpus} (tensor_parallel_size {layout.tensor_parallel_size}{staged})"
    seen = {"ttft_s": alone.ttft_s.percentile(limits.percentile), "tpot_s": alone.tpot_s.percentile(limits.percentile)}
    asked = {"ttft_s": limits.ttft_s, "tpot_s": limits.tpot_s}
    return tuple(
        f"{name} of at least {_rounded_up(seen[name]):.3g}: a single request alone takes that long {where}"
        for name, limit in asked.items()
        if limit is not None and seen[name] > limit
    ) or (f"a looser limit: single requests meet it {where}, and the load does not",)


def looser_pools(pair: PoolPair, limits: Limits, of_decoding: tuple[str, ...]) -> tuple[str, ...]:
    """Return what would make pools of their own fit, where they do not.

    Neither pool has the whole limit on the first token: what one of them takes alone is no limit that would do.

    Args:
        pair: both pools.
        limits: those of the question.
        of_decoding: the sentences of the decode pool alone.
    """
    if pair.is_feasible:
        return ()
    told = (*of_decoding, *would_fit(pair.prefill, limits, ()))
    reading, decoding = pair.prefill.replica, pair.decode.replica
    is_late = not pair.prefill.is_feasible or pair.decoding.limits.ttft_s is not None
    if limits.ttft_s is None or reading is None or decoding is None or not is_late:
        return told
    parts_s = [pool.alone().ttft_s.percentile(limits.percentile) for pool in (reading, decoding)]
    read_s, decoded_s = map(three_digits, parts_s)
    alone = (
        f"a single request alone takes {read_s} s to be read and sent, and {decoded_s} s from there to its first token"
    )
    first_s = least_ttft_s(*parts_s)
    looser = f"ttft_s of at least {_rounded_up(first_s):.3g}: {alone}, each within its share of the limit"
    busy = f"a looser ttft_s: {alone}, and requests of this load wait longer"
    others = (sentence for sentence in told if not sentence.startswith(("ttft_s ", "a looser limit: ")))
    return (looser if first_s > limits.ttft_s else busy, *others)


def _rounded_up(value: float) -> float:
    """Return the least number of three digits that is no less.

    >>> _rounded_up(0.10012)
    0.101
    """
    unit = 10.0 ** (floor(log10(value)) - 2)
    return round(ceil(value / unit) * unit, 12)


def fitting_pool_bytes(plan: MemoryPlan) -> int:
    """Return the largest pool that fits beside the weights where a larger one was given; 0 elsewhere. [bytes]."""
    if plan.settings.kv_cache_memory_bytes is None or plan.weights_fit:
        return 0
    return max(plan.memory.kv_cache_bytes - plan.memory.shortfall_bytes, 0)


def _setting_that_frees(plan: MemoryPlan) -> str | None:
    """Return the stated setting that keeps free what is missing, and what of it would do; None where none does."""
    missing, memory, settings = plan.shortfall_bytes, plan.memory, plan.settings
    if missing > memory.reserved_bytes:
        return None
    if settings.kv_cache_memory_bytes is not None:
        pool = settings.kv_cache_memory_bytes + missing
        return f"kv_cache_memory_bytes of at least {pool}{size_in_brackets(pool)}" if plan.weights_fit else None
    share = _rounded_up(1 - (memory.reserved_bytes - missing) / memory.total_bytes)
    if not plan.device.is_vllm or share > plan.rules.default_gpu_memory_utilization:
        return None
    return f"gpu_memory_utilization of at least {share:.3g}"


def missing_memory(plan: MemoryPlan) -> tuple[str, ...]:
    """Return what memory alone would have to change."""
    missing = plan.shortfall_bytes
    layout = plan.layout
    shape = (
        f"tensor_parallel_size {layout.tensor_parallel_size}, pipeline_parallel_size {layout.pipeline_parallel_size}"
    )
    where = f"each of {layout.gpus_per_replica} GPUs" if layout.gpus_per_replica > 1 else "the GPU"
    sentences = [f"{missing} bytes{size_in_brackets(missing)} more memory on {where} ({shape})"]
    if (setting := _setting_that_frees(plan)) is not None:
        sentences = [f"{setting} on {where} ({shape})"]
    if pool := fitting_pool_bytes(plan):
        sentences.insert(0, f"kv_cache_memory_bytes of at most {pool}{size_in_brackets(pool)}")
    if plan.weights_fit and plan.kv_cache.estimated_max_model_len > 0:
        sentences.append(f"requests of at most {plan.kv_cache.estimated_max_model_len} tokens")
    return tuple(sentences)

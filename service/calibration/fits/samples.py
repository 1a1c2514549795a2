"""What a single start-up says about each constant of the ledger; None where it says nothing.

One constant is looked at a time, with the others as `engine_rules.yaml` has them.
"""

from collections.abc import Callable

from service.calibration.startups import Startup
from service.catalog.engine_rules import KIB, constants
from service.engine import GIB, EngineRules, gib, has_unified_memory

Sample = Callable[[Startup], float | None]


def _is_profiled(startup: Startup) -> bool:
    """Return whether the pool is what a share of the whole memory leaves beside a profiled forward pass."""
    return startup.rules.memory_share == "total"


def _sampler_dominates(startup: Startup) -> bool:
    """Return whether the sampler is the peak, whatever else is alive."""
    terms = startup.terms
    sampler = terms.rules.sampler_bytes_per_logit * terms.sampled_logits
    return sampler > terms.forward_bytes and not terms.profiles_tower


def _beside_sampler_gib(startup: Startup) -> float | None:
    """Return what a printed peak leaves beside the sampler's logits, where those are the peak."""
    logged = startup.log.printed.activation
    is_peak = _is_profiled(startup) and not startup.rules.peak_includes_graphs
    if not logged or not is_peak or not startup.is_recent or not _sampler_dominates(startup):
        return None
    sampler = startup.rules.sampler_bytes_per_logit * startup.terms.sampled_logits
    return float(logged - (sampler + startup.terms.lasting_bytes) / GIB)


def _batch_gib(startup: Startup) -> float:
    """Return the hidden states of one batch."""
    return startup.terms.hidden_bytes / GIB


def activation_base_gib(name: str) -> Sample:
    """What lies beside the sampler - hidden states, for the versions that use a constant."""

    def sample(startup: Startup) -> float | None:
        beside = _beside_sampler_gib(startup)
        if beside is None or startup.rules.activation_base_bytes != gib(constants()[name].value):
            return None
        return beside - constants()["hidden_copies"].value * _batch_gib(startup)

    return sample


def captured_gib(startup: Startup) -> float | None:
    """What capturing took; adapters double it, a negative figure is memory freed meanwhile."""
    logged = startup.log.printed.graphs or 0
    is_truth = startup.rules.graph_accounting == "outside" and startup.is_recent and _is_profiled(startup)
    is_whole = startup.layout.pipeline_parallel_size == 1 and not has_unified_memory(startup.gpu)
    return float(logged) if logged > 0 and is_truth and is_whole else None


def estimated_gib(startup: Startup) -> float | None:
    """Return the engine's own estimate, as printed beside the truth."""
    printed = startup.log.printed.graph_estimate
    is_first = startup.rules.graph_accounting == "outside" and startup.layout.pipeline_parallel_size == 1
    return printed if is_first else None


def graph_kib(figure: Sample, base: str, dense: str, *, of_experts: bool, first: bool) -> Sample:
    """(graphs - base - dense layers) / (layers of a kind x largest captured batch)."""

    def sample(startup: Startup) -> float | None:
        value = figure(startup)
        is_first = startup.rules.graphs_on_hopper.base_bytes == gib(constants()["graph_base_first"].value)
        kinds = startup.terms.layers
        if value is None or is_first != first or bool(kinds.experts) != of_experts:
            return None
        sizes = startup.terms.captured_batch
        above = (value - constants()[base].value * startup.terms.captured_fraction) * KIB * KIB
        others = kinds.dense + kinds.recurrent
        if not of_experts:
            return above / (others * sizes)
        return (above - others * sizes * constants()[dense].value) / (kinds.experts * sizes)

    return sample


def context_gib(name: str) -> Sample:
    """Non-torch memory as printed, of one GPU without peers, for the versions that use a constant."""

    def sample(startup: Startup) -> float | None:
        logged, layout = startup.log.printed.non_torch, startup.layout
        is_alone = layout.tensor_parallel_size == 1 and layout.pipeline_parallel_size == 1
        if not logged or not is_alone or not _is_profiled(startup) or has_unified_memory(startup.gpu):
            return None
        predicted = startup.terms.non_torch_bytes
        if predicted != gib(constants()[name].value) or not startup.log.gpu:
            return None
        return float(logged) if not startup.rules.sampler_state_bytes_per_logit else None

    return sample


def _unexplained_gib(startup: Startup) -> float | None:
    """Budget - weights - activation - cache: non-torch, and what the other terms miss."""
    cache = startup.log.printed.cache
    if cache is None or not _is_profiled(startup) or not startup.is_recent:
        return None
    budget = startup.plan.settings.gpu_memory_utilization * startup.gpu.memory_bytes
    taken = startup.plan.memory.weight_bytes + startup.terms.activation_bytes
    return float((budget - taken) / GIB - cache)


def implied_base_gib(name: str) -> Sample:
    """What a budget leaves unexplained beside non-torch memory and the constant, for the versions that use it."""

    def sample(startup: Startup) -> float | None:
        rules, value = startup.rules, constants()[name].value
        unexplained = _unexplained_gib(startup)
        if unexplained is None or rules.activation_base_bytes != gib(value):
            return None
        return unexplained - startup.terms.non_torch_bytes / GIB + value

    return sample


def non_torch_unified_gib(startup: Startup) -> float | None:
    """Return what is unexplained beyond one GPU's share where the host draws on the same memory."""
    is_alone = startup.layout.tensor_parallel_size == 1 and startup.rules.graph_accounting == "outside"
    unexplained = _unexplained_gib(startup) if is_alone and has_unified_memory(startup.gpu) else None
    context = startup.rules.context_bytes["other"] / GIB
    return None if unexplained is None else unexplained - context


def connected_context_gib(startup: Startup) -> float | None:
    """Non-torch memory as printed, of one rank of a pipeline."""
    logged, layout = startup.log.printed.non_torch, startup.layout
    is_pipeline = layout.pipeline_parallel_size > 1 and layout.tensor_parallel_size == 1
    return float(logged) if logged and is_pipeline and startup.rules.connected_context_bytes is not None else None


def peers_gib(name: str, bytes_of: Callable[[EngineRules], int]) -> Sample:
    """Non-torch memory as printed - one GPU's share, for the versions whose peers' buffers a constant speaks for."""

    def sample(startup: Startup) -> float | None:
        logged = startup.log.printed.non_torch
        if not logged or startup.layout.tensor_parallel_size == 1 or not startup.is_recent:
            return None
        buffers = gib(constants()[name].value)
        context = startup.terms.non_torch_bytes - buffers
        if bytes_of(startup.rules) != buffers or context not in _contexts(startup.rules):
            return None
        return float(logged) - context / GIB

    return sample


def missed_gib(name: str) -> Sample:
    """Promised - logged pool, for the versions whose margin a constant is; 0 where there was more."""

    def sample(startup: Startup) -> float | None:
        cache = startup.log.printed.cache
        is_own = _is_profiled(startup) and startup.rules.margin_bytes == gib(constants()[name].value)
        # One log of a compressed past (DeepSeek V4) misses 2.6 GiB, for reasons not known.
        if cache is None or not is_own or not startup.is_recent or startup.terms.layers.selecting:
            return None
        return max(startup.plan.memory.kv_cache_bytes / GIB - cache, 0.0)

    return sample


def _contexts(rules: EngineRules) -> set[int]:
    return {*rules.context_bytes.values(), rules.connected_context_bytes or 0}


def sglang_peers_gib(startup: Startup) -> float | None:
    """Memory - free memory before weights are loaded - context; of GPUs that meet in PCIe slots."""
    before = startup.log.printed.free_before_load
    if startup.rules.memory_share != "static" or before is None or startup.gpu.scale_up_domain_gpus > 1:
        return None
    return startup.gpu.memory_bytes / GIB - before - constants()["sglang_context"].value


def trt_logit_bytes(name: str) -> Sample:
    """(runtime buffers + decoder) / (sequences x vocabulary), for the versions that use a constant."""

    def sample(startup: Startup) -> float | None:
        buffers = startup.log.printed.buffers
        if not buffers or startup.rules.sampler_bytes_per_logit != constants()[name].value:
            return None
        return sum(buffers) * GIB / startup.terms.sampled_logits

    return sample


def trt_context_gib(startup: Startup) -> float | None:
    """Memory - engine - execution context - buffers - cache / fraction."""
    printed = startup.log.printed
    execution, cache = printed.execution_context, printed.cache
    if startup.rules.memory_share != "free" or execution is None or cache is None:
        return None
    allocated = startup.plan.memory.weight_bytes / GIB + execution + sum(printed.buffers)
    return startup.gpu.memory_bytes / GIB - allocated - cache / startup.plan.settings.gpu_memory_utilization

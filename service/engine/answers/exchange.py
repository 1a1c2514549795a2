"""How ranks exchange what a layer makes: over the network, and tokens of experts by a backend of the engine's own."""

from typing import Final

from service.engine.answers.noted import note
from service.engine.fleet.results import Assumption
from service.engine.fleet.wide import is_sized_on
from service.engine.memory.plan import MemoryPlan

# From so many GPUs on wide pools were published: 32 H100 that read DeepSeek-R1, 72 that decode it.
WIDE_GPUS: Final = 32
MANY_EXPERTS: Final = 128
# What DeepEP's kernels are built for.
WIDE_GENERATIONS: Final = frozenset({"hopper", "blackwell"})
OWN_EXCHANGE: Final = (
    "the engine's own way: every rank gathers the tokens of all, which takes longer the more ranks there are"
)
BY_DEEPEP: Final = (
    "kernels of low latency where a step decodes alone, else of high throughput; experts are balanced, one on each GPU "
    "kept twice"
)
OVERLAPPED: Final = "0.65 of what could overlap does; with few requests on each GPU it is slower"
# lmsys.org/blog/2025-05-05-large-scale-ep: 22.3 thousand output tokens a second for each of nine servers of eight H100.
WIDER: Final = (
    "experts spread wide over DeepEP are {sized}: in pools of 72 H100 SGLang wrote 2,800 tokens of DeepSeek-R1 a "
    "second on each (LMSYS, May 2025), so that so large a fleet may take fewer GPUs"
)


def exchange_notes(plan: MemoryPlan) -> tuple[Assumption, ...]:
    """Return by which backend ranks exchange the tokens of experts, where there is anything to exchange."""
    if not plan.model.architecture.has_experts or not _spreads_tokens(plan):
        return ()
    backend = _backend(plan)
    if (stated := plan.layout.all2all_backend) is not None:
        overlap = (note("enable_two_batch_overlap", True, "request", OVERLAPPED),)
        return (
            note("all2all_backend", stated, "request", BY_DEEPEP),
            *(overlap if plan.layout.enable_two_batch_overlap else ()),
        )
    return () if backend is None else (note("all2all_backend", backend, "default", OWN_EXCHANGE),)


def exchange_warnings(plan: MemoryPlan, gpus: int) -> tuple[str, ...]:
    """Return the network that times hold for, where it is part of every step, and what wider layouts may save.

    Args:
        plan: the memory of one replica.
        gpus: of all replicas. [count]
    """
    return (*_network_warnings(plan), *_wider(plan, gpus))


def _network_warnings(plan: MemoryPlan) -> tuple[str, ...]:
    layout, gpu = plan.layout, plan.gpu
    gigabits = gpu.scale_out_bytes_per_s * 8 / 1e9
    network = f"times hold for a network of {gigabits:.0f} Gb/s for each GPU between them"
    if layout.tensor_parallel_size > gpu.joined_gpus:
        return (f"layers are split over servers: {network}",)
    if plan.model.architecture.has_experts and _ranks(plan) > gpu.joined_gpus:
        return (f"experts are spread over servers: {network}",)
    return ()


def _wider(plan: MemoryPlan, gpus: int) -> tuple[str, ...]:
    if plan.layout.all2all_backend is not None:
        return ()
    gpu, routings = plan.gpu, [part.routing for part in plan.model.architecture.feed_forwards]
    experts = max((routing.num_experts for routing in routings if routing is not None), default=0)
    is_wide = gpus >= WIDE_GPUS and experts >= MANY_EXPERTS and gpu.scale_up_domain_gpus > 1
    if not is_wide or gpu.architecture not in WIDE_GENERATIONS or _backend(plan) is None:
        return ()
    is_sized = is_sized_on(gpu, plan.model.architecture, plan.checkpoint.quantization)
    sized = "sized with engine=sglang and all2all_backend=deepep" if is_sized else "not sized here"
    return (WIDER.format(sized=sized),)


def _spreads_tokens(plan: MemoryPlan) -> bool:
    """Return whether experts are shared by copies of the attention, or dealt out whole."""
    return _ranks(plan) > 1 and (plan.layout.expert_parallel or plan.layout.data_parallel_size > 1)


def _ranks(plan: MemoryPlan) -> int:
    return plan.layout.tensor_parallel_size * plan.layout.data_parallel_size


def _backend(plan: MemoryPlan) -> str | None:
    return plan.rules.serving_engine.all2all_backend(plan.rules.release)

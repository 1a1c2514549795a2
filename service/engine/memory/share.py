"""The share of a GPU that an engine takes by itself, once it is known what runs there, and on how many ranks.

Copies of the attention that share their experts count as SGLang counts them: within its tensor-parallel size.

Sources:
    SGLang `server_args.py` (`_handle_gpu_memory_settings`); 0.5.23 `arg_groups/memory_hook.py` (captured requests are
    bounded by `max_running_requests`, which `pool_configurator.py` divides among the copies).
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from service.engine.engines.classes import is_within
from service.engine.engines.rules import EngineRules, default_utilization
from service.engine.engines.static_share import ALWAYS, PromptObstacle, Served
from service.engine.inputs import EngineSettings, Gpu, Layout
from service.engine.layers import Architecture
from service.engine.memory.images import sees_in_sglang

LATENTS: Final = frozenset({"latent", "sparse"})


def with_own_share(
    architecture: Architecture, gpu: Gpu, layout: Layout, settings: EngineSettings, rules: EngineRules
) -> EngineSettings:
    """Return settings with the engine's own share of this layout, where nobody states one."""
    if not settings.is_share_open:
        return settings
    share = default_utilization(rules, gpu, served_of(architecture, gpu, layout, settings, rules.release))
    return replace(settings, gpu_memory_utilization=share, is_share_open=False)


def part_of_share(
    architecture: Architecture, gpu: Gpu, layout: Layout, settings: EngineSettings, rules: EngineRules
) -> float:
    """Return what an engine leaves of its share for weights and cache, whoever states it; all on NVIDIA. [fraction]."""
    if gpu.vendor == "nvidia":
        return 1.0
    kinds = _kinds(architecture)
    heads: int | None = 0
    if kinds == {"grouped"}:
        heads = None
    elif kinds == {"latent"}:
        shared = (mixer.sharing for mixer in architecture.mixers)
        heads = max(each.query_heads for each in shared if each is not None) // layout.tensor_parallel_size
    return rules.serving_engine.part_of_share(gpu, settings.max_model_len, heads)


def served_of(
    architecture: Architecture, gpu: Gpu, layout: Layout, settings: EngineSettings, release: str = ""
) -> Served:
    """Return what runs on one GPU under a release, as far as the share asks; an unstated one is the newest."""
    copies = layout.data_parallel_size if architecture.has_experts else 1
    own = settings.num_speculative_tokens and settings.speculative_method != "ngram"
    return Served(
        chunk_tokens=settings.max_num_batched_tokens,
        running=copies * settings.max_num_seqs,
        tensor_ranks=layout.tensor_parallel_size * copies,
        stages=layout.pipeline_parallel_size,
        attention_copies=copies,
        drafts="own" if own else "ngram" if settings.num_speculative_tokens else "none",
        obstacles=frozenset(_obstacles(architecture, gpu, layout, settings, release)),
        is_latent=bool(_kinds(architecture) & LATENTS),
        tower=None if architecture.reads_text_in_sglang else architecture.tower_size,
    )


def captures_prompts(
    uncaptured_for: AbstractSet[PromptObstacle], architecture: Architecture, gpu: Gpu, layout: Layout, release: str = ""
) -> bool:
    """Return whether prompts run as captured graphs in a version that leaves some out, drafts and adapters apart."""
    return (uncaptured_for | ALWAYS).isdisjoint(_of_shape(architecture, gpu, layout, release))


def _obstacles(
    architecture: Architecture, gpu: Gpu, layout: Layout, settings: EngineSettings, release: str
) -> Iterator[PromptObstacle]:
    """Yield what may keep prompts from being captured as graphs."""
    if settings.num_speculative_tokens:
        yield "drafts"
    if settings.max_loras:
        yield "adapters"
    yield from _of_shape(architecture, gpu, layout, release)


def _of_shape(architecture: Architecture, gpu: Gpu, layout: Layout, release: str) -> Iterator[PromptObstacle]:
    """Yield what of a model on a layout of GPUs may keep prompts from being captured, whatever else is asked."""
    kinds = _kinds(architecture)
    if layout.data_parallel_size > 1 and architecture.has_experts:
        yield "copies"
    if layout.pipeline_parallel_size > 1:
        yield "stages"
    since, left_out = architecture.images_captured_since, architecture.prompts_left_out
    if sees_in_sglang(architecture) and not (since and is_within(release, since, "")):
        yield "images"
    if left_out is not None and is_within(release, *left_out):
        yield "class"
    if "latent" in kinds:
        yield "latents"
    if "sparse" in kinds:
        yield "sparse"
    if gpu.vendor != "nvidia":
        yield "other_vendors"


def launched_share(
    architecture: Architecture, gpu: Gpu, layout: Layout, settings: EngineSettings, rules: EngineRules
) -> float:
    """Return the engine's own share of a launch that states no tokens of a batch, or those of all copies. [fraction].

    It sets memory aside for the chunk of all copies of the attention, and divides the chunk among them afterwards.

    Source: SGLang 0.5.4 to 0.5.14 `server_args.py` (`__post_init__`: `_handle_gpu_memory_settings` comes before
    `_handle_data_parallelism`).

    Args:
        architecture: the model.
        gpu: whose memory is shared out.
        layout: how one replica is spread.
        settings: of one rank, with its part of the chunk.
        rules: the version's.
    """
    served = served_of(architecture, gpu, layout, settings, rules.release)
    whole = served.attention_copies * served.chunk_tokens
    return default_utilization(rules, gpu, replace(served, chunk_tokens=whole))


def _kinds(architecture: Architecture) -> AbstractSet[str]:
    """Return the kinds of attention that need kernels."""
    return {need.kind for mixer in architecture.mixers for need in mixer.kernel_needs}

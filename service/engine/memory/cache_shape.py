"""The cache of one rank without lengths or a pool: which layers keep what, in which groups and blocks.

    block, beside recurrent states = the smallest multiple of what the kernels accept whose page holds a state

Sources:
    vLLM 0.33 `v1/core/kv_cache_planning.py`, `platforms/interface.py` (`_align_hybrid_block_size`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from math import lcm

from service.engine.arithmetic import ceil_div
from service.engine.derived import derived
from service.engine.engines.device import REFERENCE, Device
from service.engine.engines.kernels import common_block_size, exports_state
from service.engine.formats.elements import cache_bytes
from service.engine.inputs import EngineSettings, KvCacheDtype, Layout, StageRule, StateDtype
from service.engine.layers import (
    DEFAULT_BLOCK_SIZE,
    Architecture,
    CacheSpec,
    Checkpoint,
    DecoderLayer,
    DraftHead,
    Sharding,
)
from service.engine.memory.drafts import draft_of, retained_tokens
from service.engine.memory.groups import CacheGroup, counted, numbered, on_stage
from service.engine.memory.kernels import asked_cache, divided_by_rings, hybrid_alignment, kernels_of, records_of
from service.engine.memory.packing import Packing
from service.engine.memory.stages import pipeline_stages
from service.engine.memory.unwindowed import kept_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheShape:
    """Everything about the cache that does not depend on lengths or on the pool's size."""

    groups: tuple[CacheGroup, ...]  # of the fullest pipeline stage
    groups_alike: tuple[tuple[CacheGroup, int], ...]  # those whose blocks grow alike once, with their number
    block_size: int  # [tokens]
    bytes_per_block: int
    bytes_per_token: int
    bytes_per_token_within_windows: int
    bytes_per_token_per_gpu: int
    state_bytes_per_request: int
    longest_window: int  # [tokens]

    def blocks_per_request(self, num_tokens: int, in_flight_tokens: int) -> int:
        """Return the blocks, over all groups, that one request may hold at once."""
        blocks = 0
        for group, number in self.groups_alike:  # asked often: a loop takes three quarters of the time of a sum
            blocks += number * group.blocks_for(num_tokens, in_flight_tokens)
        return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheAsk:
    """What else decides the caches of a model, besides their dtype and block."""

    is_checkpoints_dtype: bool = False  # the checkpoint itself declares the dtype
    num_speculative_tokens: int = 0
    draft: DraftHead | None = None
    caches_prefixes: bool = True  # so that recurrent states are kept
    is_text_only: bool = False  # images are never sent
    state_dtype: StateDtype = "auto"  # stated, of recurrent states
    matrix_dtype: StateDtype = "auto"  # stated, of their matrices
    unnamed_matrix_dtype: StateDtype = "auto"  # the engine's, where nobody names one
    stage_rule: StageRule = "middle"


def shape_of(architecture: Architecture, layout: Layout, settings: EngineSettings, device: Device) -> CacheShape:
    """Return the groups and sizes of one rank under an engine's settings."""
    draft = draft_of(architecture, settings)
    ask = CacheAsk(
        is_checkpoints_dtype=settings.is_checkpoints_cache_dtype,
        num_speculative_tokens=settings.num_speculative_tokens,
        draft=draft,
        caches_prefixes=settings.enable_prefix_caching,
        is_text_only=settings.is_text_only,
        state_dtype=settings.mamba_cache_dtype,
        matrix_dtype=settings.mamba_ssm_cache_dtype,
    )
    # Copies of the attention keep caches of their own.
    has_copies = layout.data_parallel_size > 1 or layout.expert_parallel
    own = replace(layout, data_parallel_size=1, expert_parallel=False) if has_copies else layout
    return cache_shape(architecture, own, settings.kv_cache_dtype, settings.block_size, ask=ask, device=device)


@derived(512)
def cache_shape(
    architecture: Architecture,
    layout: Layout,
    kv_cache_dtype: KvCacheDtype,
    block_size: int | None,
    *,
    ask: CacheAsk = CacheAsk(),
    device: Device = REFERENCE,
) -> CacheShape:
    """Return the groups and sizes of one rank of the pipeline stage with the largest blocks.

    Layers that draft stand behind the last stage's own, and join the groups like any other layer.

    Raises:
        UnsupportedLayoutError: the engine has no kernel for such a cache on this GPU.
    """
    asked = asked_cache(
        architecture,
        kv_cache_dtype,
        is_checkpoints_dtype=ask.is_checkpoints_dtype,
        is_text_only=ask.is_text_only,
        ranks=layout.decode_context_parallel_size,
        block_size=block_size,
    )
    kernels = kernels_of(architecture, asked, device)
    whole = Sharding(
        tensor_parallel_size=1,
        cache_element_bytes=cache_bytes(kv_cache_dtype, architecture.element_bytes),
        cache_dtype=kv_cache_dtype,
        model_element_bytes=architecture.element_bytes,
        packs_latents=any(kernel.is_packed for kernel in kernels),
        latent_rows=max((kernel.rows for kernel in kernels), default=1),
        records=records_of(kernels),
        keeps_states=ask.caches_prefixes and (architecture.has_attention or architecture.is_hybrid),
        exporting=_exporting(architecture, device),
        num_speculative_tokens=ask.num_speculative_tokens,
        retained_tokens=retained_tokens(ask.draft, ask.num_speculative_tokens) if device.plan.retains_for_drafts else 0,
        context_ranks=layout.decode_context_parallel_size,
        kept_whole=kept_whole(architecture, device.plan, drafts=ask.draft is not None),
        state_dtype=ask.state_dtype,
        matrix_dtype=ask.matrix_dtype,
        unnamed_matrix_dtype=ask.unnamed_matrix_dtype,
        reads_state_dtypes=device.plan.reads_state_dtypes,
    )
    smallest = (min(kernel.blocks) for kernel in kernels)
    blocks = _Blocks(
        chosen=block_size or common_block_size(kernels, device.plan.block_size),
        smallest=1 if device.plan.keeps_any_block else max(smallest, default=DEFAULT_BLOCK_SIZE),
        hybrid_alignment=hybrid_alignment(architecture, device),
    )
    packing = Packing(rule=device.plan.page_packing, fills_blocks=device.plan.fills_blocks)
    cuts = tuple(pipeline_stages(len(architecture.layers), layout.pipeline_parallel_size, ask.stage_rule))
    return _shape_of_rank(architecture, layout.tensor_parallel_size, cuts, whole, blocks, ask.draft, packing)


@derived(512)
def _shape_of_rank(
    architecture: Architecture,
    ranks: int,
    cuts: tuple[tuple[int, int], ...],
    whole: Sharding,
    blocks: "_Blocks",
    draft: DraftHead | None,
    packing: Packing,
) -> CacheShape:
    """Return the shape under the kernels of a GPU, which are those of many; copies that share experts add nothing."""
    rank = blocks.of(replace(whole, tensor_parallel_size=ranks), architecture)
    groups = max(_stage_groups(architecture, _drafted(draft, rank), cuts, rank, packing), key=packing.block_bytes)
    return _shape(groups, packing.block_bytes(groups), _unsharded(architecture, whole, blocks, draft), rank)


@derived(16)
def _unsharded(
    architecture: Architecture, whole: Sharding, blocks: "_Blocks", draft: DraftHead | None
) -> list[CacheSpec]:
    """Return what all layers keep of the whole model."""
    view = blocks.of(whole, architecture)
    return [*_specs(architecture.layers, view), *_drafted(draft, view)]


def _drafted(draft: DraftHead | None, sharding: Sharding) -> list[CacheSpec]:
    """Return what the layers that draft keep, of the cache's dtype or the model's."""
    if draft is None:
        return []
    return _specs(draft.body.layers, sharding.in_model_dtype() if draft.keeps_model_dtype else sharding)


def _exporting(architecture: Architecture, device: Device) -> frozenset[Checkpoint]:
    """Return the kernels of the model's recurrent layers that keep states while prefill goes on."""
    stated = (mixer.checkpoint for mixer in architecture.mixers)
    return frozenset(kernel for kernel in stated if kernel is not None and exports_state(kernel, device))


def _shape(
    groups: tuple[CacheGroup, ...], bytes_per_block: int, unsharded: list[CacheSpec], rank: Sharding
) -> CacheShape:
    per_rank = [spec for group in groups for spec in group.specs]
    return CacheShape(
        groups=groups,
        groups_alike=counted(groups),
        block_size=rank.block_size,
        bytes_per_block=bytes_per_block,
        bytes_per_token=_token_bytes(unsharded, windows=False),
        bytes_per_token_within_windows=_token_bytes(unsharded, windows=True),
        bytes_per_token_per_gpu=ceil_div(
            _token_bytes(per_rank, windows=False) or _token_bytes(per_rank, windows=True), rank.context_ranks
        ),
        state_bytes_per_request=sum(number * spec.state_bytes for spec, number in numbered(unsharded)),
        longest_window=max((spec.window for spec, _ in numbered(unsharded)), default=0),
    )


def _stage_groups(
    architecture: Architecture,
    of_drafts: list[CacheSpec],
    cuts: tuple[tuple[int, int], ...],
    rank: Sharding,
    packing: Packing,
) -> list[tuple[CacheGroup, ...]]:
    """Return what each pipeline stage holds of the model's groups: all stages share their block tables."""
    by_layer = _by_layer(architecture.layers, rank)
    groups = packing.groups([*chain(*by_layer), *of_drafts])
    if len(cuts) == 1:
        return [groups]
    starts = [*accumulate(map(len, by_layer), initial=0)]
    starts[-1] += len(of_drafts)
    return [on_stage(groups, starts[start], starts[end]) for start, end in cuts]


def _token_bytes(specs: list[CacheSpec], *, windows: bool) -> int:
    return sum(number * spec.token_bytes for spec, number in numbered(specs) if windows or not spec.window)


def _specs(layers: Sequence[DecoderLayer], sharding: Sharding) -> list[CacheSpec]:
    return [*chain(*_by_layer(layers, sharding))]


def _by_layer(layers: Sequence[DecoderLayer], sharding: Sharding) -> list[tuple[CacheSpec, ...]]:
    """Return what each layer keeps; layers of the same mixers, of which there are many, share it."""
    told: dict[tuple[int, ...], tuple[CacheSpec, ...]] = {}
    kept = []
    for layer in layers:
        mixers = tuple(map(id, layer.mixers))
        if mixers not in told:
            specs = (spec for mixer in layer.mixers for spec in mixer.caches(sharding))
            told[mixers] = tuple(_unwindowed(spec) if spec.kind in sharding.kept_whole else spec for spec in specs)
        kept.append(told[mixers])
    return kept


def _unwindowed(spec: CacheSpec) -> CacheSpec:
    return replace(spec, kind="full_attention", window=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blocks:
    """How long blocks are. [tokens]."""

    chosen: int  # stated, or the smallest that all kernels accept
    smallest: int  # of the kernel that wants the longest
    hybrid_alignment: int  # at least, beside recurrent states

    def of(self, sharding: Sharding, architecture: Architecture) -> Sharding:
        """Return the view with its block, inflated to the largest recurrent state."""
        sharding = replace(sharding, block_size=max(self.chosen, self.smallest))
        specs = [spec for mixer in architecture.mixers for spec in mixer.caches(sharding)]
        states = [spec for spec in specs if spec.kind == "mamba"]
        token_bytes = max((spec.aligned_token_bytes for spec in specs), default=0)
        if not states or not token_bytes:
            return sharding
        inflated = hybrid_block_size(
            max(sharding.block_size, self.hybrid_alignment),
            token_bytes,
            max(spec.state_bytes for spec in states),
            checkpoint_grid=lcm(*(spec.checkpoint_tokens for spec in states)),
        )
        return replace(sharding, block_size=divided_by_rings(max(sharding.block_size, inflated), specs))


def hybrid_block_size(block_size: int, token_bytes: int, state_bytes: int, *, checkpoint_grid: int) -> int:
    """Return the attention block inflated until one page holds a recurrent state. [tokens].

        alignment = lcm(block_size, checkpoint grid)
        block = alignment x ceil(state / (alignment x token_bytes))

    Args:
        block_size: what the attention kernels accept beside recurrent layers. [tokens]
        token_bytes: of one token and attention layer. [bytes]
        state_bytes: largest recurrent state of one layer. [bytes]
        checkpoint_grid: grid of kept states; 0 where a recurrent layer keeps none. [tokens]

    Qwen3-Next-80B-A3B, as vLLM 0.33 itself computes it: blocks of 576 tokens.

    >>> hybrid_block_size(16, 2_048, 1_097_728, checkpoint_grid=64)
    576
    """
    alignment = lcm(block_size, checkpoint_grid or 1)
    return alignment * ceil_div(state_bytes, alignment * token_bytes)


def steady_bytes(shape: CacheShape, context_tokens: int) -> int:
    """Return the bytes a request holds on one GPU between steps: windows full, nothing in flight. [bytes]."""
    return sum(
        ceil_div(spec.token_bytes * min(context_tokens, spec.window or context_tokens), spec.context_ranks)
        + spec.state_bytes
        for group in shape.groups
        for spec in group.specs
    )

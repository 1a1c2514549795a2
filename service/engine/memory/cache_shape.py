"""The cache of one rank without lengths or a pool: which layers keep what, in which groups and blocks.

    block, beside recurrent states = the smallest multiple of what the kernels accept whose page holds a state

Sources:
    vLLM 0.33 `v1/core/kv_cache_planning.py`, `platforms/interface.py` (`_align_hybrid_block_size`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import lcm

from service.engine.arithmetic import ceil_div
from service.engine.errors import UnsupportedLayoutError
from service.engine.formats.elements import cache_bytes
from service.engine.inputs import EngineSettings, KvCacheDtype, Layout
from service.engine.layers import DEFAULT_BLOCK_SIZE, Architecture, CacheSpec, DecoderLayer, DraftHead, Sharding
from service.engine.memory.drafts import draft_of, retained_tokens
from service.engine.memory.groups import CacheGroup, cache_groups, counted
from service.engine.memory.stages import pipeline_stages


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


def shape_of(architecture: Architecture, layout: Layout, settings: EngineSettings) -> CacheShape:
    """Return the groups and sizes of one rank under an engine's settings."""
    return cache_shape(
        architecture,
        layout,
        settings.kv_cache_dtype,
        settings.block_size,
        is_checkpoints_dtype=settings.is_checkpoints_cache_dtype,
        num_speculative_tokens=settings.num_speculative_tokens,
        draft=draft_of(architecture, settings),
    )


@lru_cache(maxsize=4096)
def cache_shape(
    architecture: Architecture,
    layout: Layout,
    kv_cache_dtype: KvCacheDtype,
    block_size: int | None,
    *,
    is_checkpoints_dtype: bool = False,
    num_speculative_tokens: int = 0,
    draft: DraftHead | None = None,
) -> CacheShape:
    """Return the groups and sizes of one rank of the pipeline stage with the largest blocks.

    Layers that draft stand behind the last stage's own, and join the groups like any other layer.

    Raises:
        UnsupportedLayoutError: decode-context parallelism over a cache that cannot be spread.
    """
    whole = Sharding(
        tensor_parallel_size=1,
        cache_element_bytes=cache_bytes(kv_cache_dtype, architecture.element_bytes),
        model_element_bytes=architecture.element_bytes,
        is_checkpoints_dtype=is_checkpoints_dtype,
        keeps_states=architecture.has_attention or architecture.is_hybrid,
        num_speculative_tokens=num_speculative_tokens,
        retained_tokens=retained_tokens(draft, num_speculative_tokens),
        context_ranks=layout.decode_context_parallel_size,
    )
    rank = _in_blocks(replace(whole, tensor_parallel_size=layout.tensor_parallel_size), architecture, block_size)
    _check_context_parallel(architecture, rank)
    drafts = draft.body.layers if draft is not None else ()
    unsharded = _specs((*architecture.layers, *drafts), _in_blocks(whole, architecture, block_size))
    groups = max(_stage_groups(architecture, drafts, layout, rank), key=_bytes_per_block)
    return _shape(groups, unsharded, rank)


def _shape(groups: tuple[CacheGroup, ...], unsharded: list[CacheSpec], rank: Sharding) -> CacheShape:
    per_rank = [spec for group in groups for spec in group.specs]
    return CacheShape(
        groups=groups,
        groups_alike=counted(groups),
        block_size=rank.block_size,
        bytes_per_block=_bytes_per_block(groups),
        bytes_per_token=_token_bytes(unsharded, windows=False),
        bytes_per_token_within_windows=_token_bytes(unsharded, windows=True),
        bytes_per_token_per_gpu=ceil_div(_token_bytes(per_rank, windows=False), rank.context_ranks),
        state_bytes_per_request=sum(spec.state_bytes for spec in unsharded),
        longest_window=max((spec.window for spec in unsharded), default=0),
    )


def _stage_groups(
    architecture: Architecture, drafts: tuple[DecoderLayer, ...], layout: Layout, rank: Sharding
) -> list[tuple[CacheGroup, ...]]:
    """Return the groups of each pipeline stage."""
    num_layers = len(architecture.layers)
    return [
        cache_groups(_specs((*architecture.layers[start:end], *(drafts if end == num_layers else ())), rank))
        for start, end in pipeline_stages(num_layers, layout.pipeline_parallel_size)
    ]


def _bytes_per_block(groups: tuple[CacheGroup, ...]) -> int:
    return max((group.bytes_per_block for group in groups), default=0)


def _token_bytes(specs: list[CacheSpec], *, windows: bool) -> int:
    return sum(spec.token_bytes for spec in specs if windows or not spec.window)


def _specs(layers: Sequence[DecoderLayer], sharding: Sharding) -> list[CacheSpec]:
    return [spec for layer in layers for mixer in layer.mixers for spec in mixer.caches(sharding)]


def _check_context_parallel(architecture: Architecture, sharding: Sharding) -> None:
    """Raise UnsupportedLayoutError where kernels would read a cache they cannot spread."""
    needs_packing = any(mixer.spread.needs_packing for mixer in architecture.mixers)
    if sharding.context_ranks > 1 and needs_packing and not sharding.is_packed:
        raise UnsupportedLayoutError(
            "decode_context_parallel_size of sparse latent attention needs the packed cache of kv_cache_dtype=fp8",
            field="decode_context_parallel_size",
            accepted="1, or kv_cache_dtype=fp8",
        )


def _in_blocks(sharding: Sharding, architecture: Architecture, block_size: int | None) -> Sharding:
    """Return the view with the smallest block that all kernels can run, inflated to the largest recurrent state."""
    kernels = [mixer.kernel_block_size(sharding.cache_element_bytes) for mixer in architecture.mixers]
    smallest = max(kernels, default=DEFAULT_BLOCK_SIZE)
    sharding = replace(sharding, block_size=max(block_size or smallest, smallest))
    specs = [spec for mixer in architecture.mixers for spec in mixer.caches(sharding)]
    states = [spec for spec in specs if spec.state_bytes]
    token_bytes = max((spec.token_bytes for spec in specs), default=0)
    if not states or not token_bytes:
        return sharding
    inflated = hybrid_block_size(
        max(sharding.block_size, *(mixer.hybrid_block_size for mixer in architecture.mixers)),
        token_bytes,
        max(spec.state_bytes for spec in states),
        checkpoint_grid=lcm(*(spec.checkpoint_tokens for spec in states)),
    )
    return replace(sharding, block_size=inflated)


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

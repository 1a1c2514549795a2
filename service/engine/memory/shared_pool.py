"""The cache pool of one GPU: blocks, tokens and concurrency as the engine prints them at start-up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import lcm
from typing import Protocol

from service.engine.arithmetic import ceil_div
from service.engine.errors import UnsupportedLayoutError
from service.engine.inputs import EngineSettings, KvCacheDtype, Layout
from service.engine.layers import (
    Architecture,
    CompressedAttention,
    DecoderLayer,
    DraftHead,
    GatedDeltaNet,
    GroupedQueryAttention,
    KimiDeltaAttention,
    LatentAttention,
    Mamba1,
    Mamba2,
    ShortConvolution,
)
from service.engine.memory.drafts import draft_of, reserved_tokens, retained_tokens
from service.engine.memory.groups import CacheGroup, cache_groups, counted
from service.engine.memory.results import KvCache, KvCacheGroup
from service.engine.memory.specs import (
    DEFAULT_BLOCK_SIZE,
    ELEMENT_BYTES,
    CacheSpec,
    Sharding,
    attention_specs,
    checkpoint_tokens,
    hybrid_block_size,
    kernel_block_size,
    state_bytes,
)

SOFTMAX = (GroupedQueryAttention, LatentAttention, CompressedAttention)
RECURRENT = (GatedDeltaNet, KimiDeltaAttention, Mamba1, Mamba2, ShortConvolution)
# Asynchronous scheduling plans the next step before the last one is settled.
STEPS_IN_FLIGHT = 2


class Growing(Protocol):
    """How a cache fills as a request grows."""

    def blocks_per_request(self, num_tokens: int, in_flight_tokens: int) -> int:
        """Return the blocks that one request may hold at once."""


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
        return sum(number * group.blocks_for(num_tokens, in_flight_tokens) for group, number in self.groups_alike)


def plan_kv_cache(
    architecture: Architecture,
    *,
    layout: Layout,
    settings: EngineSettings,
    available_bytes: int,
    input_tokens: int = 0,
    output_tokens: int = 0,
) -> KvCache:
    """Return the pool of one GPU.

        num_gpu_blocks  = floor(available / bytes_per_block)
        max_concurrency = num_gpu_blocks / blocks of a request of max_model_len
        tokens          = floor(max_concurrency x max_model_len)

    Args:
        architecture: the model.
        layout: how one replica is spread.
        settings: cache dtype, block size, lengths and scheduling limits.
        available_bytes: the pool of one GPU. [bytes]
        input_tokens: mean prompt of the asked load. [tokens]
        output_tokens: mean completion of the asked load. [tokens]

    Sources:
        vLLM 0.33 `v1/core/kv_cache_planning.py`, `get_kv_cache_capacity` in `v1/core/kv_cache_utils.py`.
    """
    shape = shape_of(architecture, layout, settings)
    in_flight = in_flight_tokens(settings)
    asked_tokens = min(max(input_tokens + output_tokens, 1) + reserved_tokens(settings), settings.max_model_len)
    per_longest = shape.blocks_per_request(settings.max_model_len, in_flight)
    num_blocks = available_bytes // shape.bytes_per_block if shape.bytes_per_block else 1
    concurrency = num_blocks / per_longest if per_longest else 0.0
    asked = shape.blocks_per_request(asked_tokens, in_flight)
    return KvCache(
        bytes_per_token=shape.bytes_per_token,
        bytes_per_token_within_windows=shape.bytes_per_token_within_windows,
        bytes_per_token_per_gpu=shape.bytes_per_token_per_gpu,
        state_bytes_per_request=shape.state_bytes_per_request,
        bytes_per_request=asked * shape.bytes_per_block,
        block_size=shape.block_size,
        bytes_per_block=shape.bytes_per_block,
        num_gpu_blocks=num_blocks,
        tokens=int(concurrency * settings.max_model_len),
        max_concurrency=concurrency,
        estimated_max_model_len=longest_fitting(shape, settings.max_model_len, in_flight, num_blocks - 1),
        groups=tuple(_described(group, settings.max_model_len, in_flight) for group in shape.groups),
    )


def in_flight_tokens(settings: EngineSettings) -> int:
    """Return the tokens scheduled but not settled: two steps of the batch budget. [tokens]."""
    return STEPS_IN_FLIGHT * settings.max_num_batched_tokens


def requests_held(shape: Growing, *, settings: EngineSettings, num_gpu_blocks: int, context_tokens: int) -> int:
    """Return how many requests of this context so many blocks hold at once.

    One block is never handed out (the engine keeps a null block). A window holds its own tokens;
    the tokens in flight are shared by all requests of a step, so they are reserved once.

        requests = floor((blocks - 1 - in-flight reserve) / blocks per request)

    Drafted tokens take slots of their own, up to the longest context. Without a cache, slots alone count.
    """
    context_tokens = max(context_tokens, min(context_tokens + reserved_tokens(settings), settings.max_model_len))
    steady = shape.blocks_per_request(context_tokens, 0)
    if not steady:
        return settings.max_num_seqs
    peak = shape.blocks_per_request(context_tokens, in_flight_tokens(settings))
    usable = num_gpu_blocks - 1
    if peak > usable:
        return 0
    return 1 + (usable - peak) // steady


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

    def sharding_over(tensor_parallel_size: int) -> Sharding:
        sharding = _sharding(
            architecture, tensor_parallel_size, kv_cache_dtype, block_size, is_checkpoints_dtype=is_checkpoints_dtype
        )
        drafting = replace(
            sharding,
            num_speculative_tokens=num_speculative_tokens,
            retained_tokens=retained_tokens(draft, num_speculative_tokens),
            context_ranks=layout.decode_context_parallel_size,
        )
        return _inflated(drafting, architecture)

    sharding, whole = sharding_over(layout.tensor_parallel_size), sharding_over(1)
    _check_context_parallel(architecture, sharding)
    drafts = draft.body.layers if draft is not None else ()
    num_layers = len(architecture.layers)
    stages = [
        cache_groups(_specs((*architecture.layers[start:end], *(drafts if end == num_layers else ())), sharding))
        for start, end in pipeline_stages(num_layers, layout.pipeline_parallel_size)
    ]
    groups = max(stages, key=_bytes_per_block)
    unsharded = _specs((*architecture.layers, *drafts), whole)
    per_rank = [spec for group in groups for spec in group.specs]
    return CacheShape(
        groups=groups,
        groups_alike=counted(groups),
        block_size=sharding.block_size,
        bytes_per_block=_bytes_per_block(groups),
        bytes_per_token=_token_bytes(unsharded, windows=False),
        bytes_per_token_within_windows=_token_bytes(unsharded, windows=True),
        bytes_per_token_per_gpu=ceil_div(_token_bytes(per_rank, windows=False), sharding.context_ranks),
        state_bytes_per_request=sum(spec.state_bytes for spec in unsharded),
        longest_window=max((spec.window for spec in unsharded), default=0),
    )


def pipeline_stages(num_layers: int, pipeline_parallel_size: int) -> list[tuple[int, int]]:
    """Return the first and last layer of each stage.

    Layers that do not divide evenly go to the middle stages first, sparing the last (which has the
    output head) and then the first (vLLM `distributed.utils.get_pp_indices`).
    """
    share, remainder = divmod(num_layers, pipeline_parallel_size)
    sizes = [share] * pipeline_parallel_size
    for index in range(2, remainder + 2):
        sizes[-index] += 1
    starts = [sum(sizes[:index]) for index in range(pipeline_parallel_size)]
    return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]


def _bytes_per_block(groups: tuple[CacheGroup, ...]) -> int:
    return max((group.bytes_per_block for group in groups), default=0)


def _token_bytes(specs: list[CacheSpec], *, windows: bool) -> int:
    return sum(spec.token_bytes for spec in specs if windows or not spec.window)


def _specs(layers: Sequence[DecoderLayer], sharding: Sharding) -> list[CacheSpec]:
    return [spec for layer in layers for mixer in layer.mixers for spec in attention_specs(mixer, sharding)]


def _check_context_parallel(architecture: Architecture, sharding: Sharding) -> None:
    """Raise UnsupportedLayoutError where the sparse kernels would read a cache they cannot spread.

    Source: vLLM 0.33 `v1/attention/backends/mla/flashmla_sparse.py`.
    """
    is_sparse = any(
        isinstance(it, LatentAttention) and it.is_sparse for layer in architecture.layers for it in layer.mixers
    )
    is_packed = sharding.cache_element_bytes == 1 and not sharding.is_checkpoints_dtype
    if sharding.context_ranks > 1 and is_sparse and not is_packed:
        raise UnsupportedLayoutError(
            "decode_context_parallel_size of sparse latent attention needs the packed cache of kv_cache_dtype=fp8",
            field="decode_context_parallel_size",
            accepted="1, or kv_cache_dtype=fp8",
        )


def _sharding(
    architecture: Architecture,
    tensor_parallel_size: int,
    kv_cache_dtype: KvCacheDtype,
    block_size: int | None,
    *,
    is_checkpoints_dtype: bool,
) -> Sharding:
    """Return the rank's view, with the smallest block that all its layers' kernels can run."""
    model_element_bytes = ELEMENT_BYTES.get(architecture.dtype, 2)
    element_bytes = {"auto": model_element_bytes, "bf16": 2, "fp16": 2, "fp8": 1}[kv_cache_dtype]
    mixers = {mixer for layer in architecture.layers for mixer in layer.mixers}
    has_attention = any(isinstance(it, SOFTMAX) for it in mixers)
    smallest = max((kernel_block_size(it, element_bytes) for it in mixers), default=DEFAULT_BLOCK_SIZE)
    return Sharding(
        tensor_parallel_size=tensor_parallel_size,
        cache_element_bytes=element_bytes,
        model_element_bytes=model_element_bytes,
        block_size=max(block_size or smallest, smallest),
        is_checkpoints_dtype=is_checkpoints_dtype,
        keeps_states=has_attention or architecture.is_hybrid,
    )


def _inflated(sharding: Sharding, architecture: Architecture) -> Sharding:
    """Return the view with the block inflated to the largest recurrent state, where there is one beside attention."""
    mixers = {mixer for layer in architecture.layers for mixer in layer.mixers}
    states = [state_bytes(it, sharding) for it in mixers if isinstance(it, RECURRENT)]
    if not states or not any(isinstance(it, SOFTMAX) for it in mixers):
        return sharding
    token_bytes = max(
        spec.token_bytes
        for it in mixers
        if isinstance(it, GroupedQueryAttention | LatentAttention)
        for spec in attention_specs(it, sharding)
    )
    block_size = hybrid_block_size(
        sharding.block_size,
        token_bytes,
        max(states),
        has_latent=any(isinstance(it, LatentAttention) for it in mixers),
        checkpoint_grid=lcm(*(checkpoint_tokens(it) for it in mixers if isinstance(it, RECURRENT))),
    )
    return replace(sharding, block_size=block_size)


def longest_fitting(shape: Growing, longest: int, in_flight: int, usable_blocks: int) -> int:
    """Return the longest single request that fits, found by bisection. [tokens]."""
    if shape.blocks_per_request(longest, in_flight) <= usable_blocks:
        return longest
    low, high = 0, longest
    while low < high:
        middle = (low + high + 1) // 2
        if shape.blocks_per_request(middle, in_flight) <= usable_blocks:
            low = middle
        else:
            high = middle - 1
    return low


def _described(group: CacheGroup, max_model_len: int, in_flight: int) -> KvCacheGroup:
    first = group.specs[0]
    return KvCacheGroup(
        kind=first.kind,
        num_layers=len(group.specs),
        block_size=first.block_size,
        page_size_bytes=first.page_size_bytes,
        blocks_per_request=group.blocks_for(max_model_len, in_flight),
        window_tokens=first.window or None,
    )


def steady_bytes(shape: CacheShape, context_tokens: int) -> int:
    """Return the bytes a request holds on one GPU between steps: windows full, nothing in flight. [bytes]."""
    return sum(
        ceil_div(spec.token_bytes * min(context_tokens, spec.window or context_tokens), spec.context_ranks)
        + spec.state_bytes
        for group in shape.groups
        for spec in group.specs
    )

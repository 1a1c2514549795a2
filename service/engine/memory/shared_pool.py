"""The cache pool of one GPU: blocks, tokens and concurrency as the engine prints them at start-up."""

from dataclasses import dataclass, replace
from typing import Protocol

from service.engine.arithmetic import fitting
from service.engine.derived import derived
from service.engine.engines.device import REFERENCE, Device
from service.engine.engines.plans import PlanRules
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import Architecture
from service.engine.memory.cache_shape import CacheShape, shape_of
from service.engine.memory.drafts import reserved_tokens
from service.engine.memory.groups import CacheGroup
from service.engine.memory.packing import blocks_by_growing
from service.engine.memory.results import KvCache, KvCacheGroup


class Growing(Protocol):
    """How a cache fills as a request grows."""

    def blocks_per_request(self, num_tokens: int, in_flight_tokens: int) -> int:
        """Return the blocks that one request may hold at once."""


def plan_kv_cache(
    architecture: Architecture,
    *,
    layout: Layout,
    settings: EngineSettings,
    available_bytes: int,
    input_tokens: int = 0,
    output_tokens: int = 0,
    device: Device = REFERENCE,
) -> KvCache:
    """Return the pool of one GPU.

        num_gpu_blocks  = floor(available / bytes_per_block)
        max_concurrency = num_gpu_blocks / blocks of a request of max_model_len
        tokens          = floor(max_concurrency x max_model_len), since 0.20.1
                          floor(num_gpu_blocks / groups) x smallest block, before

    vLLM 0.11.2 said of Llama 3.2 1B on an L4 "Available KV cache memory: 17.20 GiB", "GPU KV cache size: 563,744
    tokens", "Maximum concurrency for 2,048 tokens per request: 275.27x" (unslothai/notebooks on GitHub,
    original_template/Llama_FP8_GRPO.ipynb); its blocks of 16 tokens are 32 KiB x 16 large:

    >>> from service.engine.families import parse_architecture
    >>> llama = parse_architecture({
    ...     "architectures": ["LlamaForCausalLM"], "hidden_size": 2_048, "intermediate_size": 8_192,
    ...     "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
    ...     "vocab_size": 128_256, "max_position_embeddings": 131_072})
    >>> settings = EngineSettings(
    ...     gpu_memory_utilization=0.9, kv_cache_dtype="bf16", max_model_len=2_048, max_num_batched_tokens=2_048,
    ...     max_num_seqs=256)
    >>> available_bytes = 563_744 // 16 * 16 * 32 * 1_024
    >>> pool = plan_kv_cache(llama, layout=Layout(), settings=settings, available_bytes=available_bytes)
    >>> round(available_bytes / 2**30, 1), pool.tokens, round(pool.max_concurrency, 2)
    (17.2, 563744, 275.27)

    Args:
        architecture: the model.
        layout: how one replica is spread.
        settings: cache dtype, block size, lengths and scheduling limits.
        available_bytes: the pool of one GPU. [bytes]
        input_tokens: mean prompt of the asked load. [tokens]
        output_tokens: mean completion of the asked load. [tokens]
        device: the GPU's generation and the engine's version.

    Sources:
        vLLM 0.33 `v1/core/kv_cache_planning.py`, `get_kv_cache_capacity` in `v1/core/kv_cache_utils.py`; 0.20.1
        `v1/core/kv_cache_utils.py` (`_report_kv_cache_config`).
    """
    pool = shared_pool(architecture, layout, settings, available_bytes, device)
    return pool.cache(input_tokens + output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedPool:
    """A pool of blocks under an engine's settings; what its requests are long is not known yet."""

    shape: CacheShape
    whole: CacheShape  # of a replica on one GPU
    settings: EngineSettings
    in_flight_tokens: int
    empty: KvCache

    def cache(self, context_tokens: int) -> KvCache:
        """Return the pool, with what a request of this context takes of it."""
        asked = min(max(context_tokens, 1) + reserved_tokens(self.settings), self.settings.max_model_len)
        blocks = self.shape.blocks_per_request(asked, self.in_flight_tokens)
        of_whole = blocks if self.whole is self.shape else self.whole.blocks_per_request(asked, self.in_flight_tokens)
        return replace(
            self.empty,
            bytes_per_request=of_whole * self.whole.bytes_per_block,
            bytes_per_request_per_gpu=blocks * self.shape.bytes_per_block,
        )

    def requests_held(self, context_tokens: int) -> int:
        """Return how many requests of this context the pool holds at once."""
        return requests_held(
            self.shape,
            settings=self.settings,
            num_gpu_blocks=self.empty.num_gpu_blocks,
            context_tokens=context_tokens,
            in_flight_tokens=self.in_flight_tokens,
        )


@derived(256)
def shared_pool(
    architecture: Architecture, layout: Layout, settings: EngineSettings, available_bytes: int, device: Device
) -> SharedPool:
    """Return the pool of one GPU, as `plan_kv_cache` does, for requests of any lengths."""
    shape = shape_of(architecture, layout, settings, device)
    in_flight = in_flight_tokens(settings, layout, device.plan)
    per_longest = shape.blocks_per_request(settings.max_model_len, in_flight)
    blocks = num_blocks(shape, available_bytes)
    counted = per_longest
    if device.plan.counts_by_growing_group:
        counted = blocks_by_growing(shape.groups, settings.max_model_len, in_flight)
    concurrency = blocks / counted if counted else 0.0
    checked = blocks - 1 if device.plan.checks_usable_blocks else blocks
    empty = KvCache(
        bytes_per_token=shape.bytes_per_token or shape.bytes_per_token_within_windows,
        bytes_per_token_within_windows=shape.bytes_per_token_within_windows,
        bytes_per_token_per_gpu=shape.bytes_per_token_per_gpu,
        state_bytes_per_request=shape.state_bytes_per_request,
        bytes_per_request=0,
        bytes_per_request_per_gpu=0,
        block_size=shape.block_size,
        bytes_per_block=shape.bytes_per_block,
        num_gpu_blocks=blocks,
        tokens=_printed_tokens(shape, blocks, layout)
        if device.plan.counts_tokens_by_blocks
        else int(concurrency * settings.max_model_len),
        max_concurrency=concurrency,
        estimated_max_model_len=longest_fitting(shape, settings.max_model_len, in_flight, checked),
        groups=tuple(_described(group, settings.max_model_len, in_flight) for group in shape.groups),
    )
    return SharedPool(
        shape=shape,
        whole=shape_of(architecture, Layout(), settings, device),
        settings=settings,
        in_flight_tokens=in_flight,
        empty=empty,
    )


def num_blocks(shape: CacheShape, available_bytes: int) -> int:
    """Return the blocks of a pool; one where layers keep none. [blocks]."""
    return available_bytes // shape.bytes_per_block if shape.bytes_per_block else 1


def _printed_tokens(shape: CacheShape, num_blocks: int, layout: Layout) -> int:
    """Return the tokens that versions up to 0.20.1 print: those of a group's share of all blocks. [tokens]."""
    smallest = min((spec.block_size for group in shape.groups for spec in group.specs), default=shape.block_size)
    return num_blocks // max(len(shape.groups), 1) * smallest * layout.decode_context_parallel_size


def in_flight_tokens(settings: EngineSettings, layout: Layout, plan: PlanRules) -> int:
    """Return the tokens scheduled but not settled, one batch budget for each batch in flight. [tokens].

        batches = pipeline stages + 1    the next one is planned while these run, unless that is turned off
                  1                      up to 0.25

    Source: vLLM 0.33 `config/vllm.py` (`max_in_flight_tokens`).
    """
    batches = layout.pipeline_parallel_size + plan.plans_ahead if plan.has_batches_in_flight else 1
    return batches * settings.max_num_batched_tokens


def requests_held(
    shape: Growing, *, settings: EngineSettings, num_gpu_blocks: int, context_tokens: int, in_flight_tokens: int
) -> int:
    """Return how many requests of this context so many blocks hold at once.

    One block is never handed out (the engine keeps a null block). A window holds its own tokens;
    the tokens in flight are shared by all requests of a step, so they are reserved once.

        requests = floor((blocks - 1 - in-flight reserve) / blocks per request)

    Drafted tokens take slots of their own, up to the longest context. Without a cache, slots alone count.

    SGLang's issue 38846: "max_running_requests is capped to 9 by the mamba state cache (max_mamba_cache_size=47, 5
    state slots per request)":

    >>> from service.engine.memory.pools import SeparatePools
    >>> pools = SeparatePools(
    ...     page_size=1, num_pages=100_000, full_bytes_per_token=1, window_tokens=0, window_bytes_per_token=0,
    ...     kept_in_windows=0, bytes_per_page=1, num_states=47, states_per_request=5, state_bytes=1)
    >>> settings = EngineSettings(
    ...     gpu_memory_utilization=0.9, kv_cache_dtype="fp8", max_model_len=32_768, max_num_batched_tokens=2_048,
    ...     max_num_seqs=32)
    >>> requests_held(pools, settings=settings, num_gpu_blocks=100_000, context_tokens=1_000, in_flight_tokens=0)
    9
    """
    steady, peak = taken(shape, settings, context_tokens, in_flight_tokens)
    return fitting(num_gpu_blocks - 1, peak, steady) if steady else settings.max_num_seqs


def taken(shape: Growing, settings: EngineSettings, context_tokens: int, in_flight_tokens: int) -> tuple[int, int]:
    """Return the blocks of a request between steps, and those of the one that has all tokens in flight. [blocks]."""
    context_tokens = max(context_tokens, min(context_tokens + reserved_tokens(settings), settings.max_model_len))
    return shape.blocks_per_request(context_tokens, 0), shape.blocks_per_request(context_tokens, in_flight_tokens)


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
    first = group.kinds[0]
    return KvCacheGroup(
        kind=first.kind,
        num_layers=len(group.specs),
        block_size=first.block_size,
        page_size_bytes=first.page_size_bytes,
        blocks_per_request=group.blocks_for(max_model_len, in_flight),
        window_tokens=first.window or None,
    )

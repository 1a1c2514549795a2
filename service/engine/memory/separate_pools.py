"""SGLang's cache: a pool for each kind of layer, sized once, where vLLM shares one pool of equal pages.

    rest        = what the weights leave of `mem_fraction_static`
    states      = floor(rest x r / (1 + r) / (state bytes x (1 + drafted / slots)))    r = mamba_full_memory_ratio;
                  without prefix caching, one of each request that may run; since 0.5.17 one is no request's
    full tokens = floor(what is left / (full bytes + s x window bytes))                s = swa_full_tokens_ratio
    window      = floor(s x full tokens); without prefix caching since 0.5.14, what requests hold by `windows.py`

Of a compressed past, `compressed_pools.py`.

Sources:
    SGLang `python/sglang/srt/mem_cache/kv_cache_configurator.py` (`_handle_max_mamba_cache`,
    `_calculate_mamba_ratio`), `python/sglang/srt/model_executor/pool_configurator.py`,
    `python/sglang/srt/configs/model_config.py` (`is_hybrid_swa_model`),
    `python/sglang/srt/managers/schedule_batch.py` (`maybe_evict_swa`).
"""

from collections import Counter
from fractions import Fraction
from math import ceil
from typing import Final

from service.engine.arithmetic import ceil_div, round_up
from service.engine.derived import derived
from service.engine.engines.plans import NEWEST
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import Architecture, CacheSpec
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.compressed_pools import (
    compressed_pools,
    compressed_windows_ratio,
    fullest_stage,
)
from service.engine.memory.drafts import reserved_tokens
from service.engine.memory.pools import SeparatePools
from service.engine.memory.results import KvCache, KvCacheGroup
from service.engine.memory.shared_pool import in_flight_tokens, longest_fitting
from service.engine.memory.stage_slots import layers_shape, stage_slots
from service.engine.memory.windows import capped_windows, kept_in_windows

MAMBA_FULL_MEMORY_RATIO: Final = Fraction(9, 10)  # `--mamba-full-memory-ratio`: bytes of states to bytes of the rest
SWA_FULL_TOKENS_RATIO: Final = Fraction(8, 10)  # `--swa-full-tokens-ratio`: tokens of windowed to full layers
PAGE_SIZE: Final = 1  # `--page-size` [tokens]
PAGES_ON_TEN: Final = (16, 32, 64)  # that TensorRT-LLM's kernels read; others become 64 [tokens]
STATES_WITHOUT_PREFIXES: Final = 1
# Slots behind the window are given back once per window of decoded tokens.
WINDOWS_HELD: Final = 2


@derived(1)
def has_separate_pools(architecture: Architecture) -> bool:
    """Return whether the rules here cover a model: with tokens that grow, in layers whose pages have one."""
    have_rules = all(mixer.page_size is not None for mixer in architecture.mixers)
    return have_rules and cache_shape(architecture, Layout(), "auto", None).bytes_per_token_within_windows > 0


def has_window_pool(architecture: Architecture) -> bool:
    """Return whether windowed layers have a pool of their own (`is_hybrid_swa_model`); else they keep every token."""
    return architecture.has_window_pool


def windows_ratio(architecture: Architecture, settings: EngineSettings) -> Fraction | None:
    """Return the slots of windowed layers to those of full ones, as stated or by default; None where requests decide.

    [fraction].
    """
    if architecture.compresses_past:
        return compressed_windows_ratio(settings)
    if settings.caps_windows and not settings.enable_prefix_caching:
        return None
    stated = settings.swa_full_tokens_ratio
    return SWA_FULL_TOKENS_RATIO if stated is None else Fraction(str(stated))


def states_per_request(settings: EngineSettings) -> int:
    """Return the states that one running request takes of its pool. [count].

    Its own, two that the prefix cache may hold for it, and two buffers to write checkpoints while the next step runs
    (`extra_buffer`, by default since 0.5.14).

    Source: SGLang `_calculate_mamba_ratio`, and `_handle_mamba_radix_cache` of 0.5.13 and 0.5.14 (`server_args.py`).
    """
    return settings.states_per_request if settings.enable_prefix_caching else STATES_WITHOUT_PREFIXES


@derived(128)
def separate_pools(
    architecture: Architecture, layout: Layout, settings: EngineSettings, available_bytes: int
) -> SeparatePools:
    """Return the pools of one rank of the fullest pipeline stage.

    Args:
        architecture: the model.
        layout: how one replica is spread.
        settings: cache dtype, page size, drafts, prefix caching and the ratio of windowed slots.
        available_bytes: of all pools together. [bytes]
    """
    page = _page_size(architecture, settings)
    if architecture.compresses_past:
        return compressed_pools(architecture, layout, settings, available_bytes, page)
    stages = stage_slots(architecture, layout, settings)
    state_bytes, window = max(stage.state_bytes for stage in stages), max(stage.window for stage in stages)
    drafted = settings.num_speculative_tokens + 1 if settings.num_speculative_tokens else 0
    per_request, ratio = states_per_request(settings), windows_ratio(architecture, settings)
    capped = round_up(capped_windows(settings, window, page), page) if window and ratio is None else 0
    has_own_states = state_bytes > 0 and not settings.enable_prefix_caching
    padded = int(settings.pads_states and state_bytes > 0)
    num_states = (
        settings.max_num_seqs
        if has_own_states
        else _num_states(available_bytes, state_bytes, Fraction(drafted, per_request), padded * (1 + drafted))
    )
    # States of drafted tokens are kept for running requests alone, beside the pool.
    per_drafting = (min(settings.max_num_seqs, num_states // per_request) + padded) * drafted
    states = state_bytes * (num_states + padded + per_drafting)
    left = max(available_bytes - states, 0)
    fullest = min(stages, key=lambda stage: stage.tokens(left, capped, ratio or 0))
    full_bytes, window_bytes = fullest.full_bytes, fullest.window_bytes
    tokens = fullest.tokens(left, capped, ratio or 0)
    num_pages = tokens // page
    return SeparatePools(
        page_size=page,
        num_pages=num_pages,
        full_bytes_per_token=full_bytes,
        window_tokens=capped or (int((ratio or 0) * num_pages * page) // page * page if window else 0),
        window_bytes_per_token=window_bytes,
        kept_in_windows=kept_in_windows(settings, window, page) if capped else WINDOWS_HELD * window,
        bytes_per_page=page * full_bytes + int((ratio or 0) * page * window_bytes),
        is_capped=capped > 0 or has_own_states,
        fixed_bytes=capped * window_bytes + (states if has_own_states else 0),
        num_states=num_states,
        states_per_request=per_request,
        state_bytes=state_bytes,
    )


def plan_separate_pools(
    architecture: Architecture,
    *,
    layout: Layout,
    settings: EngineSettings,
    available_bytes: int,
    input_tokens: int = 0,
    output_tokens: int = 0,
) -> KvCache:
    """Return the pools of one GPU; `tokens` is SGLang's `max_total_num_tokens`.

    Args:
        architecture: the model.
        layout: how one replica is spread.
        settings: cache dtype, page size, lengths and scheduling limits.
        available_bytes: of all pools together. [bytes]
        input_tokens: mean prompt of the asked load. [tokens]
        output_tokens: mean completion of the asked load. [tokens]
    """
    pools = separate_pools(architecture, layout, settings, available_bytes)
    whole = separate_pools(architecture, Layout(), settings, available_bytes)
    growing, with_windows, state_bytes = _bytes_of_all_ranks(architecture, layout, settings, whole)
    in_flight = in_flight_tokens(settings, layout, NEWEST)
    asked = min(max(input_tokens + output_tokens, 1) + reserved_tokens(settings), settings.max_model_len)
    return KvCache(
        bytes_per_token=growing or with_windows,
        bytes_per_token_within_windows=with_windows,
        bytes_per_token_per_gpu=pools.full_bytes_per_token,
        state_bytes_per_request=state_bytes,
        bytes_per_request=_request_bytes(whole, asked, in_flight),
        bytes_per_request_per_gpu=_request_bytes(pools, asked, in_flight),
        block_size=pools.page_size,
        bytes_per_block=pools.bytes_per_page,
        num_gpu_blocks=pools.num_pages,
        tokens=pools.tokens,
        max_concurrency=pools.num_pages / pools.blocks_per_request(settings.max_model_len, in_flight),
        estimated_max_model_len=longest_fitting(pools, settings.max_model_len, in_flight, pools.num_pages - 1),
        groups=_described(_rank_specs(architecture, layout, settings), pools, settings.max_model_len, in_flight),
    )


def bytes_to_hold_one(architecture: Architecture, layout: Layout, settings: EngineSettings, num_tokens: int) -> int:
    """Return the least memory of all pools together in which one request of this length fits. [bytes].

        max((1 + r) x tokens x (full bytes + s x window bytes), (1 + r) / r x states of a request)

    with tokens = max(length, window slots / s), and without the factor of r where nothing recurs.

    mattbucci/2x-3090-GA102-300-A1-sglang-inference on GitHub, Gemma 4 26B on two RTX 3090, four windowed slots to five
    full ones: "full_layer_tokens=117840, swa_layer_tokens=94272 ... SWAKVPool mem usage: 10.11 GB", which are GiB:

    >>> from service.engine.families import parse_architecture
    >>> gemma = parse_architecture({
    ...     "architectures": ["Gemma4ForCausalLM"], "hidden_size": 2_816, "intermediate_size": 2_112,
    ...     "num_hidden_layers": 30, "layer_types": 5 * [*5 * ["sliding_attention"], "full_attention"],
    ...     "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "num_global_key_value_heads": 2,
    ...     "global_head_dim": 512, "attention_k_eq_v": True, "sliding_window": 1_024, "vocab_size": 262_144,
    ...     "max_position_embeddings": 262_144})
    >>> settings = EngineSettings(
    ...     gpu_memory_utilization=0.85, kv_cache_dtype="bf16", max_model_len=262_144, max_num_batched_tokens=4_096,
    ...     max_num_seqs=1, swa_full_tokens_ratio=0.8)
    >>> round(bytes_to_hold_one(gemma, Layout(tensor_parallel_size=2), settings, 117_840) / 2**30, 2)
    10.11
    """
    pools = separate_pools(architecture, layout, settings, 0)
    page, in_flight, ratio = (
        pools.page_size,
        in_flight_tokens(settings, layout, NEWEST),
        windows_ratio(architecture, settings),
    )
    tokens = min(num_tokens + reserved_tokens(settings), max(settings.max_model_len, num_tokens))
    if pools.window_bytes_per_token and ratio is not None:
        held = min(tokens, pools.kept_in_windows + in_flight)
        tokens = max(tokens, ceil(held / ratio))
    # One page more than asked is free when a request starts.
    per_token = pools.full_bytes_per_token + (ratio or 0) * pools.window_bytes_per_token
    growing = pools.fixed_bytes + (ceil_div(tokens, page) + 1) * page * per_token
    if not pools.state_bytes or pools.is_capped:
        return ceil(growing)
    drafted = settings.num_speculative_tokens + 1 if settings.num_speculative_tokens else 0
    states = pools.state_bytes * (pools.states_per_request + drafted + settings.pads_states * (1 + drafted))
    return ceil(max(growing, states / MAMBA_FULL_MEMORY_RATIO) * (1 + MAMBA_FULL_MEMORY_RATIO))


def _num_states(available_bytes: int, state_bytes: int, drafted: Fraction, padded: int) -> int:
    """Return `max_mamba_cache_size`: states that fit their share, with those of drafted tokens beside them."""
    if not state_bytes:
        return 0
    share = MAMBA_FULL_MEMORY_RATIO / (1 + MAMBA_FULL_MEMORY_RATIO)
    return max(int((available_bytes * share - padded * state_bytes) / (state_bytes * (1 + drafted))), 0)


def _request_bytes(pools: SeparatePools, num_tokens: int, in_flight_tokens: int) -> int:
    tokens = ceil_div(num_tokens, pools.page_size) * pools.page_size
    held = pools.held_in_windows(tokens, in_flight_tokens)
    states = pools.states_per_request * pools.state_bytes
    return tokens * pools.full_bytes_per_token + held * pools.window_bytes_per_token + states


def _bytes_of_all_ranks(
    architecture: Architecture, layout: Layout, settings: EngineSettings, whole: SeparatePools
) -> tuple[int, int, int]:
    """Return the bytes of a token, the same within its windows, and those of a request's state, before sharding."""
    if architecture.compresses_past:
        return whole.full_bytes_per_token, whole.full_bytes_per_token + whole.window_bytes_per_token, 0
    shape = layers_shape(architecture, layout, settings)
    within = shape.bytes_per_token_within_windows
    return shape.bytes_per_token if whole.window_bytes_per_token else within, within, shape.state_bytes_per_request


def _page_size(architecture: Architecture, settings: EngineSettings) -> int:
    """Return `--page-size`: one token unless asked otherwise, or what the layers' kernels want. [tokens]."""
    own, stated = settings.page_size, settings.block_size or settings.page_size
    page = stated if own == PAGE_SIZE or stated in PAGES_ON_TEN else own
    return max(page, *(mixer.page_size or PAGE_SIZE for mixer in architecture.mixers))


def _rank_specs(architecture: Architecture, layout: Layout, settings: EngineSettings) -> list[CacheSpec]:
    if architecture.compresses_past:
        return [*fullest_stage(architecture, layout, settings).specs]
    # Rings of an indexer's raw keys lie beside the pools, a few KiB for each request that may run.
    specs = (spec for group in layers_shape(architecture, layout, settings).groups for spec in group.specs)
    return [spec for spec in specs if spec.kind != "circular_buffer"]


def _described(
    specs: list[CacheSpec], pools: SeparatePools, max_model_len: int, in_flight: int
) -> tuple[KvCacheGroup, ...]:
    """Return the layers by kind and size, with what a request of the longest context holds in each."""
    kinds = Counter(
        (spec.kind, spec.token_bytes, spec.state_bytes, spec.window if pools.window_tokens else 0) for spec in specs
    )
    pages = ceil_div(max_model_len, pools.page_size)
    held = ceil_div(pools.held_in_windows(max_model_len, in_flight), pools.page_size)
    return tuple(
        KvCacheGroup(
            kind=kind,
            num_layers=count,
            block_size=pools.page_size,
            page_size_bytes=state_bytes or token_bytes * pools.page_size,
            blocks_per_request=pools.states_per_request if state_bytes else (held if window else pages),
            window_tokens=window or None,
        )
        for (kind, token_bytes, state_bytes, window), count in kinds.items()
    )

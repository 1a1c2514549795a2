"""SGLang's pools of a compressed past (DeepSeek V4): latents of 4 and 128 tokens, windows, states of compressors.

    fixed       = states of the requests that may run
    full tokens = floor((rest - fixed) / (full bytes + s x window bytes))     s = swa_full_tokens_ratio
    windows     = floor(s x full tokens)
    drafts      = one layer more, of the model's own mean size

Since 0.5.21 windows are sized by the requests that may run where nobody states s, but the model's own defaults state it
first: "DSV4 SWA sizing: mode=ratio (explicit)", whatever `--max-running-requests` says.

A stage of a pipeline has the layers of its own, and all stages the tokens of the scarcest.

Sources:
    SGLang 0.5.12, 0.5.15 and 0.5.23 `model_executor/pool_configurator.py` (`DSV4PoolConfigurator`),
    0.5.23 `mem_cache/deepseek_v4_memory_pool.py`, `mem_cache/kv_cache_configurator.py` (`ReduceOp.MIN`),
    `arg_groups/deepseek_v4_hook.py` (`max_running_requests`: 256), `arg_groups/model_overrides/deepseek_v4.py`
    ("Setting swa_full_tokens_ratio to 0.1"), `arg_groups/kv_cache_hook.py` (`_swa_full_tokens_ratio_explicitly_set`,
    which `arg_groups/pipeline.py` sets behind it).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from service.engine.arithmetic import round_up
from service.engine.derived import derived
from service.engine.formats.elements import BYTE, HALF_BYTES
from service.engine.inputs import CompressedPools, EngineSettings, Layout
from service.engine.layers import Architecture, CacheSpec, DecoderLayer, Sharding
from service.engine.memory.pools import SeparatePools
from service.engine.memory.stages import pipeline_stages
from service.engine.memory.windows import kept_in_windows

WINDOWS_RATIO: Final = Fraction(1, 10)  # `--swa-full-tokens-ratio`, where nobody states it
SPARE_SLOTS: Final = 2  # of states: the null request's, and a ring behind all
STATE_ROWS: Final = 128  # that states are padded to


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What the layers of one pipeline stage keep."""

    specs: tuple[CacheSpec, ...]  # the same on every rank and in one format
    rings: tuple[CacheSpec, ...]  # of each request that may run, one for a kind of state in each layer
    full_bytes: Fraction  # of one token
    window_bytes: Fraction  # of one slot of the windows
    window: int  # [tokens]


def compressed_windows_ratio(settings: EngineSettings) -> Fraction:
    """Return the slots of windows to those of full tokens, as stated or by default. [fraction]."""
    stated = settings.swa_full_tokens_ratio
    return WINDOWS_RATIO if stated is None else Fraction(str(stated))


def fullest_stage(architecture: Architecture, layout: Layout, settings: EngineSettings) -> Stage:
    """Return the pipeline stage that keeps the most."""
    is_drafted, ratio = settings.num_speculative_tokens > 0, compressed_windows_ratio(settings)
    bounds = tuple(pipeline_stages(len(architecture.layers), layout.pipeline_parallel_size, settings.stage_rule))
    stages = _stages(architecture, bounds, settings.compressed_pools, is_drafted)
    return max(stages, key=lambda stage: stage.full_bytes + ratio * stage.window_bytes)


@derived(16)
def _stages(
    architecture: Architecture,
    bounds: tuple[tuple[int, int], ...],
    pools: CompressedPools,
    is_drafted: bool,  # noqa: FBT001 - a key
) -> tuple[Stage, ...]:
    sharding = Sharding(
        tensor_parallel_size=1,
        cache_element_bytes=BYTE,
        model_element_bytes=HALF_BYTES,
        num_speculative_tokens=int(is_drafted),
        pools=pools,
    )
    layers = architecture.layers
    return tuple(_stage(layers[start:end], sharding) for start, end in bounds)


def _stage(layers: tuple[DecoderLayer, ...], sharding: Sharding) -> Stage:
    specs = tuple(spec for layer in layers for mixer in layer.mixers for spec in mixer.caches(sharding))
    rings = tuple(spec for spec in specs if spec.kind == "circular_buffer")
    drafted = Fraction(len(layers) + 1, len(layers)) if sharding.num_speculative_tokens else Fraction(1)
    return Stage(
        specs=specs,
        rings=rings,
        full_bytes=drafted * _slot_bytes(spec for spec in specs if not spec.window and spec not in rings),
        window_bytes=drafted * _slot_bytes(spec for spec in specs if spec.window),
        window=max(spec.window for spec in specs),
    )


def compressed_pools(
    architecture: Architecture, layout: Layout, settings: EngineSettings, available_bytes: int, page: int
) -> SeparatePools:
    """Return the pools of one rank of the pipeline stage that holds the fewest tokens.

    Args:
        architecture: the model.
        layout: how one replica is spread.
        settings: drafts, prefix caching, requests and tokens of a step, and the ratio of windowed slots.
        available_bytes: of all pools together. [bytes]
        page: `--page-size`. [tokens]

    DeepSeek-V4-Pro in SGLang 0.5.15 with 64 requests on each of eight MI355X: "bytes_per_full_token=13735.04,
    available_bytes=118.93 GB, c128_state_fixed=1.01 GB, full_token=9217792" (and 1,382,656 slots of windows) under
    `--swa-full-tokens-ratio 0.15`; `tests/engine/memory/test_compressed_pools.py` has its layers.
    """
    stage, ratio = fullest_stage(architecture, layout, settings), compressed_windows_ratio(settings)
    fixed = _fixed_bytes(stage, settings)
    per_token = stage.full_bytes + ratio * stage.window_bytes
    pages = int(max(available_bytes - fixed, 0) / per_token) // page
    return SeparatePools(
        page_size=page,
        num_pages=pages,
        full_bytes_per_token=ceil(stage.full_bytes),
        window_tokens=int(ratio * pages * page) // page * page,
        window_bytes_per_token=ceil(stage.window_bytes),
        kept_in_windows=kept_in_windows(settings, stage.window, page),
        bytes_per_page=ceil(page * per_token),
        fixed_bytes=fixed,
        num_states=0,
        states_per_request=1,
        state_bytes=0,
    )


def _fixed_bytes(stage: Stage, settings: EngineSettings) -> int:
    return sum(_state_bytes(ring, settings.max_num_seqs) for ring in stage.rings)


def _slot_bytes(specs: Iterable[CacheSpec]) -> Fraction:
    return sum((Fraction(spec.page_size_bytes, spec.block_size) for spec in specs), Fraction())


def _state_bytes(ring: CacheSpec, requests: int) -> int:
    """Return one layer's states of all requests that may run, in rows of one token. [bytes]."""
    rows = round_up((requests + SPARE_SLOTS) * ring.block_size + 1, STATE_ROWS)
    return rows * (ring.state_bytes // ring.block_size)

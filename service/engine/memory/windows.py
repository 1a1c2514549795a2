"""How many slots of SGLang's windowed pools running requests hold at worst, by which it sizes some of those pools.

    each = window + evicted + 1 page + what one step writes, twice      evicted = 128 x tokens that one step writes
    all  = requests x each + 2 chunks + 1 page

A step without drafts writes within one page.

Source:
    SGLang 0.5.14 to 0.5.23 `model_executor/pool_configurator.py` (`SWAChunkCapPoolConfigurator`,
    `compute_swa_request_cap`), `mem_cache/allocation_sizing.py` (`get_alloc_len_per_decode`).
"""

from typing import Final

from service.engine.inputs import EngineSettings

EVICTION_INTERVAL: Final = 128  # `SGLANG_SWA_EVICTION_INTERVAL`: steps of decoding after which windows are given back
CHUNKS_IN_FLIGHT: Final = 2


def kept_in_windows(settings: EngineSettings, window: int, page: int) -> int:
    """Return the slots of one request that decodes. [tokens].

    Args:
        settings: drafts.
        window: of the layers. [tokens]
        page: `--page-size`. [tokens]
    """
    written = settings.num_speculative_tokens + 1
    ahead = 2 * written if settings.num_speculative_tokens else page
    return window + EVICTION_INTERVAL * written + page + ahead


def capped_windows(settings: EngineSettings, window: int, page: int) -> int:
    """Return the slots of all requests that may run, and of the chunks that are read beside them. [tokens].

    Args:
        settings: requests, chunks and drafts.
        window: of the layers. [tokens]
        page: `--page-size`. [tokens]

    >>> settings = EngineSettings(
    ...     gpu_memory_utilization=0.9, kv_cache_dtype="bf16", max_model_len=8_192, max_num_batched_tokens=8_192,
    ...     max_num_seqs=100)
    >>> capped_windows(settings, 128, 1) == 100 * (128 + 128 + 1 + 1) + 2 * 8_192 + 1
    True
    """
    each = kept_in_windows(settings, window, page)
    return settings.max_num_seqs * each + CHUNKS_IN_FLIGHT * settings.max_num_batched_tokens + page

"""Slots of windowed pools that SGLang reserves for the requests that may run."""

from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import EngineSettings, Layout
from service.engine.memory.separate_pools import bytes_to_hold_one, separate_pools
from service.engine.memory.windows import capped_windows, kept_in_windows

GIB = 1 << 30


def settings(**changes: Any) -> EngineSettings:
    given = {"max_model_len": 131_072, "max_num_batched_tokens": 8_192, "max_num_seqs": 64, "kv_cache_dtype": "bf16"}
    return EngineSettings(gpu_memory_utilization=0.9, **{**given, **changes})


def test_drafts_are_evicted_later_and_written_twice() -> None:
    """SGLang 0.5.23 `compute_swa_request_cap`: window + interval x drafts + page + 2 x `get_alloc_len_per_decode`."""
    assert kept_in_windows(settings(), 128, 1) == 128 + 128 + 1 + 1
    assert kept_in_windows(settings(num_speculative_tokens=3), 128, 256) == 128 + 128 * 4 + 256 + 2 * 4
    assert capped_windows(settings(), 128, 1) == 64 * 258 + 2 * 8_192 + 1


def test_requests_decide_how_many_windows_there_are_where_no_prefixes_are_kept(catalog: Snapshot) -> None:
    """SGLang 0.5.14 to 0.5.23 `SWAChunkCapPoolConfigurator`: "the freed memory is redirected to the full pool"."""
    architecture = catalog.model("gpt-oss-120b").architecture
    shared, capped = (
        separate_pools(architecture, Layout(), settings(enable_prefix_caching=keeps), 40 * GIB)
        for keeps in (True, False)
    )

    assert shared.window_tokens == shared.tokens * 8 // 10
    assert capped.window_tokens == 64 * (128 + 128 + 1 + 1) + 2 * 8_192 + 1
    left = 40 * GIB - capped.window_tokens * capped.window_bytes_per_token
    assert capped.tokens == left // capped.full_bytes_per_token > 1.7 * shared.tokens


@pytest.mark.parametrize("tokens", [1, 3_000, 100_000])
def test_one_request_fits_beside_capped_windows(catalog: Snapshot, tokens: int) -> None:
    architecture, asked = catalog.model("gpt-oss-120b").architecture, settings(enable_prefix_caching=False)
    needed = bytes_to_hold_one(architecture, Layout(), asked, tokens)

    def holds(available_bytes: int) -> bool:
        pools = separate_pools(architecture, Layout(), asked, available_bytes)
        return pools.blocks_per_request(tokens, 2 * 8_192) <= pools.num_pages - 1

    assert holds(needed)
    assert not holds(round(needed * 0.98))


@pytest.mark.parametrize(("version", "caps"), [("0.5.13", False), ("0.5.14", True), (None, True)])
def test_versions_before_0_5_14_share_by_a_ratio(catalog: Snapshot, version: str | None, *, caps: bool) -> None:
    rules = rules_for("sglang", version)
    resolved = resolve(catalog.model("gpt-oss-20b"), catalog.gpu("h100"), StatedSettings(), rules)

    assert resolved.settings.caps_windows is caps

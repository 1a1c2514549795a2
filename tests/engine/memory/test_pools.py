"""What one request takes of pools that are apart."""

from dataclasses import replace

from service.catalog.snapshot import Snapshot
from service.engine.inputs import EngineSettings, Layout
from service.engine.memory.pools import SeparatePools
from service.engine.memory.separate_pools import separate_pools

POOLS = SeparatePools(
    page_size=256, num_pages=1_000, full_bytes_per_token=4, window_tokens=25_600, window_bytes_per_token=8,
    kept_in_windows=768, bytes_per_page=1_300, num_states=0, states_per_request=1, state_bytes=0,
)  # fmt: skip


def test_windows_hold_a_short_request_s_share_of_all_pages() -> None:
    # 768 of 25,600 slots are 30 of 1,000 pages; a request of 100 tokens has no more slots than tokens.
    assert POOLS.held_in_windows(5_000, 0) == 768
    assert POOLS.blocks_per_request(5_000, 0) == 30
    assert POOLS.blocks_per_request(100, 0) == 4
    assert POOLS.blocks_per_request(256_000, 0) == 1_000


def test_tokens_in_flight_take_slots_as_well() -> None:
    assert POOLS.held_in_windows(50_000, 8_192) == 768 + 8_192
    assert replace(POOLS, window_tokens=0).held_in_windows(50_000, 8_192) == 0


def test_nobody_waits_for_windows_and_states_that_all_have_room_in() -> None:
    capped = replace(POOLS, num_states=4, state_bytes=1, is_capped=True)

    assert capped.blocks_per_request(100, 8_192) == 1


def test_tokens_are_those_of_whole_pages() -> None:
    assert POOLS.tokens == 256_000


def test_every_request_that_may_run_has_a_state_where_no_prefixes_are_kept(catalog: Snapshot) -> None:
    """SGLang 0.5.9 to 0.5.23 `handle_max_mamba_cache`: "Use explicitly set max_running_requests"; one more since 0.5.17."""
    architecture = catalog.model("qwen3.5-9b").architecture
    asked = EngineSettings(
        gpu_memory_utilization=0.85, kv_cache_dtype="bf16", max_model_len=8_192, max_num_batched_tokens=4_096,
        max_num_seqs=64, enable_prefix_caching=False,
    )  # fmt: skip
    pools = separate_pools(architecture, Layout(tensor_parallel_size=2), asked, 20 << 30)

    assert pools.num_states == asked.max_num_seqs == 64
    assert pools.tokens == ((20 << 30) - 65 * pools.state_bytes) // pools.full_bytes_per_token
    assert (
        separate_pools(architecture, Layout(tensor_parallel_size=2), replace(asked, max_num_seqs=4_096), 1 << 30).tokens
        == 0
    )

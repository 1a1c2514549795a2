"""What one request takes of pools that are apart."""

from dataclasses import replace

from service.engine.memory.pools import SeparatePools

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


def test_nobody_waits_for_windows_that_all_have_room_in() -> None:
    assert replace(POOLS, are_windows_capped=True).blocks_per_request(100, 8_192) == 1


def test_tokens_are_those_of_whole_pages() -> None:
    assert POOLS.tokens == 256_000

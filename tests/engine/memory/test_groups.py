"""How layers share block tables, against the groups of vLLM 0.33's own planner."""

from collections import Counter
from dataclasses import replace

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.layers import CacheSpec
from service.engine.memory.groups import cache_groups, counted
from service.engine.memory.packing import Packing, packed_bytes

FULL = CacheSpec(kind="full_attention", block_size=16, token_bytes=4_096)
WINDOW = replace(FULL, kind="sliding_window", window=1_024)
STATE = CacheSpec(kind="mamba", block_size=16, token_bytes=0, state_bytes=60_000, pages_per_request=1)


def sizes(specs: list[CacheSpec]) -> list[tuple[str, int]]:
    return [(group.specs[0].kind, len(group.specs)) for group in cache_groups(specs)]


def test_layers_alike_are_one_group() -> None:
    assert sizes([FULL] * 32) == [("full_attention", 32)]
    assert cache_groups([]) == ()


def test_layers_that_grow_alike_share_blocks_of_different_pages() -> None:
    (group,) = cache_groups([FULL, replace(FULL, kind="mla_attention", token_bytes=132)])

    assert group.bytes_per_block == 16 * (4_096 + 132)


def test_windows_stand_in_groups_as_large_as_the_rarest_kind() -> None:
    # Gemma 3 27B, as the oracle's rows have it: 10 full layers and 52 windows are 7 groups of at most 10.
    specs = ([WINDOW] * 5 + [FULL]) * 10 + [WINDOW] * 2

    assert Counter(kind for kind, _ in sizes(specs)) == {"sliding_window": 6, "full_attention": 1}
    assert max(number for _, number in sizes(specs)) == 10


def test_close_numbers_are_padded_to_the_commonest() -> None:
    assert sizes([FULL] * 13 + [WINDOW] * 12) == [("full_attention", 13), ("sliding_window", 12)]


def test_states_are_padded_to_a_page_of_attention() -> None:
    groups = cache_groups([FULL, STATE])

    assert {spec.page_size_bytes for group in groups for spec in group.specs} == {65_536}


def test_shorter_pages_take_longer_blocks_where_that_divides() -> None:
    groups = cache_groups([FULL, replace(WINDOW, token_bytes=1_024)])

    assert [group.specs[0].block_size for group in groups] == [16, 64]


def test_a_latent_page_that_does_not_divide_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="latent page"):
        cache_groups([replace(FULL, kind="mla_attention", token_bytes=1_152), WINDOW])


def test_groups_that_grow_alike_are_counted_once() -> None:
    groups = cache_groups(([WINDOW] * 5 + [FULL]) * 10 + [WINDOW] * 2)

    assert sorted(number for _, number in counted(groups)) == [1, 6]


def test_states_fill_blocks_of_latents_beside_rings() -> None:
    # vLLM 0.33 `_get_packed_kv_cache_groups`, GLM 5.3 Flash on four ranks: 11 states fit, so 34 layers are 4 groups.
    latent = CacheSpec(kind="mla_attention", block_size=1_152, token_bytes=1_024, stride_alignment=1_024)
    keys = replace(latent, token_bytes=33, stride_alignment=4_224)
    ring = CacheSpec(kind="circular_buffer", block_size=4, token_bytes=0, state_bytes=2_048)
    state = replace(STATE, block_size=1_152, state_bytes=1_085_440)
    specs = [*([state] * 3 + [keys, ring, latent]) * 11, state]

    groups = cache_groups(specs)

    assert [len(group.specs) for group in groups] == [9, 9, 8, 8, 22, 11]
    assert {spec.page_size_bytes for spec in groups[0].specs} == {1_152 * 1_024}
    assert (packed_bytes(groups), packed_bytes(groups, is_aligned=False)) == (13_415_424, 13_394_304)
    assert Packing().block_bytes(groups) == 13_415_424

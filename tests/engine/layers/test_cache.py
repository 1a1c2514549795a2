"""How many blocks a request may hold, by the kind of cache."""

import pytest

from service.engine.layers import CacheSpec, heads_per_rank
from tests.engine.layers.ranks import rank


def spec(**changes: object) -> CacheSpec:
    return CacheSpec(**{"kind": "full_attention", "block_size": 16, "token_bytes": 4_096, **changes})  # type: ignore[arg-type]


# kind, changes, tokens, in flight, blocks; each by hand from vLLM 0.33 `v1/kv_cache_interface.py`
BLOCKS = {
    "everything": ({}, 1_000, 8_192, 63),
    "two ranks in turn": ({"context_ranks": 2}, 1_000, 8_192, 32),
    "a window, steady": ({"kind": "sliding_window", "window": 128}, 1_000, 0, 9),
    "a window, a step in flight": ({"kind": "sliding_window", "window": 128}, 1_000, 512, 41),
    "a window that is not full": ({"kind": "sliding_window", "window": 128}, 20, 512, 3),
    "a window kept for drafts": ({"kind": "sliding_window", "window": 128, "retained_tokens": 2}, 1_000, 0, 10),
    "a chunk": ({"kind": "chunked_local_attention", "window": 8_192}, 100_000, 0, 512),
    "a state": ({"kind": "mamba", "pages_per_request": 3}, 100_000, 8_192, 3),
}


@pytest.mark.parametrize(("changes", "tokens", "in_flight", "blocks"), BLOCKS.values(), ids=BLOCKS)
def test_blocks_of_a_request(changes: dict[str, object], tokens: int, in_flight: int, blocks: int) -> None:
    assert spec(**changes).blocks_for(tokens, in_flight) == blocks


def test_a_page_is_a_block_of_tokens_or_a_state_unless_padded() -> None:
    assert spec().page_size_bytes == 65_536
    assert spec(kind="mamba", token_bytes=0, state_bytes=1_097_728).page_size_bytes == 1_097_728
    assert spec(page_size_padded=70_000).page_size_bytes == 70_000
    assert spec(stride_alignment=60_000).block_stride_bytes == 120_000


@pytest.mark.parametrize(("heads", "ranks", "each"), [(8, 1, 8), (8, 8, 1), (8, 16, 1), (4, 8, 1)])
def test_heads_are_split_while_they_last(heads: int, ranks: int, each: int) -> None:
    assert heads_per_rank(heads, ranks) == each


# stated for all, stated for matrices, named by the config; bytes of a convolution's and of a matrix' element: vLLM 0.33
# `model_executor/layers/mamba/mamba_utils.py` (`_mamba_state_dtype`), `models/config.py` (configs that name one)
STATES = {
    "the model's own": ("auto", "auto", "auto", 2, 2),
    "as the config names it": ("auto", "auto", "float32", 2, 4),
    "all of it": ("float32", "auto", "auto", 4, 4),
    "a config before a flag for all": ("float16", "auto", "float32", 2, 4),
    "matrices alone": ("auto", "float32", "auto", 2, 4),
    "a flag before the config": ("auto", "bfloat16", "float32", 2, 2),
}


@pytest.mark.parametrize(("whole", "matrices", "own", "of_inputs", "of_matrices"), STATES.values(), ids=STATES)
def test_elements_of_a_state(whole: str, matrices: str, own: str, of_inputs: int, of_matrices: int) -> None:
    view = rank(state_dtype=whole, matrix_dtype=matrices)

    assert (view.state_element_bytes, view.matrix_element_bytes(own)) == (of_inputs, of_matrices)

"""What PyTorch 2.9's allocator keeps for a tensor (`c10/cuda/CUDACachingAllocator.cpp`)."""

from hypothesis import given
from hypothesis import strategies as st

from service.engine.memory.allocator import allocated_bytes

MIB = 1 << 20


@given(size=st.integers(1, 1 << 34))
def test_a_tensor_has_its_bytes_and_less_than_a_rest_more(size: int) -> None:
    assert 0 <= allocated_bytes(size) - size <= MIB


@given(size=st.integers(1, 10 * MIB - 1))
def test_small_tensors_take_whole_units_of_512_bytes(size: int) -> None:
    assert allocated_bytes(size) % 512 == 0
    assert allocated_bytes(size) - size < 512


def test_large_tensors_take_whole_units_of_2_mib_unless_the_rest_serves_others() -> None:
    assert allocated_bytes(13 * MIB) == 14 * MIB
    assert allocated_bytes(13 * MIB - 1) == 13 * MIB - 1


@given(size=st.integers(20 * MIB, 1 << 34))
def test_large_tensors_take_whole_units_where_nothing_splits_their_blocks(size: int) -> None:
    assert allocated_bytes(size, splits_large=False) % (2 * MIB) == 0
    assert 0 <= allocated_bytes(size, splits_large=False) - size < 2 * MIB


@given(size=st.integers(1, 20 * MIB - 1))
def test_blocks_below_20_mib_are_split_as_ever(size: int) -> None:
    """`should_split`: "(size < max_split_size()) && (remaining > kSmallSize)"."""
    assert allocated_bytes(size, splits_large=False) == allocated_bytes(size)

"""What PyTorch's allocator takes for one tensor: whole blocks, whose rest nobody can use.

    below 10 MiB    whole units of 512 bytes
    from 10 MiB     whole units of 2 MiB, where at most 1 MiB is left over; a larger rest serves other tensors
    from 20 MiB     whole units of 2 MiB, whatever is left over, where an engine forbids to split larger blocks

Sources:
    PyTorch 2.9 `c10/cuda/CUDACachingAllocator.cpp` (`round_size`, `get_allocation_size`, `should_split`);
    vLLM 0.22 `v1/worker/gpu_worker.py` (`_scoped_allocator_max_split`: "20 MiB is the minimum PyTorch allows").
"""

from typing import Final

from service.engine.arithmetic import round_up

UNIT_BYTES: Final = 512
LARGE_BYTES: Final = 10 << 20
LARGE_UNIT_BYTES: Final = 2 << 20
SMALLEST_REST_BYTES: Final = 1 << 20
SMALLEST_WHOLE_BYTES: Final = 20 << 20


def allocated_bytes(tensor_bytes: int, *, splits_large: bool = True) -> int:
    """Return the bytes that a tensor keeps from others. [bytes].

    >>> allocated_bytes(1_000), allocated_bytes(11 << 20) >> 20, allocated_bytes((10 << 20) + 5) >> 20
    (1024, 12, 10)
    >>> allocated_bytes((20 << 20) + 5) >> 20, allocated_bytes((20 << 20) + 5, splits_large=False) >> 20
    (20, 22)

    Args:
        tensor_bytes: of the tensor.
        splits_large: whether blocks of 20 MiB and more may be split.
    """
    if tensor_bytes < LARGE_BYTES:
        return round_up(tensor_bytes, UNIT_BYTES)
    rounded = round_up(tensor_bytes, LARGE_UNIT_BYTES)
    is_whole = not splits_large and tensor_bytes >= SMALLEST_WHOLE_BYTES
    return rounded if is_whole or rounded - tensor_bytes <= SMALLEST_REST_BYTES else tensor_bytes


def rests(loaded: int, values: int, biases: int, *, splits_large: bool) -> int:
    """Return what nobody can use of a matrix's blocks, once it is loaded. [bytes].

        rests = blocks of values + of biases + of scales - what is loaded

    Where blocks may be split, tensors stand in what others left, and a matrix counts as one.

    >>> rests(100 << 20, 97 << 20, 0, splits_large=False) >> 20
    1

    Args:
        loaded: all of the matrix.
        values: of it, without scales and biases.
        biases: of it.
        splits_large: whether blocks of 20 MiB and more may be split.
    """
    tensors = (loaded,) if splits_large else (values, biases, max(loaded - values - biases, 0))
    return sum(allocated_bytes(each, splits_large=splits_large) - each for each in tensors)

"""What PyTorch's allocator takes for one tensor: whole blocks, whose rest nobody can use.

    below 10 MiB    whole units of 512 bytes
    from 10 MiB     whole units of 2 MiB, where at most 1 MiB is left over; a larger rest serves other tensors

Source:
    PyTorch 2.9 `c10/cuda/CUDACachingAllocator.cpp` (`round_size`, `get_allocation_size`, `should_split`).
"""

from typing import Final

from service.engine.arithmetic import round_up

UNIT_BYTES: Final = 512
LARGE_BYTES: Final = 10 << 20
LARGE_UNIT_BYTES: Final = 2 << 20
SMALLEST_REST_BYTES: Final = 1 << 20


def allocated_bytes(tensor_bytes: int) -> int:
    """Return the bytes that a tensor keeps from others. [bytes].

    >>> allocated_bytes(1_000), allocated_bytes(11 << 20) >> 20, allocated_bytes((10 << 20) + 5) >> 20
    (1024, 12, 10)
    """
    if tensor_bytes < LARGE_BYTES:
        return round_up(tensor_bytes, UNIT_BYTES)
    rounded = round_up(tensor_bytes, LARGE_UNIT_BYTES)
    return rounded if rounded - tensor_bytes <= SMALLEST_REST_BYTES else tensor_bytes

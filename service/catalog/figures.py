"""What a GPU's figures may be: which there are, and the bounds within which they make physical sense."""

from collections.abc import Mapping
from typing import Final

# An order of magnitude or two beyond what is on sale, to either side: they catch a wrong unit and a slip of the hand.
MEMORY: Final = (1e9, 1e14, "bytes")
RATE: Final = (1e9, 1e15, "bytes per second")
LINK: Final = (1e7, 1e14, "bytes per second")
PEAK: Final = (1e11, 1e19, "operations per second")
BOUNDS: Final[Mapping[str, tuple[float, float, str]]] = {
    "memory_bytes": MEMORY,
    "usable_memory_bytes": MEMORY,
    "marketed_memory_bytes": MEMORY,
    "memory_bandwidth_bytes_per_s": RATE,
    "scale_up_bytes_per_s": LINK,
    "scale_out_bytes_per_s": LINK,
    "power_watts": (1.0, 1e5, "watts"),
    "peak_fp32_flop_per_s": PEAK,
    "peak_bf16_flop_per_s": PEAK,
    "peak_fp16_flop_per_s": PEAK,
    "peak_fp8_flop_per_s": PEAK,
    "peak_int8_op_per_s": PEAK,
    "peak_int4_op_per_s": PEAK,
    "peak_fp4_flop_per_s": PEAK,
}
# Of 108 GPUs on sale 0.95 to 1 of the memory is usable, ECC and the driver's share taken off.
USABLE: Final = 0.85
NEEDED: Final = frozenset({"memory_bytes", "memory_bandwidth_bytes_per_s"})


def check_figures(figures: Mapping[str, float]) -> None:
    """Refuse figures that cannot be those of a GPU.

    Raises:
        ValueError: one is unknown, missing or beyond its bounds, or the usable memory is not most of the whole.
    """
    if unknown := set(figures) - set(BOUNDS):
        raise ValueError(f"unknown figures {sorted(unknown)}; accepted: {sorted(BOUNDS)}")
    if missing := NEEDED - set(figures):
        raise ValueError(f"figures lack {sorted(missing)}; accepted: figures with both of {sorted(NEEDED)}")
    for name, value in figures.items():
        low, high, unit = BOUNDS[name]
        if not low <= value <= high:
            raise ValueError(f"{name} is {value:g}; accepted: {low:g} to {high:g} {unit}")
    whole = figures["memory_bytes"]
    usable = figures.get("usable_memory_bytes", whole)
    if usable > whole:
        raise ValueError("usable_memory_bytes is more than memory_bytes; accepted: at most as much")
    if usable < USABLE * whole:
        raise ValueError(
            f"usable_memory_bytes is {usable / whole:.2f} of memory_bytes, and is what is planned with; accepted: "
            f"{USABLE} of it or more, or no usable_memory_bytes"
        )

"""To what an engine's own kernels pad gpt-oss's MXFP4 experts, where they are not vLLM's.

a rank's columns, what goes in, what comes out: each to whole tiles [columns]
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertTiles:
    """Tiles of one kernel, and how it keeps biases."""

    inner: int  # a rank's columns of an expert
    width: int  # what goes in
    out_width: int  # what comes out
    widens_biases: bool = True  # to fp32
    shares_buffers: bool = True  # of activations between layers; Triton's kernel makes its own


def square(inner: int, width: int) -> ExpertTiles:
    """Return tiles as wide where it goes in as where it comes out.

    >>> square(128, 256).out_width
    256
    """
    return ExpertTiles(inner=inner, width=width, out_width=width)

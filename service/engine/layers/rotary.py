"""Tables of rotary positions: cosines and sines of every position, which each rank keeps beside its weights.

    bytes = positions x rotary width x element bytes

Layers with the same positions share one table.

Source:
    vLLM 0.33 `model_executor/layers/rotary_embedding/` (`get_rope`, `_compute_cos_sin_cache`).
"""

from dataclasses import dataclass
from typing import Final

from service.engine.formats.elements import HALF_BYTES

IMAGE_FACTOR: Final = 4  # by which tables are longer where positions have three axes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """What a layer turns by its position."""

    width: int  # of a head, or of a latent's rotary part [elements]
    is_latent: bool = False
    is_sparse: bool = False  # beside an indexer, which turns its own key
    has_window: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryTable:
    """One table of cosines and sines."""

    positions: int  # [tokens]
    width: int  # of the rotated part of a head: cosines and sines of half as many angles [elements]
    element_bytes: int = HALF_BYTES
    has_image_axes: bool = False  # positions have three axes
    is_interleaved: bool = False  # the axes take turns over angles, so that newer versions need one axis only

    def bytes_kept(self, *, interleaves: bool) -> int:
        """Return the bytes of the table.

        Gemma 3 12B (huggingface.co/google/gemma-3-12b-it: 131,072 positions, scaled by 8, heads of 256): the table of
        its full layers takes 512 MiB.

        >>> RotaryTable(positions=8 * 131_072, width=256).bytes_kept(interleaves=True) >> 20
        512

        Args:
            interleaves: whether the engine's version makes one axis suffice.
        """
        is_long = self.has_image_axes and not (self.is_interleaved and interleaves)
        return self.positions * self.width * self.element_bytes * (IMAGE_FACTOR if is_long else 1)

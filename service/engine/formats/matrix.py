"""One weight of a model, as one rank holds it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from service.engine.formats.elements import SINGLE_BYTES

# Scales of the cache, which some quantized checkpoints bring along.
CACHE_SCALES = "cache_scales"
LATENT_CACHE_SCALES = "latent_cache_scales"
PADDING = "padding"  # rows that kernels want, and no checkpoint has


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A weight of `rows` outputs and `columns` inputs on one rank, `count` times over.

    `parts` is how many of the checkpoint's matrices are fused in it (each keeps its own scale).
    """

    module: str  # as the checkpoint names it, for its list of unquantized modules
    rows: int
    columns: int
    count: int = 1
    parts: int = 1
    is_linear: bool = True  # embeddings, norms and convolutions are never quantized
    is_kept: bool = False  # built without quantization, whatever the checkpoint's
    is_routed: bool = False  # of experts, of which a token passes a few
    is_absorbed: bool = False  # multiplied into its neighbours once loaded, for which it is kept in two bytes
    is_grouped: bool = False  # multiplied in groups of heads
    element_bytes: int | None = None  # where it is not the model's dtype
    scale_bytes: int = 4  # of one quantization block
    scheme: str = ""  # where quantized checkpoints store it otherwise than the rest
    biases: int = 0  # elements, in the model's dtype
    inner_side: Literal["", "rows", "columns"] = ""  # which of an expert's sides is cut over ranks
    own_multiple: int = 1  # to which an MXFP4 expert's inner side is rounded on Hopper
    pads_plain: bool = False  # kernels that pad experts without quantization run its activation and routing
    is_ungated: bool = False  # of experts that multiply no gate
    is_wide_router: bool = False  # its product is in fp32, for which it is kept so where no kernel mixes types

    @property
    def elements(self) -> int:
        """Return the elements of all `count` of it, biases included."""
        return self.count * (self.rows * self.columns + self.biases)

    @property
    def inner_columns(self) -> int:
        """Return a rank's columns of an expert."""
        return self.rows // self.parts if self.inner_side == "rows" else self.columns

    @property
    def name(self) -> str:
        """Return the last part of the module's name."""
        return self.module.rsplit(".", 1)[-1]


def vector(module: str, elements: int) -> Matrix:
    """Return norms, biases and the like: never quantized, in the model's dtype."""
    return Matrix(module=module, rows=elements, columns=1, is_linear=False)


def single(module: str, elements: int) -> Matrix:
    """Return a vector kept in single precision."""
    return Matrix(module=module, rows=elements, columns=1, is_linear=False, element_bytes=SINGLE_BYTES)


def as_kept(matrices: Iterable[Matrix]) -> list[Matrix]:
    """Return matrices that stay in the model's dtype however a checkpoint stores the rest, in layers built so."""
    return [replace(matrix, is_kept=True) for matrix in matrices]


def cache_scales(prefix: str, kind: str = CACHE_SCALES) -> Matrix:
    """Return the scales of keys and values, which `matrix_bytes` counts where a loader makes room for them."""
    return Matrix(module=prefix + kind, rows=2, columns=1, is_linear=False, element_bytes=SINGLE_BYTES)

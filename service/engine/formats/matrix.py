"""One weight of a model, as one rank holds it."""

from dataclasses import dataclass

# Scales of the cache, which some quantized checkpoints bring along.
CACHE_SCALES = "cache_scales"
LATENT_CACHE_SCALES = "latent_cache_scales"


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
    element_bytes: int | None = None  # where it is not the model's dtype
    scale_bytes: int = 4  # of one quantization block
    scheme: str = ""  # where quantized checkpoints store it otherwise than the rest
    biases: int = 0  # elements, in the model's dtype
    in_mxfp4: "Matrix | None" = None  # itself as that scheme's kernels pad it

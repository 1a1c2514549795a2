"""How the kernels of a GPU want weights laid out: padded to whole tiles, with finer scales, or wider.

A rank's columns of an expert are its inner size; what goes in and comes out is its width.
"""

from dataclasses import dataclass, replace
from math import gcd
from typing import Final

from service.engine.arithmetic import round_up
from service.engine.formats.matrix import Matrix
from service.engine.formats.scheme import Scheme

PADDED_UNGATED: Final = frozenset[Scheme]({"none", "fp8-tensor", "nvfp4"})
FINEST_SCALE_BLOCK: Final = 32  # to which scales of fp8 blocks are refined at most [elements]


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What one GPU's kernels make of a matrix; multiples are 1 where nothing is padded."""

    mxfp4_inner: int | None = None  # of MXFP4 experts; None: what the model's own kernel on Hopper wants
    mxfp4_width: int = 1
    own_inner: int = 0  # of gpt-oss's MXFP4 experts alone, in place of both; 0: as of others
    own_width: int = 1  # what goes into them
    own_out_width: int = 1  # and what comes out
    plain_inner: int = 1  # of experts without quantization
    inner_of: tuple[tuple[Scheme, int], ...] = ()  # by scheme, whatever their activation: SGLang, of some classes
    ungated_inner: int = 1  # of experts without a gate, as they are or in the formats of `PADDED_UNGATED`
    copies_absorbed: bool = False  # what is absorbed, in two bytes beside a matrix that has two as well
    keeps_wide_routers: bool = False  # in fp32: no kernel multiplies them with activations of 16 bits

    def padded(self, matrix: Matrix, scheme: Scheme) -> Matrix:
        """Return an expert's matrix as the kernel holds it.

        gpt-oss-120b (huggingface.co/openai/gpt-oss-120b: width and columns 2,880) in tiles of 128 and 256:

        >>> up = Matrix(module="experts.gate_up_proj", rows=5_760, columns=2_880, parts=2, inner_side="rows")
        >>> marlin = Storage(mxfp4_inner=128, mxfp4_width=256).padded(up, "mxfp4")
        >>> marlin.rows, marlin.columns
        (5888, 3072)
        """
        if scheme == "mxfp4" and self.own_inner and matrix.own_multiple > 1:
            goes_in = matrix.inner_side == "rows"
            return _rounded(matrix, self.own_inner, self.own_width if goes_in else self.own_out_width)
        if scheme == "mxfp4":
            inner = matrix.own_multiple if self.mxfp4_inner is None else self.mxfp4_inner
            return _rounded(matrix, inner, self.mxfp4_width)
        if matrix.is_ungated and self.ungated_inner > 1 and scheme in PADDED_UNGATED:
            return _rounded(matrix, self.ungated_inner, 1)
        if scheme == "none" and matrix.pads_plain and self.plain_inner > 1:
            return _rounded(matrix, self.plain_inner, 1)
        return _rounded(matrix, dict(self.inner_of)[scheme], 1) if scheme in dict(self.inner_of) else matrix


def _rounded(matrix: Matrix, inner: int, width: int) -> Matrix:
    """Return a matrix whose inner side and width are whole multiples; each fused part is rounded on its own."""
    if matrix.inner_side == "rows":
        rows, columns = matrix.parts * round_up(matrix.rows // matrix.parts, inner), round_up(matrix.columns, width)
    else:
        rows, columns = round_up(matrix.rows, width), round_up(matrix.columns, inner)
    return replace(matrix, rows=rows, columns=columns, biases=rows if matrix.biases else 0)


def refined_block(block: int, inner: int, width: int) -> int | None:
    """Return the block whose scales fit a rank's part of an expert: the checkpoint's, a finer one, or None. [elements].

        refined = gcd(block, inner, width), at least 32

    Half of a checkpoint's block has the same scale, so nothing is lost.

    Source:
        vLLM 0.33 `model_executor/layers/fused_moe/oracle/fp8.py` (`refine_fp8_moe_block_shape`).

    >>> refined_block(128, 1_024, 4_096), refined_block(128, 192, 3_072), refined_block(128, 176, 4_096)
    (128, 64, None)
    """
    if inner % block == 0:
        return block
    refined = gcd(block, inner, width)
    return refined if refined >= FINEST_SCALE_BLOCK else None

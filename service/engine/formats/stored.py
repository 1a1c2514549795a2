"""Bytes of one matrix under each way of storing weights."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, assert_never

from service.engine.arithmetic import ceil_div, round_up
from service.engine.formats.elements import HALF_BYTES, SINGLE_BYTES
from service.engine.formats.matrix import CACHE_SCALES, LATENT_CACHE_SCALES, Matrix
from service.engine.formats.quantization import Quantization
from service.engine.formats.scheme import Scheme
from service.engine.formats.storage import Storage, refined_block

PLAIN_STORAGE = Storage()
SCALE_BYTES = SINGLE_BYTES
NVFP4_GLOBAL_SCALES = 2  # one for weights, one for activations, per stored matrix
VALUE_BITS: Final[Mapping[Scheme, int]] = MappingProxyType({
    "none": 16, "fp8-tensor": 8, "fp8-channel": 8, "fp8-block": 8, "mxfp8": 8, "int8-both": 8, "int8-group": 8,
    "int4-group": 4, "mxfp4": 4, "nvfp4": 4, "bitsandbytes-4bit": 4,
})  # fmt: skip


def matrix_bytes(
    matrix: Matrix, quantization: Quantization, element_bytes: int, storage: Storage = PLAIN_STORAGE
) -> int:
    """Return the bytes of a matrix on one rank, scales and biases included. [bytes].

    none      rows x columns x b
    fp8       rows x columns       + 4 per tensor, per row, or per 128 x 128 block
    mxfp8     rows x columns       + 1 per 32 elements
    int8      rows x columns       + 4 per row; of weights alone 2 per row or group (+ 1 for a zero point)
    int4      rows x columns / 2   + 2 per group (+ 1/2 per group for a zero point); 8 per group and 4 per row where
                                   activations are fp8; 4 per group of torchao, with its zero point
    mxfp4     rows x columns / 2   + 1 per 32 elements
    nvfp4     rows x columns / 2   + 1 per 16 elements + 4 per tensor

    Args:
        matrix: the weight.
        quantization: how the checkpoint stores weights.
        element_bytes: of the model's dtype.
        storage: how the GPU's kernels want it.
    """
    if matrix.module.endswith(CACHE_SCALES):
        return _cache_scale_bytes(matrix, quantization)
    matrix, own = _laid_out(matrix, quantization, storage)
    biases = matrix.biases * element_bytes
    if own is None:
        return matrix.count * (_plain(matrix, element_bytes, storage) + biases)
    return matrix.count * (_stored(matrix, own, matrix.rows * matrix.columns) + biases)


def values_and_biases(
    matrix: Matrix, quantization: Quantization, element_bytes: int, bias_bytes: int, storage: Storage = PLAIN_STORAGE
) -> tuple[int, int]:
    """Return the bytes of a matrix's values and of its biases, which are tensors of their own beside scales. [bytes].

    >>> from service.engine.formats.quantization import UNQUANTIZED
    >>> down = Matrix(module="mlp.down_proj", rows=3_584, columns=18_944, biases=3_584)
    >>> [size / 2**20 for size in values_and_biases(down, UNQUANTIZED, 2, 2)]
    [129.5, 0.0068359375]
    """
    if matrix.module.endswith(CACHE_SCALES):
        return 0, 0
    matrix, own = _laid_out(matrix, quantization, storage)
    biases = matrix.count * matrix.biases * bias_bytes
    if own is None:
        return matrix.count * _plain(matrix, element_bytes, storage), biases
    columns = round_up(matrix.columns, own.column_multiple)
    return matrix.count * matrix.rows * columns * VALUE_BITS[own.scheme] // 8, biases


def _laid_out(matrix: Matrix, quantization: Quantization, storage: Storage) -> tuple[Matrix, Quantization | None]:
    """Return a matrix as the kernels hold it, and how it is quantized; None where it is not."""
    own = own_scheme(matrix, quantization.of(matrix.module))
    is_kept = matrix.is_kept or not matrix.is_linear or own.keeps(matrix.module)
    if matrix.inner_side:
        matrix = storage.padded(matrix, "none" if is_kept else own.scheme)
    return matrix, None if is_kept else own


def _plain(matrix: Matrix, element_bytes: int, storage: Storage) -> int:
    """Return one matrix that is not quantized. [bytes]."""
    wide = SINGLE_BYTES if matrix.is_wide_router and storage.keeps_wide_routers else None
    return matrix.rows * matrix.columns * (wide or matrix.element_bytes or element_bytes)


def own_scheme(matrix: Matrix, quantization: Quantization) -> Quantization:
    """Return the matrix's own scheme, in checkpoints that are quantized at all, and not all of it alike."""
    if not matrix.scheme or not quantization.is_fp8_in_blocks or quantization.expert_scheme == "fp8-block":
        return quantization
    nvfp4 = quantization.expert_scheme == "nvfp4"
    return replace(quantization, scheme="nvfp4" if nvfp4 else "mxfp4", block=16 if nvfp4 else 32, ignored=())


def _cache_scale_bytes(matrix: Matrix, quantization: Quantization) -> int:
    """Return the scales of the cache that the scheme's loader makes room for. [bytes].

    Four in two bytes for queries, keys, values and probabilities: ModelOpt's loader for every attention, the other
    fp8 loaders for grouped attention only. That of compressed-tensors has three, and three in four bytes.

    Source:
        vLLM 0.33 `model_executor/layers/quantization/kv_cache.py` (`BaseKVCacheMethod.create_weights`),
        `compressed_tensors/compressed_tensors.py` (`CompressedTensorsKVCacheMethod`).
    """
    is_latent = matrix.module.endswith(LATENT_CACHE_SCALES)
    if quantization.is_compressed_tensors:
        return 0 if is_latent else 3 * HALF_BYTES + 3 * SINGLE_BYTES
    loads_fp8 = quantization.scheme.startswith("fp8") and not quantization.is_static and not is_latent
    return 4 * HALF_BYTES if quantization.is_modelopt or loads_fp8 else 0


def _scale_block(matrix: Matrix, block: int) -> int:
    """Return the block that one scale speaks for: finer than the checkpoint's where a rank's part does not fill it."""
    if not matrix.inner_side:
        return block
    inner, width = _sides(matrix)
    return refined_block(block, inner, width) or block


def spread_scale_bytes(matrix: Matrix, own: Quantization, element_bytes: int) -> int:
    """Return what scales of fp8 blocks take more, once each row of a block has its own. [bytes].

        rows x blocks a row x b - blocks x scale

    >>> up = Matrix(module="mlp.gate_up_proj", rows=34_816, columns=5_120, parts=2)
    >>> spread_scale_bytes(up, Quantization(scheme="fp8_block", block=128), 2), 34_816 * 40 * 2 - 272 * 40 * 4
    (2741760, 2741760)
    """
    block = _scale_block(matrix, own.block)
    across = ceil_div(matrix.columns, block)
    return matrix.count * across * (matrix.rows * element_bytes - ceil_div(matrix.rows, block) * matrix.scale_bytes)


def _nvfp4_groups(matrix: Matrix, group: int) -> int:
    """Return the groups of one row; of a rank's part of an expert only whole ones have a scale.

    Source: vLLM 0.33 `model_executor/layers/quantization/modelopt.py` (`ModelOptNvFp4FusedMoE.create_weights`).
    """
    return matrix.columns // group if matrix.inner_side else ceil_div(matrix.columns, group)


def _groups(matrix: Matrix, group: int) -> int:
    """Return the groups of a matrix that have a scale each; without a group, its rows."""
    return matrix.rows * ceil_div(matrix.columns, group or matrix.columns)


def _sides(matrix: Matrix) -> tuple[int, int]:
    """Return an expert's inner size and width. [elements]."""
    if matrix.inner_side == "rows":
        return matrix.rows // matrix.parts, matrix.columns
    return matrix.columns, matrix.rows


def _int4(matrix: Matrix, quantization: Quantization) -> int:
    """Return integers of four bits in groups, whose rows may be filled up. [bytes]."""
    columns = round_up(matrix.columns, quantization.column_multiple)
    groups = matrix.rows * ceil_div(columns, quantization.block or columns)
    scales = groups * (quantization.scale_bytes or HALF_BYTES)
    rows = matrix.rows * SCALE_BYTES if quantization.has_row_scales else 0
    return matrix.rows * columns // 2 + scales + rows + (groups // 2 if quantization.has_zero_points else 0)


def _stored(matrix: Matrix, quantization: Quantization, elements: int) -> int:
    block = quantization.block
    match quantization.scheme:
        case "none":
            return elements * HALF_BYTES
        case "fp8-tensor":
            scales = 2 if quantization.is_static else 1
            return elements + scales * SCALE_BYTES * matrix.parts
        case "fp8-channel":
            return elements + matrix.rows * SCALE_BYTES
        case "fp8-block":
            block = _scale_block(matrix, block)
            return elements + ceil_div(matrix.rows, block) * ceil_div(matrix.columns, block) * matrix.scale_bytes
        case "int8-both" | "int8-group":
            usual = SCALE_BYTES if quantization.scheme == "int8-both" else HALF_BYTES
            scale = quantization.scale_bytes or usual
            zero_points = 1 if quantization.has_zero_points else 0
            return elements + _groups(matrix, block) * (scale + zero_points)
        case "int4-group":
            return _int4(matrix, quantization)
        case "mxfp4" | "mxfp8":
            stored = elements // 2 if quantization.scheme == "mxfp4" else elements
            return stored + matrix.rows * ceil_div(matrix.columns, block)
        case "nvfp4":
            return (
                elements // 2
                + matrix.rows * _nvfp4_groups(matrix, block)
                + NVFP4_GLOBAL_SCALES * SCALE_BYTES * matrix.parts
            )
        case "bitsandbytes-4bit":
            return elements // 2 + ceil_div(elements, block) * SCALE_BYTES
        case _ as never:
            assert_never(never)

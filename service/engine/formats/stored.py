"""Bytes of one matrix under each way of storing weights."""

from dataclasses import replace
from typing import assert_never

from service.engine.arithmetic import ceil_div
from service.engine.formats.elements import HALF_BYTES, SINGLE_BYTES
from service.engine.formats.matrix import CACHE_SCALES, LATENT_CACHE_SCALES, Matrix
from service.engine.formats.quantization import Quantization

SCALE_BYTES = SINGLE_BYTES
NVFP4_GLOBAL_SCALES = 2  # one for weights, one for activations, per stored matrix


def matrix_bytes(matrix: Matrix, quantization: Quantization, element_bytes: int) -> int:
    """Return the bytes of a matrix on one rank, scales and biases included. [bytes].

    none      rows x columns x b
    fp8       rows x columns       + 4 per tensor, per row, or per 128 x 128 block
    mxfp8     rows x columns       + 1 per 32 elements
    int8      rows x columns       + 4 per row
    int4      rows x columns / 2   + 2 per group (+ 1/2 per group for a zero point)
    mxfp4     rows x columns / 2   + 1 per 32 elements
    nvfp4     rows x columns / 2   + 1 per 16 elements + 4 per tensor
    """
    if matrix.module.endswith(CACHE_SCALES) and not _brings_cache_scales(matrix, quantization):
        return 0
    quantization = _as_stored(matrix, quantization.of(matrix.module))
    if quantization.scheme == "mxfp4" and matrix.in_mxfp4 is not None:
        matrix = matrix.in_mxfp4
    elements = matrix.rows * matrix.columns
    biases = matrix.biases * element_bytes
    if not matrix.is_linear or quantization.keeps(matrix.module):
        return matrix.count * (elements * (matrix.element_bytes or element_bytes) + biases)
    return matrix.count * (_stored(matrix, quantization, elements) + biases)


def _as_stored(matrix: Matrix, quantization: Quantization) -> Quantization:
    """Return the matrix's own scheme, in checkpoints that are quantized at all."""
    if not matrix.scheme or quantization.scheme != "fp8-block":
        return quantization
    nvfp4 = matrix.scheme == "nvfp4"
    return replace(quantization, scheme="nvfp4" if nvfp4 else "mxfp4", block=16 if nvfp4 else 32, ignored=())


def _brings_cache_scales(matrix: Matrix, quantization: Quantization) -> bool:
    """Return whether the scheme's loader makes room for scales of the cache.

    ModelOpt does for every attention; the other fp8 loaders for grouped attention only.
    """
    if quantization.is_modelopt:
        return True
    loads_fp8 = quantization.scheme.startswith("fp8") and not quantization.is_static
    has_scales = loads_fp8 or quantization.is_compressed_tensors
    return has_scales and not matrix.module.endswith(LATENT_CACHE_SCALES)


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
            return elements + ceil_div(matrix.rows, block) * ceil_div(matrix.columns, block) * matrix.scale_bytes
        case "int8-channel":
            return elements + matrix.rows * SCALE_BYTES
        case "int4-group":
            groups = matrix.rows * ceil_div(matrix.columns, block or matrix.columns)
            return elements // 2 + groups * HALF_BYTES + (groups // 2 if quantization.has_zero_points else 0)
        case "mxfp4" | "mxfp8":
            stored = elements // 2 if quantization.scheme == "mxfp4" else elements
            return stored + matrix.rows * ceil_div(matrix.columns, block)
        case "nvfp4":
            return (
                elements // 2
                + matrix.rows * ceil_div(matrix.columns, block)
                + NVFP4_GLOBAL_SCALES * SCALE_BYTES * matrix.parts
            )
        case "bitsandbytes-4bit":
            return elements // 2 + ceil_div(elements, block) * SCALE_BYTES
        case _ as never:
            assert_never(never)

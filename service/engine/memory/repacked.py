"""What loading adds to weights, beside what a checkpoint stores: copies in more bytes, wider scales, padded tiles."""

from typing import Final

from service.engine.arithmetic import ceil_div, round_up
from service.engine.engines.expert_kernels import ExpertKernels
from service.engine.formats.elements import BYTE, HALF_BYTES, SINGLE_BYTES
from service.engine.formats.matrix import Matrix
from service.engine.formats.quantization import Quantization
from service.engine.formats.stored import own_scheme, spread_scale_bytes

SCALES_ROWS: Final = 128  # that swizzled scales are padded to, and to groups of four


def repacked_bytes(matrix: Matrix, quantization: Quantization, element_bytes: int, kernels: ExpertKernels) -> int:
    """Return what loading adds to one matrix. [bytes].

    Latent attention keeps its up-projection in two bytes beside a quantized one, to absorb it into queries and
    outputs. MXFP4 kernels want biases in four bytes, and shuffled scales: gpt-oss-120b on Hopper. SGLang multiplies
    groups of heads in two bytes where no kernel does in fp8, and kept scales in four bytes beside Marlin's, whose fp8
    has a scale for each row of a block.

    Sources:
        vLLM 0.33 `layers/fused_moe/oracle/mxfp4.py` (`convert_weight_to_mxfp4_moe_kernel_format`),
        `layers/quantization/utils/mxfp4_utils.py` (`_swizzle_mxfp4`), `utils/marlin_utils_fp8.py`
        (`prepare_fp8_layer_for_marlin`: "repeat_interleave"), `layers/attention/mla_attention.py`
        (`process_weights_after_loading`).
    """
    scheme = quantization.of(matrix.module)
    is_kept = matrix.is_kept or not matrix.is_linear or scheme.keeps(matrix.module)
    if matrix.is_absorbed and (not is_kept or kernels.storage.copies_absorbed):
        return matrix.rows * matrix.columns * element_bytes
    if is_kept:
        return 0
    own = own_scheme(matrix, scheme)
    if kernels.spreads_scales and own.scheme == "fp8-block":
        return spread_scale_bytes(matrix, own, element_bytes)
    if matrix.is_grouped and own.scheme in kernels.unpacks_grouped:
        return matrix.rows * matrix.columns * (element_bytes - BYTE)
    tile = kernels.wide_scales_tile if own is not scheme and own.scheme == "mxfp4" else 0
    if tile and matrix.inner_columns % tile:
        return matrix.count * matrix.rows * ceil_div(matrix.columns, own.block) * SINGLE_BYTES
    if matrix.is_routed and kernels.copies_fp4_scales and own.scheme == "nvfp4" and own.is_modelopt:
        return matrix.count * round_up(matrix.rows, SCALES_ROWS) * round_up(ceil_div(matrix.columns, own.block), 4)
    if matrix.inner_side and scheme.scheme == "mxfp4" and matrix.own_multiple > 1:
        return _shuffled_bytes(kernels.storage.padded(matrix, "mxfp4"), scheme.block, kernels)
    return 0


def _shuffled_bytes(matrix: Matrix, group: int, kernels: ExpertKernels) -> int:
    """Return what wider biases and shuffled scales add to padded MXFP4 experts. [bytes]."""
    added = matrix.biases * HALF_BYTES if kernels.widens_biases else 0
    row_bytes = matrix.columns // 2
    added += round_up(matrix.rows, kernels.value_rows) * round_up(row_bytes, kernels.value_line_bytes)
    added -= matrix.rows * row_bytes
    if kernels.scale_rows:
        groups = ceil_div(matrix.columns, group)
        added += round_up(matrix.rows, kernels.scale_rows) * round_up(groups, kernels.scale_groups)
        added -= 0 if kernels.keeps_loaded_scales else matrix.rows * groups
    return matrix.count * added

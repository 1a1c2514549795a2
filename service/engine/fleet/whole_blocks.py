"""Which layouts leave a rank whole quantization blocks, as the engine's kernels want them."""

from collections.abc import Collection, Iterable
from typing import Final

from service.engine.engines.device import Device
from service.engine.errors import UnsupportedLayoutError
from service.engine.formats.quantization import Quantization
from service.engine.formats.scheme import Scheme
from service.engine.formats.storage import FINEST_SCALE_BLOCK, refined_block
from service.engine.inputs import Layout
from service.engine.layers import Architecture, Divisor

# Quantization schemes whose kernels work on whole blocks of columns.
BLOCKED_SCHEMES: Final = frozenset({"fp8-block", "int4-group", "nvfp4"})
REFUSED: Final = "a smaller tensor_parallel_size"


def check_blocks(
    divisor: Divisor,
    hidden_size: int,
    quantization: Quantization,
    layout: Layout,
    ranks: int,
    device: Device,
    padded: Collection[Scheme] = (),
) -> None:
    """Raise UnsupportedLayoutError if a rank's part does not fill its quantization blocks, and no kernel minds less.

    Experts in NVFP4 may end within a group, those in fp8 blocks get finer scales since 0.29, and those in `padded`
    schemes more columns. They are cut over all ranks, those of other copies of the attention included.
    """
    copies, block = ranks // layout.tensor_parallel_size, quantization.block
    columns = divisor.size // ranks
    if ranks == 1 or columns % block == 0 or (divisor.is_dealt_out and layout.expert_parallel):
        return
    if divisor.is_dealt_out and quantization.scheme in {"nvfp4", *padded}:
        return
    is_refined = quantization.scheme == "fp8-block" and not quantization.is_compressed_tensors
    is_refined = is_refined and divisor.is_dealt_out and device.plan.refines_expert_scales
    if is_refined and refined_block(block, columns, divisor.width or hidden_size) is not None:
        return
    rule = f"multiples of {FINEST_SCALE_BLOCK}" if is_refined else f"whole quantization blocks of {block}"
    field, size = ("data_parallel_size", copies) if copies > 1 else ("tensor_parallel_size", ranks)
    raise UnsupportedLayoutError(
        f"{field} {size} leaves {columns} of the {divisor.size} {divisor.name} on a rank, and "
        f"{device.engine} wants {rule}",
        field=field,
        accepted=REFUSED + (", or expert_parallel=true" if divisor.is_dealt_out else ""),
    )


def blocked_columns(architecture: Architecture, quantization: Quantization) -> tuple[Divisor, ...]:
    """Return the sizes beside the attention of which a rank holds whole blocks, or groups."""
    parts = ((layer.index, layer.mlp) for layer in architecture.layers)
    return _blocked(((index, divisor) for index, part in parts for divisor in part.divisors), quantization)


def blocked_outputs(architecture: Architecture, quantization: Quantization) -> tuple[Divisor, ...]:
    """Return the same of the attention: the columns of each kind of output projection.

    Source: vLLM 0.33 `layers/quantization/auto_awq.py` (`create_weights`: "The input size is not aligned with the
    quantized weight shape. This can be caused by too large tensor parallel size.").
    """
    parts = ((layer.index, mixer) for layer in architecture.layers for mixer in layer.mixers)
    return _blocked(((index, divisor) for index, part in parts for divisor in part.divisors), quantization)


def _blocked(divisors: Iterable[tuple[int, Divisor]], quantization: Quantization) -> tuple[Divisor, ...]:
    """Return those that a checkpoint stores in blocks, of schemes with two-dimensional blocks or groups."""
    if quantization.scheme not in BLOCKED_SCHEMES or not quantization.block:
        return ()
    filled = {
        divisor
        for layer, divisor in divisors
        if divisor.fills_blocks and not (divisor.module and _keeps(quantization, layer, divisor.module))
    }
    return tuple(sorted(filled, key=lambda each: (each.name, each.size)))


def _keeps(quantization: Quantization, layer: int, module: str) -> bool:
    """Return whether one layer's matrix is not quantized."""
    name = f"model.layers.{layer}.{module}"
    return quantization.of(name).keeps(name)

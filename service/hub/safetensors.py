"""Counts parameters and bytes in the headers of safetensors files, as published; tensors are never read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

# Widths by the format's own names (huggingface/safetensors, `safetensors/src/tensor.rs`). [bits]
DTYPE_BITS: Final = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64,
    "F32": 32, "I32": 32, "U32": 32,
    "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I8": 8, "U8": 8, "BOOL": 8,
    "F6_E2M3": 6, "F6_E3M2": 6,
    "F4": 4,
}  # fmt: skip
MAX_ELEMENTS: Final = 1 << 50  # a thousand times the largest published model
FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


class UnreadableWeightsError(ValueError):
    """A weight file's header, or a list of weight files, is not what the format says."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a model's weight files hold."""

    elements: int
    weight_bytes: int | None  # None where a width is unknown

    def __add__(self, other: "Counts") -> "Counts":
        """Return both together."""
        known = self.weight_bytes is not None and other.weight_bytes is not None
        total = (self.weight_bytes or 0) + (other.weight_bytes or 0)
        return Counts(self.elements + other.elements, total if known else None)


def header_counts(header: Mapping[str, Any]) -> Counts:
    """Return the counts of one file's header.

    Raises:
        UnreadableWeightsError: a tensor without a shape of whole numbers.
    """
    counts = Counts(0, 0)
    for name, tensor in header.items():
        if name != "__metadata__":
            counts += _tensor_counts(tensor)
    return counts


def stated_counts(document: Mapping[str, Any]) -> Counts | None:
    """Return the counts that a hub states about a model, from the headers it has read; None where it states none."""
    stated = document.get("safetensors")
    by_dtype = stated.get("parameters") if isinstance(stated, dict) else None
    if not isinstance(by_dtype, dict) or not by_dtype:
        return None
    counts = Counts(0, 0)
    for dtype, elements in by_dtype.items():
        counts += _counts(dtype, elements)
    return counts


def weight_files(index: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that an index names, in order.

    Raises:
        UnreadableWeightsError: no map of weights, or a name that leads out of the model's folder.
    """
    mapping = index.get("weight_map")
    if not isinstance(mapping, dict) or not mapping:
        raise UnreadableWeightsError("the index of weight files has no weight_map")
    files = {str(file) for file in mapping.values()}
    if not all(FILE_NAME.fullmatch(file) for file in files):
        raise UnreadableWeightsError("the index of weight files names something that is no file of the model")
    return tuple(sorted(files))


def _tensor_counts(tensor: Any) -> Counts:
    shape = tensor.get("shape") if isinstance(tensor, dict) else None
    if not isinstance(shape, list):
        raise _unreadable()
    elements = 1
    for side in shape:
        if not isinstance(side, int) or side < 0 or elements > MAX_ELEMENTS:
            raise _unreadable()
        elements *= side
    return _counts(tensor.get("dtype"), elements)


def _counts(dtype: Any, elements: Any) -> Counts:
    if isinstance(elements, bool) or not isinstance(elements, int) or not 0 <= elements <= MAX_ELEMENTS:
        raise _unreadable()
    bits = DTYPE_BITS.get(dtype) if isinstance(dtype, str) else None
    return Counts(elements, None if bits is None else elements * bits // 8)


def _unreadable() -> UnreadableWeightsError:
    return UnreadableWeightsError("a weight file has an unreadable safetensors header")

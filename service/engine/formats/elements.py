"""Bytes of one element of weights, activations and caches."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.inputs import HALF_FORMATS, KvCacheDtype

BYTE: Final = 1  # fp8, int8
HALF_BYTES: Final = 2  # bf16, fp16
SINGLE_BYTES: Final = 4  # fp32
DTYPE_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {"bfloat16": HALF_BYTES, "float16": HALF_BYTES, "float32": SINGLE_BYTES}
)


def dtype_bytes(dtype: str, otherwise: int = HALF_BYTES) -> int:
    """Return the bytes of one element of a dtype as configs name it; `otherwise` of any that is not a float's name.

    >>> dtype_bytes("float32"), dtype_bytes("auto", otherwise=2)
    (4, 2)
    """
    return DTYPE_BYTES.get(dtype, otherwise)


def cache_bytes(dtype: KvCacheDtype, model_element_bytes: int) -> int:
    """Return the bytes of one element of the cache as kernels read it: the model's own where nothing else is asked for.

    Of four bits it is a byte as well: their kernels read half as much and unpack it, and were not measured.

    >>> cache_bytes("auto", 2), cache_bytes("fp8", 2), cache_bytes("int8_per_token_head", 2)
    (2, 1, 1)
    """
    if dtype == "auto":
        return model_element_bytes
    return HALF_BYTES if dtype in HALF_FORMATS else BYTE

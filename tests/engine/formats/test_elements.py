"""Bytes of an element by the name a config gives its dtype."""

import pytest

from service.engine.formats.elements import cache_bytes, dtype_bytes
from service.engine.inputs import KvCacheDtype


@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 2), ("float16", 2), ("float32", 4)])
def test_a_dtype_has_the_bytes_of_its_ieee_width(dtype: str, size: int) -> None:
    assert dtype_bytes(dtype) == size


@pytest.mark.parametrize(("dtype", "size"), [("auto", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1), ("nvfp4", 1)])
def test_a_cache_of_a_stated_dtype_does_not_ask_the_model(dtype: KvCacheDtype, size: int) -> None:
    assert cache_bytes(dtype, 4) == size

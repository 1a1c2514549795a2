"""What a kernel is asked to read."""

import pytest

from service.engine.engines.kernel import AskedCache, CacheKind


@pytest.mark.parametrize(("kind", "is_fp8"), [("model", False), ("fp8", True), ("checkpoint_fp8", True)])
def test_a_cache_is_fp8_whoever_asked_for_it(kind: CacheKind, *, is_fp8: bool) -> None:
    assert AskedCache(kind=kind).is_fp8 is is_fp8

"""One rank's view of a cache, for tests of single layers."""

from typing import Any

from service.engine.layers import Sharding


def rank(tensor_parallel_size: int = 1, **changes: Any) -> Sharding:
    given: dict[str, Any] = {"cache_element_bytes": 2, "model_element_bytes": 2, **changes}
    return Sharding(tensor_parallel_size=tensor_parallel_size, **given)


FP8: dict[str, Any] = {"cache_element_bytes": 1}

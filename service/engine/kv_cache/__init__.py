"""The key-value cache of one GPU, by the serving engine's own planning."""

from service.engine.kv_cache.plan import (
    CacheShape,
    Growing,
    cache_shape,
    pipeline_stages,
    plan_kv_cache,
    requests_held,
    shape_of,
    steady_bytes,
)
from service.engine.kv_cache.pools import bytes_to_hold_one, has_separate_pools, plan_separate_pools, separate_pools

__all__ = [
    "CacheShape",
    "Growing",
    "bytes_to_hold_one",
    "cache_shape",
    "has_separate_pools",
    "pipeline_stages",
    "plan_kv_cache",
    "plan_separate_pools",
    "requests_held",
    "separate_pools",
    "shape_of",
    "steady_bytes",
]

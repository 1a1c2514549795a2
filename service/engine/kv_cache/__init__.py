"""The key-value cache of one GPU, by the serving engine's own planning."""

from service.engine.kv_cache.plan import (
    CacheShape,
    cache_shape,
    pipeline_stages,
    plan_kv_cache,
    requests_fitting,
    steady_bytes,
)

__all__ = ["CacheShape", "cache_shape", "pipeline_stages", "plan_kv_cache", "requests_fitting", "steady_bytes"]

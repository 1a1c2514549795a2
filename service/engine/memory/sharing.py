"""How many queries share a cached key and value, and what that saves."""

from service.engine.layers.architecture import Architecture
from service.engine.layers.cache import CacheSharing


def cache_sharing(architecture: Architecture) -> CacheSharing | None:
    """Return what sharing saves in the first layer that has a rule, against a key and a value for every query head."""
    return next((mixer.sharing for mixer in architecture.mixers if mixer.sharing is not None), None)

"""How many queries share a cached key and value, and what that saves."""

from service.engine.layers import Architecture
from service.engine.layers.base import CacheSharing


def cache_sharing(architecture: Architecture) -> CacheSharing | None:
    """Return what sharing saves, against a key and a value for every query head; None where no layer counts heads.

    grouped:  saved = 1 - key and value heads / query heads
    latent:   saved = 1 - (latent + rotary) / (query heads x (key + value elements of one head))

    Each layer says it of itself; the first that attends speaks for the model.
    """
    shared = (mixer.cache_sharing for mixer in architecture.mixers)
    return next((each for each in shared if each is not None), None)

"""How many queries share a cached key and value, and what that saves."""

from dataclasses import dataclass

from service.engine.layers.architecture import Architecture
from service.engine.layers.grouped import GroupedQueryAttention
from service.engine.layers.latent import LatentAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSharing:
    """Heads of the model's first attending layer, and the share of a cache of every head that is not kept."""

    query_heads: int
    key_value_heads: int  # 1 where all heads share one latent
    saved_fraction: float


def cache_sharing(architecture: Architecture) -> CacheSharing | None:
    """Return what sharing saves, against a key and a value for every query head; None where no rule counts heads.

    grouped:  saved = 1 - key and value heads / query heads
    latent:   saved = 1 - (latent + rotary) / (query heads x (key + value elements of one head))
    """
    for mixer in architecture.mixers:
        if isinstance(mixer, GroupedQueryAttention):
            heads, kept = mixer.num_attention_heads, mixer.num_key_value_heads
            return CacheSharing(query_heads=heads, key_value_heads=kept, saved_fraction=1 - kept / heads)
        if isinstance(mixer, LatentAttention):
            heads = mixer.num_attention_heads
            if mixer.keeps_heads:
                return CacheSharing(query_heads=heads, key_value_heads=heads, saved_fraction=0.0)
            whole = heads * (mixer.key_width + mixer.v_head_dim)
            return CacheSharing(query_heads=heads, key_value_heads=1, saved_fraction=1 - mixer.latent_width / whole)
    return None

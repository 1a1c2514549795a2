"""What SGLang keeps for images and sound out of the pool that its share leaves, since 0.5.18.

    kept = 100 MiB                        embeddings of images
           1 GiB, from 400 requests 3     Qwen3-VL on one server of Hopper with 60 GiB and more, since 0.5.20: features
                                          that stay on the GPU, and no embeddings

Sources:
    SGLang 0.5.18 to 0.5.23 `mem_cache/kv_cache_configurator.py` (`mm_runtime_reservation_gb`), `environ.py`
    (`SGLANG_VLM_CACHE_SIZE_MB`, `SGLANG_MM_FEATURE_CACHE_MB`); 0.5.20 to 0.5.23
    `arg_groups/model_overrides/qwen3_vl.py`.
"""

from typing import Final

from service.engine.arithmetic import GIB, MIB
from service.engine.engines.rules import EngineRules
from service.engine.inputs import Gpu, Layout
from service.engine.layers import Architecture

EMBEDDINGS_BYTES: Final = 100 * MIB
LARGE_BYTES: Final = 60 * GIB
MANY_REQUESTS: Final = 400
FEATURES_BYTES: Final = GIB
FEATURES_OF_MANY_BYTES: Final = 3 * GIB


def sees_in_sglang(architecture: Architecture) -> bool:
    """Return whether SGLang serves more than text of a model, unless told otherwise."""
    return architecture.encoder is not None and not architecture.reads_text_in_sglang


def kept_for_images(architecture: Architecture, gpu: Gpu, layout: Layout, rules: EngineRules, requests: int) -> int:
    """Return what is left free beside the pool for images that come later. [bytes].

    Args:
        architecture: the model.
        gpu: whose memory is shared out.
        layout: how one replica is spread.
        rules: the version's.
        requests: that may run at once, on all copies of the attention. [count]
    """
    if not rules.plan.keeps_for_images or not sees_in_sglang(architecture):
        return 0
    is_large_hopper = gpu.compute_capability == "9.0" and (gpu.driver_memory_bytes or gpu.memory_bytes) >= LARGE_BYTES
    on_one = layout.gpus_per_replica <= gpu.gpus_per_node
    if not (
        rules.plan.keeps_features_on_hopper and architecture.keeps_features_on_hopper and is_large_hopper and on_one
    ):
        return EMBEDDINGS_BYTES
    return FEATURES_OF_MANY_BYTES if requests >= MANY_REQUESTS else FEATURES_BYTES

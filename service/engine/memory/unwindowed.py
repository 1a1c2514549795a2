"""Which windows of attention an engine does not make use of: it caches those layers whole, as if they had none."""

from typing import Final

from service.engine.derived import derived
from service.engine.engines.plans import PlanRules
from service.engine.layers import Architecture, Sharding

CHUNKED: Final = frozenset({"chunked_local_attention"})
WINDOWED: Final = CHUNKED | {"sliding_window"}
# Of a whole model on one GPU; kinds of layers do not hang on sizes.
ANY: Final = Sharding(tensor_parallel_size=1, cache_element_bytes=2, model_element_bytes=2)


def kept_whole(architecture: Architecture, plan: PlanRules, *, drafts: bool) -> frozenset[str]:
    """Return the kinds of windowed layers whose tokens all stay cached.

        all      TensorRT-LLM before 1.3
        all      vLLM before 0.9.1, beside a layer of full attention: one kind of cache is all it manages
        chunks   vLLM before 0.14, and beside drafts

    vLLM 0.8.3 needed 24.00 GiB for 1,048,576 tokens of Llama 4 Scout on each of 8 GPUs, 48 layers of one head
    (vllm-project/vllm issue 16118).

    Sources:
        vLLM 0.8 to 0.9.0 `v1/core/kv_cache_utils.py` (`unify_hybrid_kv_cache_specs`); 0.13 `config/vllm.py` and
        `envs.py` (`VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE`); 0.33 `config/vllm.py` ("... not yet
        supported with chunked local attention + eagle.").
    """
    if plan.keeps_windows or (plan.keeps_mixed_windows and "full_attention" in _kinds(architecture)):
        return WINDOWED
    return CHUNKED if drafts or plan.keeps_chunks else frozenset()


@derived(2)
def _kinds(architecture: Architecture) -> frozenset[str]:
    return frozenset(spec.kind for mixer in architecture.mixers for spec in mixer.caches(ANY))

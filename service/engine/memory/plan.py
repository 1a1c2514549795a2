"""The memory plan of one GPU: weights, the rest of the ledger, and the cache that remains."""

from dataclasses import dataclass, replace
from functools import lru_cache

from service.engine.arithmetic import ceil_div
from service.engine.engines.rules import EngineRules
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.inputs import EngineSettings, Gpu, Layout
from service.engine.layers import Architecture, DraftHead
from service.engine.memory.adapters import adapter_bytes
from service.engine.memory.drafts import draft_of
from service.engine.memory.ledger import memory_per_gpu
from service.engine.memory.results import KvCache, MemoryPerGpu, ModelWeights
from service.engine.memory.separate_pools import (
    bytes_to_hold_one,
    has_separate_pools,
    plan_separate_pools,
    separate_pools,
)
from service.engine.memory.shared_pool import Growing, plan_kv_cache, requests_held, shape_of
from service.engine.memory.weights import num_active_parameters, num_parameters, rank_weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemoryPlan:
    """What one GPU of one replica holds; `settings.max_model_len` is the length actually served."""

    model: ModelFacts
    checkpoint: Checkpoint
    gpu: Gpu
    layout: Layout
    settings: EngineSettings
    rules: EngineRules
    memory: MemoryPerGpu
    kv_cache: KvCache
    context_tokens: int  # of one request of the asked load [tokens]
    requests_in_cache: int  # requests of that context that fit one attention replica at once

    @property
    def weights_fit(self) -> bool:
        """Return whether weights and working memory leave room for any cache."""
        return self.memory.shortfall_bytes == 0

    @property
    def holds_one_request(self) -> bool:
        """Return whether the engine would start and serve one request of the asked length."""
        return self.weights_fit and self.requests_in_cache >= 1

    @property
    def shortfall_bytes(self) -> int:
        """Return the bytes missing per GPU before one request of the asked length fits."""
        if self.holds_one_request:
            return self.memory.shortfall_bytes
        needed = self.kv_cache.bytes_per_request
        if keeps_separate_pools(self.model.architecture, self.rules):
            needed = bytes_to_hold_one(self.model.architecture, self.layout, self.settings, max(self.context_tokens, 1))
        return self.memory.shortfall_bytes + max(needed - self.memory.kv_cache_bytes, 0)


@lru_cache(maxsize=2048)
def memory_plan(  # noqa: PLR0913 - every argument is one independent part of a deployment
    model: ModelFacts,
    checkpoint: Checkpoint,
    gpu: Gpu,
    layout: Layout,
    settings: EngineSettings,
    rules: EngineRules,
    *,
    input_tokens: int,
    output_tokens: int,
    shorten_to_fit: bool,
) -> MemoryPlan:
    """Return the plan of one GPU; the longest context is shortened to what fits when asked.

        kv_cache = utilization x total - weights - activation - CUDA graphs - non-torch

    Args:
        model: the model's architecture and checkpoints.
        checkpoint: the weight format that is loaded.
        gpu: the GPU type.
        layout: how one replica is spread.
        settings: the engine's settings, resolved.
        rules: the engine's measured terms and defaults, by version.
        input_tokens: mean prompt of the asked load. [tokens]
        output_tokens: mean completion of the asked load. [tokens]
        shorten_to_fit: lower `max_model_len` to the longest request the pool holds, as the
            engine's `--max-model-len auto` does, but never below the asked request. [yes or no]
    """
    weight_bytes = _rank_weight_bytes(model, checkpoint, layout, draft_of(model.architecture, settings))
    if settings.max_loras:
        weight_bytes += adapter_bytes(model.architecture, layout, settings.max_loras, settings.max_lora_rank)
    memory = memory_per_gpu(
        architecture=model.architecture,
        rank_weight_bytes=weight_bytes,
        gpu=gpu,
        layout=layout,
        settings=settings,
        rules=rules,
    )

    pooled = keeps_separate_pools(model.architecture, rules)

    def cache(max_model_len: int) -> KvCache:
        return (plan_separate_pools if pooled else plan_kv_cache)(
            model.architecture,
            layout=layout,
            settings=replace(settings, max_model_len=max_model_len),
            available_bytes=memory.kv_cache_bytes,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
        )

    context = input_tokens + output_tokens
    served_len = settings.max_model_len
    kv_cache = cache(served_len)
    if shorten_to_fit and kv_cache.estimated_max_model_len < served_len:
        served_len = max(kv_cache.estimated_max_model_len, context)
        kv_cache = cache(served_len)
    settings = replace(settings, max_model_len=served_len)
    return MemoryPlan(
        model=model,
        checkpoint=checkpoint,
        gpu=gpu,
        layout=layout,
        settings=settings,
        rules=rules,
        memory=memory,
        kv_cache=kv_cache,
        context_tokens=context,
        requests_in_cache=requests_held(
            _growth(model.architecture, layout, settings, rules, memory.kv_cache_bytes),
            settings=settings,
            num_gpu_blocks=kv_cache.num_gpu_blocks,
            context_tokens=max(context, 1),
        ),
    )


def keeps_separate_pools(architecture: Architecture, rules: EngineRules) -> bool:
    """Return whether the engine keeps a pool for each kind of layer, as SGLang does."""
    return rules.engine == "sglang" and has_separate_pools(architecture)


def cache_growth(plan: MemoryPlan) -> Growing:
    """Return how the plan's blocks fill as a request grows."""
    return _growth(plan.model.architecture, plan.layout, plan.settings, plan.rules, plan.memory.kv_cache_bytes)


def _growth(
    architecture: Architecture, layout: Layout, settings: EngineSettings, rules: EngineRules, kv_cache_bytes: int
) -> Growing:
    if keeps_separate_pools(architecture, rules):
        return separate_pools(architecture, layout, settings, kv_cache_bytes)
    return shape_of(architecture, layout, settings)


def model_weights(plan: MemoryPlan) -> ModelWeights:
    """Return the model's weights before sharding, in the loaded format."""
    architecture = plan.model.architecture
    return ModelWeights(
        weight_bytes=_rank_weight_bytes(plan.model, plan.checkpoint, Layout()),
        num_parameters=num_parameters(architecture),
        num_active_parameters=num_active_parameters(architecture),
    )


def _rank_weight_bytes(
    model: ModelFacts, checkpoint: Checkpoint, layout: Layout, draft: DraftHead | None = None
) -> int:
    """Return the loaded bytes of the fullest rank, by the caller's figure (of all weights) where one is stated."""
    if model.weight_bytes is not None:
        return ceil_div(model.weight_bytes, layout.tensor_parallel_size * layout.pipeline_parallel_size)
    quantization = checkpoint.quantization
    return rank_weights(model.architecture, layout=layout, quantization=quantization, draft=draft).loaded_bytes

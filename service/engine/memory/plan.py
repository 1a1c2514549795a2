"""The memory plan of one GPU: weights, the rest of the ledger, and the cache that remains."""

from dataclasses import dataclass, replace
from math import ceil
from typing import Final, cast

from service.engine.arithmetic import GIB, ceil_div
from service.engine.derived import derived
from service.engine.engines.device import Device, device_of
from service.engine.engines.measured_here import memory_of
from service.engine.engines.rules import EngineRules
from service.engine.facts import Checkpoint, ModelFacts, stated_weight_bytes
from service.engine.inputs import EngineSettings, Gpu, Layout
from service.engine.layers import Architecture, DraftHead
from service.engine.memory.activation import length_in_memory
from service.engine.memory.adapters import adapter_bytes
from service.engine.memory.draft_weights import as_loaded
from service.engine.memory.drafts import draft_of
from service.engine.memory.latents import as_cached
from service.engine.memory.ledger import Ledger, ledger_for
from service.engine.memory.parameters import num_active_parameters, num_parameters
from service.engine.memory.results import KvCache, MemoryPerGpu, ModelWeights
from service.engine.memory.separate_pools import (
    bytes_to_hold_one,
    has_separate_pools,
    plan_separate_pools,
    separate_pools,
)
from service.engine.memory.share import part_of_share, with_own_share
from service.engine.memory.shared_pool import Growing, SharedPool, in_flight_tokens, requests_held, shared_pool
from service.engine.memory.weights import rank_weights
from service.engine.patience import go_on

# The README's accuracy table, "logged start-ups": nine predicted pools in ten are within this share of the engine's.
POOL_ERROR_FRACTION: Final = 0.076
# Small pools on large GPUs err by the ledger's other terms: non-torch memory 0.17 and graphs 0.2 GiB, which are the
# errors that `catalog/data/engine_rules.yaml` states, together the root of the sum of their squares.
LEAST_POOL_ERROR_BYTES: Final = round(0.26 * GIB)
MOST_LEDGERS: Final = 1_024  # of one model


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
    def device(self) -> Device:
        """Return what the GPU is to the engine."""
        return device_of(self.gpu, self.rules)

    @property
    def in_flight_tokens(self) -> int:
        """Return the tokens scheduled but not settled. [tokens]."""
        return in_flight_tokens(self.settings, self.layout, self.rules.plan)

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
        needed = self.kv_cache.bytes_per_request_per_gpu
        if 0 < self.kv_cache.max_concurrency < 1:  # of the longest context that may come
            needed = max(needed, ceil(self.memory.kv_cache_bytes / self.kv_cache.max_concurrency))
        if keeps_separate_pools(self.model.architecture, self.rules):
            indexed = as_cached(self.model.architecture, self.rules.plan)
            needed = bytes_to_hold_one(indexed, self.layout, self.settings, max(self.context_tokens, 1))
        if self.settings.kv_cache_memory_bytes is not None:
            needed += self.kv_cache.bytes_per_block  # that the engine never hands out
        missing = needed - self.memory.kv_cache_bytes
        return self.memory.shortfall_bytes + (missing if missing > 0 else max(missing + pool_error_bytes(self), 0))


def pool_error_bytes(plan: MemoryPlan) -> int:
    """Return by how much the pool of one GPU may be smaller than predicted; 0 where the caller gave it."""
    if plan.settings.kv_cache_memory_bytes is not None:
        return 0
    return max(round(POOL_ERROR_FRACTION * plan.memory.kv_cache_bytes), LEAST_POOL_ERROR_BYTES)


@derived(256)
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

    The pool is what an engine's `cache_bytes` leaves; `answers/replica.py` shows a published one.

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
            engine's `--max-model-len auto` does, but never below the asked request; else a pool that does not hold
            one request of `max_model_len` holds none, for the engine does not start. [yes or no]

    Source:
        vLLM 0.8.5 to 0.33 `v1/core/kv_cache_utils.py` ("To serve at least one request with the models's max seq len").
    """
    go_on()
    architecture, context_tokens = model.architecture, input_tokens + output_tokens
    ledger = ledger_of(model, checkpoint, gpu, layout, settings, rules)
    memory = ledger.memory(settings.max_num_batched_tokens, settings.max_num_seqs)
    if settings.is_share_open:
        settings = with_own_share(architecture, gpu, layout, settings, rules)
    pool = _Pool(
        architecture=as_cached(architecture, rules.plan),
        layout=layout,
        device=device_of(gpu, rules),
        is_separate=keeps_separate_pools(architecture, rules),
        available_bytes=memory.kv_cache_bytes,
    )
    kv_cache = pool.cache(settings, input_tokens, output_tokens)
    if shorten_to_fit and kv_cache.estimated_max_model_len < settings.max_model_len:
        settings = replace(settings, max_model_len=max(kv_cache.estimated_max_model_len, context_tokens))
        kv_cache = pool.cache(settings, input_tokens, output_tokens)
    return MemoryPlan(
        model=model,
        checkpoint=checkpoint,
        gpu=gpu,
        layout=layout,
        settings=settings,
        rules=rules,
        memory=memory,
        kv_cache=kv_cache,
        context_tokens=context_tokens,
        requests_in_cache=pool.requests_held(settings, kv_cache, max(context_tokens, 1))
        if kv_cache.estimated_max_model_len >= settings.max_model_len or shorten_to_fit
        else 0,
    )


def ledger_of(
    model: ModelFacts, checkpoint: Checkpoint, gpu: Gpu, layout: Layout, settings: EngineSettings, rules: EngineRules
) -> Ledger:
    """Return everything on one GPU that adds up to its memory, under any batch; lengths of requests do not enter."""
    served = length_in_memory(model.architecture, settings.max_model_len)
    part = part_of_share(model.architecture, gpu, layout, settings, rules)

    def made() -> Ledger:
        return ledger_for(
            model.architecture,
            rank_weight_bytes(model, checkpoint, layout, settings, device_of(gpu, rules)),
            gpu,
            layout,
            replace(settings, max_model_len=served),
            rules,
            part,
            memory_of(rules.measured, model.id, gpu.id, layout, checkpoint.weight_format) if rules.measured else None,
        )

    key = (checkpoint, gpu, layout, rules, served, part, *_beside_batch(settings))
    return cast("Ledger", model.derived.by("ledgers", MOST_LEDGERS).get_or(key, made))


def _beside_batch(settings: EngineSettings) -> tuple[object, ...]:
    """Return what decides memory beside the cache, but for the batch and the context served."""
    return (
        settings.gpu_memory_utilization,
        settings.is_share_open,
        settings.kv_cache_memory_bytes,
        settings.block_size,
        settings.enforce_eager,
        settings.is_text_only,
        settings.max_loras,
        settings.max_lora_rank,
        settings.num_speculative_tokens,
        settings.speculative_method,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pool:
    """What the ledger leaves of one GPU for the cache, and how the engine divides it."""

    architecture: Architecture
    layout: Layout
    device: Device
    is_separate: bool  # a pool for each kind of layer
    available_bytes: int

    def cache(self, settings: EngineSettings, input_tokens: int, output_tokens: int) -> KvCache:
        """Return the pool's blocks, and what they hold."""
        if self.is_separate:
            return plan_separate_pools(
                self.architecture,
                layout=self.layout,
                settings=settings,
                available_bytes=self.available_bytes,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
            )
        return self._shared(settings).cache(input_tokens + output_tokens)

    def _shared(self, settings: EngineSettings) -> SharedPool:
        return shared_pool(self.architecture, self.layout, settings, self.available_bytes, self.device)

    def growth(self, settings: EngineSettings) -> Growing:
        """Return how blocks fill as a request grows."""
        if self.is_separate:
            return separate_pools(self.architecture, self.layout, settings, self.available_bytes)
        return self._shared(settings).shape

    def requests_held(self, settings: EngineSettings, kv_cache: KvCache, context_tokens: int) -> int:
        """Return how many requests of this context the pool holds at once."""
        if not self.is_separate:
            return self._shared(settings).requests_held(context_tokens)
        return requests_held(
            self.growth(settings),
            settings=settings,
            num_gpu_blocks=kv_cache.num_gpu_blocks,
            context_tokens=context_tokens,
            in_flight_tokens=in_flight_tokens(settings, self.layout, self.device.plan),
        )


def keeps_separate_pools(architecture: Architecture, rules: EngineRules) -> bool:
    """Return whether the engine keeps a pool for each kind of layer, and there are rules for them."""
    return rules.serving_engine.has_pool_per_kind and has_separate_pools(architecture)


def cache_growth(plan: MemoryPlan) -> Growing:
    """Return how the plan's blocks fill as a request grows."""
    pool = _Pool(
        architecture=as_cached(plan.model.architecture, plan.rules.plan),
        layout=plan.layout,
        device=plan.device,
        is_separate=keeps_separate_pools(plan.model.architecture, plan.rules),
        available_bytes=plan.memory.kv_cache_bytes,
    )
    return pool.growth(plan.settings)


def model_weights(plan: MemoryPlan) -> ModelWeights:
    """Return the model's weights before sharding, in the loaded format."""
    architecture = plan.model.architecture
    return ModelWeights(
        weight_bytes=_loaded_bytes(plan.model, plan.checkpoint, Layout(), plan.device),
        num_parameters=num_parameters(architecture),
        num_active_parameters=num_active_parameters(architecture),
    )


def rank_weight_bytes(
    model: ModelFacts, checkpoint: Checkpoint, layout: Layout, settings: EngineSettings, device: Device
) -> int:
    """Return what the fullest rank loads: the model, layers that draft, and the buffers of adapters. [bytes]."""
    draft = as_loaded(draft_of(model.architecture, settings), settings.num_speculative_tokens, device.plan)
    loaded = _loaded_bytes(model, checkpoint, layout, device, draft)
    if not settings.max_loras:
        return loaded
    return loaded + adapter_bytes(model.architecture, layout, settings.max_loras, settings.max_lora_rank, device)


def _loaded_bytes(
    model: ModelFacts, checkpoint: Checkpoint, layout: Layout, device: Device, draft: DraftHead | None = None
) -> int:
    """Return the loaded bytes of the fullest rank, by the caller's figure (of all weights) where one is stated."""
    if model.weight_bytes is not None or model.num_parameters is not None:
        return ceil_div(
            stated_weight_bytes(model, checkpoint), layout.tensor_parallel_size * layout.pipeline_parallel_size
        )
    quantization = checkpoint.quantization
    weights = rank_weights(model.architecture, layout=layout, quantization=quantization, draft=draft, device=device)
    return weights.loaded_bytes

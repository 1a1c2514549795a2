"""How many requests a cache holds, by how many may run: what searches over settings ask, without whole plans."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, cast

from service.engine.arithmetic import fitting
from service.engine.engines.device import device_of
from service.engine.engines.measured_here import MeasuredMemory, memory_of
from service.engine.engines.rules import EngineRules
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.inputs import EngineSettings, Gpu, Layout
from service.engine.kept import Kept
from service.engine.memory.activation import alike_in_memory
from service.engine.memory.cache_shape import CacheShape, shape_of
from service.engine.memory.ledger import memory_per_gpu
from service.engine.memory.plan import keeps_separate_pools, rank_weight_bytes
from service.engine.memory.shared_pool import in_flight_tokens, requests_held, taken
from service.engine.patience import go_on

MOST_SETTINGS: Final = 64  # of one model, but for how many may run
MOST_POOLS: Final = 128  # by how many may run, of one layout under otherwise the same settings


def requests_in_cache(
    model: ModelFacts,
    checkpoint: Checkpoint,
    gpu: Gpu,
    layout: Layout,
    settings: EngineSettings,
    rules: EngineRules,
    *,
    context_tokens: int,
    longest_tokens: int,
) -> Callable[[int], int] | None:
    """Return what tells `requests_in_cache` of plans that differ in `max_num_seqs`, without making them.

    Searches over settings ask this and nothing else of a plan, hundreds of times. None where the length served
    enters, or pools are apart.
    """
    go_on()
    architecture, device = model.architecture, device_of(gpu, rules)
    if settings.num_speculative_tokens or keeps_separate_pools(architecture, rules):
        return None
    shape, in_flight = shape_of(architecture, layout, settings, device), in_flight_tokens(settings, layout, device.plan)
    # What requests are long does not change the pools.
    key = (checkpoint, gpu, layout, alike_in_memory(architecture, settings), rules)
    pools = cast("Kept[int]", model.derived.by("pools", MOST_SETTINGS).get_or(key, lambda: Kept[int](MOST_POOLS)))

    steady, peak = taken(shape, settings, max(context_tokens, 1), in_flight)
    longest = shape.blocks_per_request(longest_tokens, in_flight) if longest_tokens else 0
    of_layout = _Pools(
        model=model, checkpoint=checkpoint, gpu=gpu, layout=layout, rules=rules, settings=settings, shape=shape
    )

    def held(max_num_seqs: int) -> int:
        if not steady:  # nothing is kept of a request: slots alone count
            return max_num_seqs

        blocks = pools.get_or(max_num_seqs, lambda: of_layout.blocks(max_num_seqs))
        return fitting(blocks - 1, peak, steady) if blocks > longest else 0

    return held


@dataclass(frozen=True, kw_only=True)  # without slots, for what is looked up once
class _Pools:
    """The pools of one layout: what does not depend on how many may run is looked up once."""

    model: ModelFacts
    checkpoint: Checkpoint
    gpu: Gpu
    layout: Layout
    rules: EngineRules
    settings: EngineSettings
    shape: CacheShape

    @cached_property
    def _weight_bytes(self) -> int:
        device = device_of(self.gpu, self.rules)
        return rank_weight_bytes(self.model, self.checkpoint, self.layout, self.settings, device)

    @cached_property
    def _measured(self) -> MeasuredMemory | None:
        measured = self.rules.measured
        if not measured:
            return None
        return memory_of(measured, self.model.id, self.gpu.id, self.layout, self.checkpoint.weight_format)

    def blocks(self, max_num_seqs: int) -> int:
        """Return the blocks of a pool beside which so many may run; one where layers keep none. [blocks]."""
        if not self.shape.bytes_per_block:
            return 1
        memory = memory_per_gpu(
            architecture=self.model.architecture,
            rank_weight_bytes=self._weight_bytes,
            gpu=self.gpu,
            layout=self.layout,
            settings=replace(self.settings, max_num_seqs=max_num_seqs),
            rules=self.rules,
            measured=self._measured,
        )
        return memory.kv_cache_bytes // self.shape.bytes_per_block


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A pool that no plan of a layout exceeds, and the sequences that may run in it."""

    shape: CacheShape
    settings: EngineSettings
    num_gpu_blocks: int
    in_flight_tokens: int
    most_seqs: int
    streams: int

    def users(self, context_tokens: int) -> int:
        """Return the requests of this context that one replica holds at most. [count]."""
        held = requests_held(
            self.shape,
            settings=self.settings,
            num_gpu_blocks=self.num_gpu_blocks,
            context_tokens=max(context_tokens, 1),
            in_flight_tokens=self.in_flight_tokens,
        )
        return min(held, self.most_seqs) * self.streams

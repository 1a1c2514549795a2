"""The most that a layout may hold, told before it is planned: what does not depend on lengths is kept.

    held <= 1 + (blocks - 1 - blocks in flight of one request) / blocks of one request

with the blocks of the largest pool that any open setting leaves. Plans of the same layout hold no more: a layout of
which even this is not enough is not planned.
"""

from dataclasses import replace
from math import inf
from typing import Final, cast

from service.engine.engines.device import device_of
from service.engine.errors import EngineError
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import Resolved
from service.engine.fleet.variants import ROOMY_BATCHED_TOKENS, batched_tokens
from service.engine.inputs import EngineSettings, Layout, Load
from service.engine.memory.cache_shape import shape_of
from service.engine.memory.held import Room
from service.engine.memory.plan import keeps_separate_pools, ledger_of
from service.engine.memory.shared_pool import in_flight_tokens
from service.engine.time.demand import wanted_of

MOST_RESOLVED: Final = 64  # ways to load one model whose rooms are kept


class Rooms:
    """The room of layouts under one way to load a model: with the engine's own settings, or with any."""

    def __init__(self, resolved: Resolved) -> None:
        """Start with none."""
        self._resolved = resolved
        self._by_layout: dict[tuple[Layout, bool], Room | None] = {}

    def of(self, layout: Layout, *, is_own: bool) -> Room | None:
        """Return what a layout has room for at most; None where that is not known without a plan."""
        key = layout, is_own
        if key not in self._by_layout:
            self._by_layout[key] = _room(self._resolved, layout, is_own=is_own)
        return self._by_layout[key]

    def may_hold(self, load: Load, layout: Layout, *, is_own: bool) -> bool:
        """Return whether a layout may hold one request of a load; what only a plan tells may be."""
        room = self.of(layout, is_own=is_own)
        return room is None or room.users(load.input_tokens + load.output_tokens) > 0

    def replicas_at_best(self, question: SizeQuestion, layout: Layout, *, is_own: bool) -> float:
        """Return the replicas of a layout that carry a load at least; infinite where it holds no request of it."""
        room, load = self.of(layout, is_own=is_own), question.load
        if room is None:
            return 1
        users = room.users(load.input_tokens + load.output_tokens)
        return wanted_of(load, question.headroom).replicas(users) if users else inf


def rooms_of(resolved: Resolved) -> Rooms:
    """Return the rooms of one way to load a model; lengths do not enter."""
    kept = resolved.model.derived.by("rooms", MOST_RESOLVED)
    settings = replace(resolved.settings, max_model_len=1)
    key = (resolved.gpu, resolved.stated, resolved.rules, resolved.checkpoint, settings)
    return cast("Rooms", kept.get_or(key, lambda: Rooms(resolved)))


def _room(resolved: Resolved, layout: Layout, *, is_own: bool) -> Room | None:
    architecture, rules = resolved.model.architecture, resolved.rules
    settings, most_seqs = _roomiest(resolved, is_own=is_own)
    if keeps_separate_pools(architecture, rules):
        return None
    device = device_of(resolved.gpu, rules)
    try:
        shape = shape_of(architecture, layout, settings, device)
        ledger = ledger_of(resolved.model, resolved.checkpoint, resolved.gpu, layout, settings, rules)
    except EngineError:
        return None  # the plan says so, when it is its turn
    return Room(
        shape=shape,
        settings=replace(settings, max_num_seqs=most_seqs),
        num_gpu_blocks=ledger.kv_cache_bytes // shape.bytes_per_block if shape.bytes_per_block else 1,
        in_flight_tokens=in_flight_tokens(settings, layout, device.plan),
        most_seqs=most_seqs,
        streams=layout.data_parallel_size,
    )


def _roomiest(resolved: Resolved, *, is_own: bool) -> tuple[EngineSettings, int]:
    """Return settings that leave the largest pool, and the most sequences that open settings let run.

    What is served, what may run and the token budget each take memory: the shortest, fewest and smallest leave most.
    """
    settings = replace(resolved.settings, max_model_len=1)
    if is_own:
        return settings, settings.max_num_seqs
    budgets = batched_tokens(resolved, ROOMY_BATCHED_TOKENS)
    seqs = resolved.stated.max_num_seqs
    smallest = replace(settings, max_num_batched_tokens=budgets[0], max_num_seqs=seqs or 1)
    return smallest, seqs or max(budgets[-1], settings.max_num_seqs)

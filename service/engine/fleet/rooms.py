"""The most that a layout may hold, told before it is planned: what does not depend on lengths is kept.

    held <= 1 + (blocks - 1 - blocks in flight of one request) / blocks of one request

with the blocks of the largest pool that any open setting leaves. Plans of the same layout hold no more: a layout of
which even this is not enough is not planned. Nor is the room looked for where all ranks together have too little:

    weights on a rank >= 0.95 x weights on one GPU / ranks

Whatever is split is split evenly or rounded up, and the rest is on every rank; allocators round up by less on more.
"""

from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Final, cast

from service.engine.engines.device import device_of
from service.engine.errors import EngineError
from service.engine.fleet.batches import tokens_of_each
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import Resolved
from service.engine.fleet.variants import batched_tokens
from service.engine.inputs import EngineSettings, Layout, Load
from service.engine.memory.cache_shape import shape_of
from service.engine.memory.held import Room
from service.engine.memory.plan import keeps_separate_pools, ledger_of, rank_weight_bytes
from service.engine.memory.shared_pool import in_flight_tokens, num_blocks
from service.engine.time.demand import wanted_of

# Of what one GPU would load, that all ranks together load at least: 0.988 is the least of the catalog's models.
SPLIT_FRACTION: Final = 0.95
LATENT: Final = "mla_attention"
MOST_RESOLVED: Final = 128  # ways to load one model whose rooms are kept


class Rooms:
    """The room of layouts under one way to load a model: with the engine's own settings, or with any."""

    def __init__(self, resolved: Resolved) -> None:
        """Start with none."""
        self._resolved = resolved
        self._by_layout: dict[tuple[Layout, bool], Room | None] = {}
        self._roomiest: dict[bool, tuple[EngineSettings, int]] = {}

    def of(self, layout: Layout, *, is_own: bool) -> Room | None:
        """Return what a layout has room for at most; None where that is not known without a plan."""
        key = layout, is_own
        if key not in self._by_layout:
            if is_own not in self._roomiest:
                self._roomiest[is_own] = _roomiest(self._resolved, is_own=is_own)
            self._by_layout[key] = _room(self._resolved, layout, self._roomiest[is_own])
        return self._by_layout[key]

    def may_hold(self, load: Load, layout: Layout, *, is_own: bool) -> bool:
        """Return whether a layout may hold one request of a load; what only a plan tells may be."""
        if self.is_too_heavy(layout):
            return False
        room = self.of(layout, is_own=is_own)
        return room is None or room.users(load.input_tokens + load.output_tokens) > 0

    def replicas_at_best(self, question: SizeQuestion, layout: Layout, *, is_own: bool) -> float:
        """Return the replicas of a layout that carry a load at least; infinite where it holds no request of it."""
        if self.is_too_heavy(layout):
            return inf
        room, load = self.of(layout, is_own=is_own), question.load
        return 1 if room is None else _replicas(question, room.users(load.input_tokens + load.output_tokens))

    def replicas_under(self, question: SizeQuestion, layout: Layout, tokens: int) -> float:
        """Return the same under a token budget."""
        room, load, resolved = self.of(layout, is_own=False), question.load, self._resolved
        if room is None:
            return 1
        stated, own = resolved.stated.max_num_seqs, resolved.settings
        most = stated or max(tokens // tokens_of_each(own, resolved.rules), own.max_num_seqs)
        context = load.input_tokens + load.output_tokens
        return _replicas(question, room.users_under(tokens, most, context, is_stated=stated is not None))

    def is_too_heavy(self, layout: Layout) -> bool:
        """Return whether weights alone take more than the GPUs of a layout have, wherever they lie."""
        has_own_kernels = layout.decode_context_parallel_size > 1  # which may be refused before memory counts
        return not has_own_kernels and self._weight_bytes >= layout.gpus_per_replica * self._resolved.gpu.memory_bytes

    @cached_property
    def _weight_bytes(self) -> float:
        """Return what all ranks together load at least; 0 where memory is given, or a refusal may come before it."""
        resolved = self._resolved
        architecture, rules, settings = resolved.model.architecture, resolved.rules, resolved.settings
        device, alone = device_of(resolved.gpu, rules), replace(settings, max_loras=0, num_speculative_tokens=0)
        is_given = settings.kv_cache_memory_bytes is not None or rules.measured
        if is_given or keeps_separate_pools(architecture, rules):
            return 0.0
        try:
            groups = shape_of(architecture, Layout(), settings, device).groups
            weights = rank_weight_bytes(resolved.model, resolved.checkpoint, Layout(), alone, device)
        except EngineError:
            return 0.0
        kinds = {kind.kind for group in groups for kind in group.kinds}
        # Pages of latents beside others are refused by what is split; what keeps no pages is held without any.
        return SPLIT_FRACTION * weights if len(kinds) == 1 or (kinds and LATENT not in kinds) else 0.0


def rooms_of(resolved: Resolved) -> Rooms:
    """Return the rooms of one way to load a model; lengths do not enter."""
    kept = resolved.model.derived.by("rooms", MOST_RESOLVED)
    settings = replace(resolved.settings, max_model_len=1)
    key = (resolved.gpu, resolved.stated, resolved.rules, resolved.checkpoint, settings)
    return cast("Rooms", kept.get_or(key, lambda: Rooms(resolved)))


def _replicas(question: SizeQuestion, users: int) -> float:
    """Return the replicas that carry a load where one carries so many users; infinite where it carries none."""
    return wanted_of(question.load, question.headroom).replicas(users) if users else inf


def _room(resolved: Resolved, layout: Layout, roomiest: tuple[EngineSettings, int]) -> Room | None:
    architecture, rules = resolved.model.architecture, resolved.rules
    settings, most_seqs = roomiest
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
        settings=settings if settings.max_num_seqs == most_seqs else replace(settings, max_num_seqs=most_seqs),
        ledger=ledger,
        num_gpu_blocks=num_blocks(shape, ledger.cache_bytes(settings.max_num_batched_tokens, settings.max_num_seqs)),
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
    budgets = batched_tokens(resolved)
    seqs = resolved.stated.max_num_seqs
    smallest = replace(settings, max_num_batched_tokens=budgets[0], max_num_seqs=seqs or 1)
    return smallest, seqs or max(budgets[-1], settings.max_num_seqs)

"""How many requests a cache holds, by how many may run: what searches over settings ask, without whole plans."""

from collections.abc import Callable
from dataclasses import dataclass

from service.engine.arithmetic import fitting
from service.engine.engines.device import device_of
from service.engine.engines.rules import EngineRules
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.inputs import EngineSettings, Gpu, Layout
from service.engine.memory.cache_shape import CacheShape, shape_of
from service.engine.memory.ledger import Ledger
from service.engine.memory.plan import keeps_separate_pools, ledger_of
from service.engine.memory.shared_pool import in_flight_tokens, num_blocks, taken
from service.engine.patience import go_on


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
    ledger, tokens = ledger_of(model, checkpoint, gpu, layout, settings, rules), settings.max_num_batched_tokens
    steady, peak = taken(shape, settings, max(context_tokens, 1), in_flight)
    longest = shape.blocks_per_request(longest_tokens, in_flight) if longest_tokens else 0

    def held(max_num_seqs: int) -> int:
        if not steady:  # nothing is kept of a request: slots alone count
            return max_num_seqs

        blocks = num_blocks(shape, ledger.cache_bytes(tokens, max_num_seqs))
        return fitting(blocks - 1, peak, steady) if blocks > longest else 0

    return held


def most_filled(held: Callable[[int], int], low: int, high: int, guess: int) -> int:
    """Return the most of `low` to `high`, the last excluded, that are no more than what is held beside them.

    As what is held falls, n held beside m are too few for m > n, and beside n at least as many: each look bounds
    both ends, and the last one's answer is the next to look at, in turn with the middle.

    >>> most_filled(lambda seqs: 400 - seqs // 10, 1, 1_000, 500)
    364
    """
    is_guessed = True
    while high - low > 1:
        seqs = min(max(guess, low + 1), high - 1) if is_guessed else (low + high) // 2
        guess, is_guessed = held(seqs), not is_guessed
        low, high = (seqs, min(high, guess + 1)) if guess >= seqs else (max(low, guess), seqs)
    return low


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Room:
    """A pool that no plan of a layout exceeds, and the sequences that may run in it."""

    shape: CacheShape
    ledger: Ledger
    settings: EngineSettings
    num_gpu_blocks: int
    in_flight_tokens: int
    most_seqs: int
    streams: int

    def users(self, context_tokens: int) -> int:
        """Return the requests of this context that one replica holds at most. [count]."""
        steady, peak = taken(self.shape, self.settings, max(context_tokens, 1), self.in_flight_tokens)
        held = fitting(self.num_gpu_blocks - 1, peak, steady) if steady else self.most_seqs
        return min(held, self.most_seqs) * self.streams

    def users_under(self, tokens: int, most_seqs: int, context_tokens: int, *, is_stated: bool) -> int:
        """Return the same under a token budget, beside as many sequences as then may run. [count].

        Args:
            tokens: the budget.
            most_seqs: that settings let run.
            context_tokens: of one request.
            is_stated: exactly so many may run; else as few as the cache holds. [yes or no]
        """
        in_flight = self.in_flight_tokens // self.settings.max_num_batched_tokens * tokens
        steady, peak = taken(self.shape, self.settings, max(context_tokens, 1), in_flight)
        if not steady:
            return most_seqs * self.streams

        def held(seqs: int) -> int:
            return fitting(num_blocks(self.shape, self.ledger.cache_bytes(tokens, seqs)) - 1, peak, steady)

        if is_stated:
            return min(held(most_seqs), most_seqs) * self.streams
        most = min(held(1), most_seqs)
        return most_filled(held, 0, most + 1, most) * self.streams

"""Loads that have the same sizing by memory alone: replicas are whole, and so are the blocks of a cache.

    users    every count of replicas that was asked for stays:  (replicas - 1) x held < users <= replicas x held
    lengths  requests that fill as many blocks:  ceil(tokens / 16)

Kernels of caches that layers share take blocks of a multiple of 16 tokens, unless another block is stated; a window, a
chunk and the ranks of a context-parallel cache divide whole blocks as well (`layers/cache.py`). The context that is
served is chosen by lengths, and so belongs to what is compared; half a prompt is sized where a lever asks for it.
"""

from dataclasses import dataclass, replace
from typing import Final

from service.engine.answers.load_levers import SHORTEST_TOKENS
from service.engine.answers.noted import load_notes
from service.engine.answers.results import Sizing
from service.engine.answers.size import size
from service.engine.fleet.alike import BLOCK_TOKENS, Lengths, lengths_of
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.results import Assumption
from service.engine.inputs import Alike, Load
from service.engine.memory.plan import keeps_separate_pools
from service.engine.time.demand import wanted_of

HALVED: Final = "input_tokens"  # what the lever changes


def may_be_alike(question: SizeQuestion) -> bool:
    """Return whether other loads may have the same sizing: of users, by memory alone, in blocks of one pool."""
    load, settings = question.load, question.settings
    return (
        question.timers is None
        and question.is_of_memory
        and load.request_rate_per_s is None
        and question.confidence is None
        and not question.disaggregated
        and not settings.num_speculative_tokens
        and (settings.block_size or BLOCK_TOKENS) % BLOCK_TOKENS == 0
        and not keeps_separate_pools(question.model.architecture, question.rules)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A sizing, and the loads that have it, among those whose requests are alike."""

    sizing: Sizing
    load: Load  # it was computed of
    fewest_users: int  # with headroom
    most_users: float
    notes_at: int  # where its assumptions speak of the load
    halved: Lengths | None  # of a prompt capped at half, where a lever was sized so

    def is_of(self, question: SizeQuestion, load: Load) -> bool:
        """Return whether a load of the same question has this sizing."""
        users = wanted_of(load, question.headroom).amount
        if not self.fewest_users <= users <= self.most_users:
            return False
        return self.sizing.gpus == 1 or self.halved == halved_of(question, load)

    def told(self, load: Load, notes: tuple[Assumption, ...]) -> Sizing:
        """Return the sizing as an answer to another load, of which this is noted."""
        stated = self.sizing.assumptions
        levers = tuple(
            replace(lever, change={HALVED: load.input_tokens // 2}) if HALVED in lever.change else lever
            for lever in self.sizing.levers
        )
        rests_on = (*stated[: self.notes_at], *notes, *stated[self.notes_at + len(notes) :])
        return replace(self.sizing, assumptions=rests_on, levers=levers)


def halved_of(question: SizeQuestion, load: Load) -> Lengths | None:
    """Return what requests with half the prompt have in common; None where no lever caps a prompt so short."""
    if load.input_tokens < SHORTEST_TOKENS:
        return None
    return lengths_of(question, replace(load, input_tokens=load.input_tokens // 2))


def sized(question: SizeQuestion) -> tuple[Sizing, Sized | None]:
    """Return the sizing, and what other loads have it; None where it names a length as it was asked.

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    alike, load = Alike(), question.load
    sizing = size(replace(question, load=replace(load, alike=alike)))
    if not sizing.feasible or _names_lengths(sizing, load, lengths_of(question, load)):
        return sizing, None
    return sizing, Sized(
        sizing=sizing,
        load=load,
        fewest_users=alike.fewest,
        most_users=alike.most,
        notes_at=sizing.assumptions.index(load_notes(load)[0]),
        halved=halved_of(question, load),
    )


def _names_lengths(sizing: Sizing, load: Load, lengths: Lengths) -> bool:
    """Return whether a context was shortened to the request, or a group has blocks of another kind."""
    context = str(load.input_tokens + load.output_tokens)
    served = next(note.value for note in sizing.assumptions if note.name == "max_model_len")
    is_named = context in sizing.engine_args or any(context in told for told in sizing.warnings)
    blocks = (group.block_size for group in sizing.kv_cache.groups)
    return served != lengths[1] or is_named or any(size % BLOCK_TOKENS for size in blocks)

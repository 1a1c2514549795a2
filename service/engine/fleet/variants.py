"""Engine settings that the caller left open, chosen where the engine's own take more GPUs than needed.

    max_num_seqs            the number at which the cache holds as many requests as run at once: with more, the
                            sampler takes memory that the cache lacks; with fewer, slots are missing
    max_num_batched_tokens  one of a few powers of two: fewer leave more memory, more read long prompts sooner

What the caller states is kept. The engine's own settings are kept as well, as long as they are as good.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, Literal

from service.engine.engines.device import device_of
from service.engine.engines.rules import EngineRules
from service.engine.fleet.batches import CUT_WHY, running_beside, tokens_of_each
from service.engine.fleet.results import Assumption
from service.engine.fleet.settings import Resolved
from service.engine.inputs import EngineSettings
from service.engine.memory.activation import fewest_batched_tokens
from service.engine.memory.held import most_filled
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import running_at_once, with_tokens

# Small ones keep decoding beside prompts in pace, leave the most memory, and let pipeline stages share a long prompt;
# large ones read it in few steps. No more requests run than a step has tokens: the smallest is not always the roomiest.
BATCHED_TOKENS: Final = (256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768)
SEQS_WHY: Final = "as many as the cache holds beside them; the engine's own is {own}"
BATCHED_WHY: Final = (
    "chosen among powers of two: fewer GPUs or less money carry the load, or the same GPUs more of it, than with the "
    "engine's own {own}"
)

Chosen = Literal["max_num_seqs", "max_num_batched_tokens"]
PlanOf = Callable[[Resolved], MemoryPlan]


@dataclass(frozen=True, slots=True)
class Planner:
    """The memory of one layout under any settings: the whole plan, or only how many requests its cache holds."""

    plan: PlanOf
    held: Callable[[Resolved], Callable[[int], int]]  # by `max_num_seqs`
    is_timed: bool = False  # time decides, which budgets change

    def __call__(self, resolved: Resolved) -> MemoryPlan:
        """Return the whole plan."""
        return self.plan(resolved)


def variants(
    resolved: Resolved, plan_of: Planner, budgets: Sequence[int] = (), *, needs_room: bool = True, rises: bool = False
) -> Iterator[tuple[Resolved, MemoryPlan]]:
    """Yield other settings than the engine's own with their plans, those nearest to them first.

    Args:
        resolved: with the engine's own settings, or those stated.
        plan_of: the memory of one layout under other settings.
        budgets: values of `max_num_batched_tokens` in question; none: all. [tokens]
        needs_room: more requests at once may help. [yes or no]
        rises: where memory alone decides, leave out budgets under which no more run than under those before.
            [yes or no]
    """
    running, own = 0, resolved.settings.max_num_batched_tokens
    asked, rises = budgets or batched_tokens(resolved), rises and not plan_of.is_timed
    for tokens in sorted(asked, key=lambda tokens: (tokens != own, abs(tokens - own))):
        changed = resolved if tokens == own else with_chosen(resolved, "max_num_batched_tokens", tokens, BATCHED_WHY)
        most = _most_running(changed, plan_of) if rises else None
        if most is not None and most <= running:
            continue
        if changed is not resolved:
            yield changed, (plan := plan_of(changed))
            running = max(running, running_at_once(plan)) if rises else 0
        filled = filled_by_cache(changed, plan_of, most) if needs_room else None
        if filled is not None:
            yield filled
            running = max(running, running_at_once(filled[1])) if rises else 0


def roomiest(resolved: Resolved, plan_of: Planner) -> MemoryPlan:
    """Return the plan with the most room: no other choice of settings holds more requests at once."""
    budgets = batched_tokens(resolved)
    plan = _with_most_room(resolved, budgets[0], plan_of)
    slots = min(
        budgets[0] // tokens_of_each(plan.settings, plan.rules), with_tokens(plan.settings, plan.layout, plan.rules)
    )
    running = running_at_once(plan)
    if running < slots or (resolved.stated.max_num_seqs or inf) <= slots or not running:
        return plan  # the smallest budget leaves the most memory: where nothing runs under it, nothing does
    others = (_with_most_room(resolved, tokens, plan_of) for tokens in budgets[1:])  # that let more requests run
    return max((plan, *others), key=running_at_once)


def under_budgets(resolved: Resolved, plan: MemoryPlan, plan_of: Planner) -> Iterator[MemoryPlan]:
    """Yield a plan's memory under each token budget in question, its own first."""
    yield plan
    for tokens in batched_tokens(resolved) if plan_of.is_timed else ():
        if tokens != plan.settings.max_num_batched_tokens:
            yield replace(plan, settings=replace(plan.settings, max_num_batched_tokens=tokens))


def _with_most_room(resolved: Resolved, tokens: int, plan_of: Planner) -> MemoryPlan:
    """Return the plan with the most room under a token budget."""
    own = resolved.settings.max_num_batched_tokens
    if tokens != own:
        resolved = with_chosen(resolved, "max_num_batched_tokens", tokens, BATCHED_WHY)
    filled = filled_by_cache(resolved, plan_of)
    return plan_of(resolved) if filled is None else filled[1]


def filled_by_cache(
    resolved: Resolved, plan_of: Planner, most: int | None = None
) -> tuple[Resolved, MemoryPlan] | None:
    """Return the most running requests that the cache holds; None where those are the engine's own, or stated.

        max max_num_seqs with requests_in_cache(max_num_seqs) >= max_num_seqs <= those a step has room for

    What the cache holds falls as more may run: what it holds beside the engine's own number bounds the search.

    Args:
        resolved: with the token budget in question.
        plan_of: the memory of one layout under other settings.
        most: that number of requests, where it was found before. [count]
    """
    if resolved.stated.max_num_seqs is not None:
        return None
    filled = _filled(resolved, plan_of) if most is None else most
    return None if filled in (0, resolved.settings.max_num_seqs) else _surely_filled(resolved, plan_of, filled)


def _most_running(resolved: Resolved, plan_of: Planner) -> int:
    """Return the most requests that run at once under a token budget, as far as a cache is predicted. [count]."""
    if resolved.stated.max_num_seqs is None:
        return _filled(resolved, plan_of)
    own = resolved.settings.max_num_seqs
    return min(plan_of.held(resolved)(own), own)


def _filled(resolved: Resolved, plan_of: Planner) -> int:
    """Return the most running requests that are no more than what is held beside them; 0 where nothing is."""
    settings, held = resolved.settings, plan_of.held(resolved)
    own, limit = settings.max_num_seqs, settings.max_num_batched_tokens // tokens_of_each(settings, resolved.rules)
    beside_own = held(own)
    low = min(beside_own, own)
    high = min(beside_own, limit) if beside_own >= own else min(held(max(low, 1)), own - 1)
    return most_filled(held, low, high + 1, low if beside_own < own else high)


def _surely_filled(resolved: Resolved, plan_of: Planner, most: int) -> tuple[Resolved, MemoryPlan]:
    """Return so many running requests, or the most of fewer whose pool holds one in spite of its error."""

    def of(seqs: int) -> tuple[Resolved, MemoryPlan]:
        chosen = with_chosen(resolved, "max_num_seqs", seqs, SEQS_WHY)
        return chosen, plan_of(chosen)

    filled = of(most)
    if filled[1].requests_in_cache:
        return filled
    held, too_many = 0, most
    while too_many - held > 1:
        seqs = (held + too_many) // 2
        fewer = of(seqs)
        if fewer[1].requests_in_cache:
            held, filled = seqs, fewer
        else:
            too_many = seqs
    return filled


def batched_tokens(resolved: Resolved) -> tuple[int, ...]:
    """Return the token budgets in question: as stated, else the engine's own and those that may be had. [tokens]."""
    own = resolved.settings.max_num_batched_tokens
    if resolved.stated.max_num_batched_tokens is not None:
        return (own,)
    image = fewest_batched_tokens(resolved.model.architecture, device_of(resolved.gpu, resolved.rules))
    floor = max(image, (resolved.stated.max_num_seqs or 1) * tokens_of_each(resolved.stated, resolved.rules))
    # LMSYS' pools over DeepEP ran out of memory with 16,384 tokens of a rank on H100, whose own are 8,192; two batches
    # that overlap did not (May 2025).
    most = BATCHED_TOKENS[-1]
    if resolved.stated.all2all_backend is not None:
        most = 2 * own if resolved.stated.enable_two_batch_overlap else own
    return tuple(sorted({own, *(tokens for tokens in BATCHED_TOKENS if floor <= tokens <= most)}))


def with_chosen(resolved: Resolved, name: Chosen, value: int, why: str) -> Resolved:
    """Return settings with one that Sizer chose, and the note that says so.

    Args:
        resolved: the settings before.
        name: of the setting.
        value: what is chosen.
        why: the reason, in which `{own}` stands for what the engine itself takes.
    """
    settings = resolved.settings
    match name:
        case "max_num_seqs":
            own, changed = settings.max_num_seqs, replace(settings, max_num_seqs=value)
        case "max_num_batched_tokens":
            own, changed = settings.max_num_batched_tokens, _with_tokens(settings, value, resolved.rules)
    chosen = Assumption(name=name, value=value, origin="chosen", source=why.format(own=own))
    notes: dict[str, Assumption] = {name: chosen}
    if name != "max_num_seqs" and changed.max_num_seqs < settings.max_num_seqs:
        cut = CUT_WHY.format(own=settings.max_num_seqs)
        notes["max_num_seqs"] = Assumption(name="max_num_seqs", value=changed.max_num_seqs, origin="chosen", source=cut)
    return replace(
        resolved,
        settings=changed,
        assumptions=tuple(notes.get(other.name, other) for other in resolved.assumptions),
    )


def _with_tokens(settings: EngineSettings, tokens: int, rules: EngineRules) -> EngineSettings:
    """Return settings with another token budget, and no more requests than the engine lets run beside it."""
    seqs = running_beside(tokens // tokens_of_each(settings, rules), settings.max_num_seqs, rules)
    return replace(settings, max_num_batched_tokens=tokens, max_num_seqs=seqs)

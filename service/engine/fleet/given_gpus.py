"""The deployment that carries most on the GPUs given, over every layout and setting left open."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import nextafter

from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.aims import aim_of
from service.engine.fleet.ceilings import serving_at_best
from service.engine.fleet.choice import HOPED
from service.engine.fleet.deployments import Deployment, highest_rate
from service.engine.fleet.in_time import needs_room
from service.engine.fleet.lengths import has_lengths, lengths_of, plan_at, split_of
from service.engine.fleet.pacing import may_pace, paced_replicas
from service.engine.fleet.planned import by_plans, held_of, legal_layouts, planned
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.rooms import rooms_of
from service.engine.fleet.settings import Resolved, longest_request, resolve
from service.engine.fleet.space import Space, simplicity
from service.engine.fleet.variants import Planner, batched_tokens, roomiest, under_budgets, variants
from service.engine.inputs import Layout, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.carried import deciding_replica, hoped, needs_time
from service.engine.time.demand import Arrivals, Demand, Users, kind_of
from service.engine.time.estimate import budgets_at_best
from service.engine.time.replica import Replica
from service.engine.time.roomy import may_carry
from service.engine.time.tries import Tries

Merit = tuple[bool, int, float]  # carries anything; context served where no lengths are stated; load. More is better
PlanOf = Callable[[Resolved, Layout], MemoryPlan]


def resolve_capacity(question: CapacityQuestion) -> Resolved:
    """Return the question's settings without a gap."""
    context = (question.input_tokens or 0) + (question.output_tokens or 0)
    longest = longest_request(question.load, context)
    return resolve(question.model, question.gpu, question.settings, question.rules, context, longest)


def largest(question: CapacityQuestion, resolved: Resolved) -> Deployment:
    """Return the deployment that carries most on the given GPUs.

    Requests of stated lengths are counted over every layout and open setting; of usual layouts that carry as much, the
    cheapest is chosen, then the plainest. Without lengths the engine starts as it does by itself, on the layout that
    serves the longest context, and of those on the one that holds most requests; as on fewer GPUs, on which it only
    starts with other settings, where that holds more.

    Raises:
        UnsupportedLayoutError: no legal layout is as small as the GPUs given.
    """
    space = legal_layouts(resolved, question.layout)
    fitting = [layout for layout in space.layouts if layout.gpus_per_replica <= question.gpu_count]
    if not fitting:
        smallest = min(layout.gpus_per_replica for layout in space.layouts)
        raise UnsupportedLayoutError(
            f"the layout needs {smallest} GPUs and gpu_count is {question.gpu_count}",
            field="gpu_count",
            accepted=f"at least {smallest}",
        )
    search = _search(question)
    usual = _usual_first(space, fitting)
    best = search.best((resolved, layout) for layout in usual)
    if not search.merit(best)[0] or has_lengths(question):
        best = search.better(resolved, fitting, best) or best
        return _plainest(question, resolved, [layout for layout in fitting if layout in space.usual], best)
    fewest = min(each.gpus_per_replica for each in usual if search.plan_of(resolved, each).holds_one_request)
    smaller = [layout for layout in fitting if fewest <= 2 * layout.gpus_per_replica < 2 * fewest]
    return search.better(resolved, smaller, best) or best


def _plainest(
    question: CapacityQuestion, resolved: Resolved, layouts: Iterable[Layout], known: Deployment
) -> Deployment:
    """Return the cheapest of some layouts, then the plainest, that carries as much as what is known."""
    prices, search = aim_of("cost", question.gpu, question.offers), _search(question)
    carries, context, load = search.merit(known)

    def rank(layout: Layout) -> tuple[tuple[float, float], tuple[object, ...]]:
        return prices.merit(layout, question.gpu_count // layout.gpus_per_replica), simplicity(layout)

    as_much = carries, context, nextafter(load, 0.0)
    plainer = sorted((layout for layout in layouts if rank(layout) < rank(known.layout)), key=rank)
    as_good = (each for layout in plainer for each in search.improving(resolved, [layout], as_much))
    return next(as_good, known) if carries else known


def carries_more(question: CapacityQuestion, than: float) -> bool:
    """Return whether any settings let the given GPUs carry more than so much, without a search for the most."""
    resolved = resolve_capacity(question)
    search = _search(question)
    layouts = legal_layouts(resolved, question.layout).layouts
    return any(True for _ in search.improving(resolved, layouts, (True, 0, than)))


def as_started(question: CapacityQuestion, resolved: Resolved, layout: Layout) -> Deployment:
    """Return one layout on the given GPUs with the engine's own settings, whatever others would carry."""
    return _search(question).best([(resolved, layout)])


def _usual_first(space: Space, fitting: Sequence[Layout]) -> Sequence[Layout]:
    """Return the usual ones of some layouts; all of them where none is usual."""
    return [layout for layout in fitting if layout in space.usual] or fitting


def smallest_that_holds(question: CapacityQuestion, resolved: Resolved) -> int | None:
    """Return the fewest GPUs on which one request fits, whatever time it takes; None where no layout holds it."""
    search = _search(question)
    for layout in legal_layouts(resolved, question.layout).usual:
        if roomiest(resolved, search.plans_of(layout)).holds_one_request:
            return layout.gpus_per_replica
    return None


def at_context(question: CapacityQuestion, resolved: Resolved, context_tokens: int) -> Deployment:
    """Return the given GPUs as they hold most requests of exactly this context, with the engine's own settings.

    Args:
        question: what was asked.
        resolved: its settings.
        context_tokens: of each request, and the longest that is served. [tokens]
    """
    settings = replace(resolved.settings, max_model_len=context_tokens)
    served = replace(resolved, settings=settings, shorten_to_fit=False)
    load = replace(split_of(question.load, context_tokens), concurrent_requests=None, request_rate_per_s=None)
    asked = replace(question, load=load, input_tokens=load.input_tokens, output_tokens=load.output_tokens)
    search = _Search(question=asked, plan_of=lambda settings, layout: planned(settings, layout, context_tokens, 0))
    space = legal_layouts(resolved, question.layout)
    fitting = [layout for layout in space.layouts if layout.gpus_per_replica <= question.gpu_count]
    best = search.best((served, layout) for layout in _usual_first(space, fitting))
    return best if search.merit(best)[0] else search.better(served, fitting, best) or best


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """The given GPUs on their way to a deployment."""

    question: CapacityQuestion
    plan_of: PlanOf
    tries: Tries = field(default_factory=Tries)

    def plans_of(self, layout: Layout) -> Planner:
        """Return what plans one layout under any settings."""
        question = self.question
        lengths = question.input_tokens or 0, question.output_tokens or 0

        def held(settings: Resolved) -> Callable[[int], int]:
            if has_lengths(question):
                return held_of(settings, layout, *lengths)
            return by_plans(settings, lambda other: self.plan_of(other, layout))

        is_timed = needs_time(question.load, question.limits)
        return Planner(lambda settings: self.plan_of(settings, layout), held, is_timed)

    def best(self, shapes: Iterable[tuple[Resolved, Layout]]) -> Deployment:
        """Return the best deployment of some layouts with their settings, or the one that misses least."""
        plans = [(resolved, self.plan_of(resolved, layout)) for resolved, layout in shapes]
        bounded = sorted(
            ((self._bound(plan), resolved, plan) for resolved, plan in plans),
            key=lambda entry: (_descending(entry[0]), entry[2].shortfall_bytes, simplicity(entry[2].layout)),
        )
        _, resolved, plan = bounded[0]
        known = self._deployed(resolved, plan)
        for bound, resolved, plan in bounded[1:]:
            if bound <= self.merit(known):
                break
            tried = self._if_better(resolved, plan, self.merit(known))
            known = known if tried is None else tried
        return known

    def better(self, resolved: Resolved, layouts: Iterable[Layout], known: Deployment) -> Deployment | None:
        """Return what carries truly more than what is known, with layouts or settings that are not the usual ones."""
        return max(self.improving(resolved, layouts, self.merit(known)), key=self.merit, default=None)

    def improving(self, resolved: Resolved, layouts: Iterable[Layout], least: Merit) -> Iterator[Deployment]:
        """Yield what is truly better than what is known, each better than the one before."""
        hopeful = ((layout, budgets) for layout in layouts if (budgets := self._budgets(resolved, layout, least)))
        ordered = sorted(self._room(resolved, hopeful), key=lambda entry: _descending(entry[0]))
        for bound, layout, budgets in ordered:
            if bound <= least:
                break
            for settings, plan in self._settings(resolved, layout, budgets):
                if self._bound(plan) > least and (tried := self._if_better(settings, plan, least)) is not None:
                    least = self.merit(tried)
                    yield tried

    def _if_better(self, resolved: Resolved, plan: MemoryPlan, least: Merit) -> Deployment | None:
        """Return a plan's replicas if they carry more than what is known; None where they do not."""
        question, load = self.question, lengths_of(self.question, plan)
        replica = deciding_replica(plan, question.timers, load, question.limits)
        share = None if replica is None else self._more_than(least, plan, load)
        budgets = (plan.settings.max_num_batched_tokens,)
        if share and replica and not budgets_at_best(replica.serving, budgets, share, question.limits):
            return None
        if self.tries.tell_of(replica):
            return None
        with self.tries.noting(replica):
            is_paced = may_pace(resolved, load, question.limits)
            if share and replica and not may_carry(replica, share, question.limits, is_paced=is_paced):
                return None
            tried = self._deployed(resolved, plan)
            return tried if self.merit(tried) > least else None

    def _more_than(self, least: Merit, plan: MemoryPlan, load: Load) -> Demand | None:
        """Return the least share of a replica that makes a plan better than what is known; None where any does."""
        is_longer = not has_lengths(self.question) and plan.settings.max_model_len > least[1]
        return self._more(plan.layout, load, least) if least[0] and not is_longer else None

    def _more(self, layout: Layout, load: Load, least: Merit) -> Demand:
        """Return the least share of a replica with which all carry more than what is known."""
        return kind_of(load).above(least[2] / (self.question.gpu_count // layout.gpus_per_replica))

    def _budgets(self, resolved: Resolved, layout: Layout, least: Merit) -> Sequence[int]:
        """Return the token budgets with which a layout may carry more than what is known, by a ceiling. [tokens]."""
        question, load = self.question, self.question.load
        budgets = batched_tokens(resolved)
        if not least[0] or not has_lengths(question) or not needs_time(load, question.limits):
            return budgets
        load = replace(load, input_tokens=question.input_tokens or 0, output_tokens=question.output_tokens or 0)
        room_of = partial(rooms_of(resolved).of, layout, is_own=False)
        serving = serving_at_best(question.timers, resolved, layout, load, room_of)
        if serving is None:
            return budgets
        return budgets_at_best(serving, budgets, self._more(layout, load, least), question.limits)

    def _room(
        self, resolved: Resolved, layouts: Iterable[tuple[Layout, Sequence[int]]]
    ) -> Iterator[tuple[Merit, Layout, Sequence[int]]]:
        """Yield layouts by the most that any settings let them carry."""
        for layout, budgets in layouts:
            planner = self.plans_of(layout)
            plans = under_budgets(resolved, roomiest(resolved, planner), planner)
            yield max(map(self._bound, plans)), layout, budgets

    def _settings(
        self, resolved: Resolved, layout: Layout, budgets: Sequence[int]
    ) -> Iterator[tuple[Resolved, MemoryPlan]]:
        if resolved.settings.max_num_batched_tokens in budgets:
            yield resolved, self.plan_of(resolved, layout)
        needs_more = not has_lengths(self.question) or needs_room(self.question, self.plan_of(resolved, layout))
        yield from variants(resolved, self.plans_of(layout), budgets, needs_room=needs_more)

    def _bound(self, plan: MemoryPlan) -> Merit:
        """Return what no deployment of a plan is better than, by memory and an optimistic estimate of time."""
        if not plan.holds_one_request:
            return False, 0, 0.0
        question, load = self.question, lengths_of(self.question, plan)
        of_one = hoped(plan, question.timers, load, question.limits, HOPED)
        amount = float("inf") if of_one is None else of_one
        return self._merit(plan, amount)

    def merit(self, deployment: Deployment) -> Merit:
        """Return how good a deployment is."""
        if kind_of(deployment.load) is Arrivals and deployment.replica is not None:
            return self._merit(deployment.plan, highest_rate(deployment))
        return self._merit(deployment.plan, deployment.carries(Users).max_concurrent_requests)

    def _merit(self, plan: MemoryPlan, of_one: float) -> Merit:
        context = 0 if has_lengths(self.question) else plan.settings.max_model_len
        return of_one > 0, context if of_one > 0 else 0, of_one * self._replicas(plan)

    def _replicas(self, plan: MemoryPlan) -> int:
        return self.question.gpu_count // plan.layout.gpus_per_replica

    def _deployed(self, resolved: Resolved, plan: MemoryPlan) -> Deployment:
        """Return a plan's replicas, timed where time decides, capped where they carry more by keeping pace."""
        question, load = self.question, lengths_of(self.question, plan)
        replica = deciding_replica(plan, question.timers, load, question.limits)
        own = self._deployment(resolved, plan, replica)
        if replica is None or not may_pace(resolved, load, question.limits):
            return own
        paced = [
            replace(self._deployment(capped, other.plan, other), is_paced=True)
            for capped, other in paced_replicas(
                resolved, replica, question.limits, lambda capped: self.plan_of(capped, plan.layout)
            )
        ]
        return max((own, *paced), key=lambda each: (self.merit(each), highest_rate(each))) if paced else own

    def _deployment(self, resolved: Resolved, plan: MemoryPlan, replica: Replica | None) -> Deployment:
        return Deployment(
            resolved=resolved,
            plan=plan,
            replica=replica,
            load=lengths_of(self.question, plan),
            limits=self.question.limits,
            replicas=self._replicas(plan),
        )


def _search(question: CapacityQuestion) -> _Search:
    return _Search(question=question, plan_of=partial(plan_at, question))


def _descending(merit: Merit) -> tuple[bool, int, float]:
    return not merit[0], -merit[1], -merit[2]

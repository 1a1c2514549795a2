"""The deployment that carries most on the GPUs given, over every layout and setting left open."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.choice import HOPED
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.pacing import may_pace, paced_replicas
from service.engine.fleet.planned import by_plans, held_of, legal_layouts, planned, surely_planned, surely_served
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.settings import Resolved, longest_request, resolve
from service.engine.fleet.space import Space, simplicity
from service.engine.fleet.variants import Planner, budgets_for, roomiest, under_budgets, variants
from service.engine.inputs import Layout, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.carried import deciding_replica, hoped, needs_time
from service.engine.time.demand import Arrivals, Users, kind_of
from service.engine.time.replica import Replica

OUTPUT_SHARE: Final = 8  # of a context, where the caller states no lengths
MOST_OUTPUT_TOKENS: Final = 512
SHORTEST_CONTEXT: Final = 2_048  # that is worth serving, where the caller states none [tokens]

Merit = tuple[bool, int, float]  # carries anything; context served where no lengths are stated; load. More is better
PlanOf = Callable[[Resolved, Layout], MemoryPlan]


def resolve_capacity(question: CapacityQuestion) -> Resolved:
    """Return the question's settings without a gap."""
    context = (question.input_tokens or 0) + (question.output_tokens or 0)
    longest = longest_request(question.load, context)
    return resolve(question.model, question.gpu, question.settings, question.rules, context, longest)


def largest(question: CapacityQuestion, resolved: Resolved) -> Deployment:
    """Return the deployment that carries most on the given GPUs.

    Requests of stated lengths are counted over every layout and open setting. Without lengths the engine starts as it
    does by itself, on the layout that serves the longest context, and of those on the one that holds most requests.

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
    search = _Search(question=question, plan_of=partial(_plan, question))
    best = search.best((resolved, layout) for layout in _usual_first(space, fitting))
    if not search.merit(best)[0] or _has_lengths(question):
        return search.better(resolved, fitting, best) or best
    return best


def _usual_first(space: Space, fitting: Sequence[Layout]) -> Sequence[Layout]:
    """Return the usual ones of some layouts; all of them where none is usual."""
    return [layout for layout in fitting if layout in space.usual] or fitting


def smallest_that_holds(question: CapacityQuestion, resolved: Resolved) -> int | None:
    """Return the fewest GPUs on which one request fits, whatever time it takes; None where no layout holds it."""
    search = _Search(question=question, plan_of=partial(_plan, question))
    for layout in legal_layouts(resolved, question.layout).usual:
        if roomiest(resolved, search.plans_of(layout)).holds_one_request:
            return layout.gpus_per_replica
    return None


def longest_context(question: CapacityQuestion, deployment: Deployment) -> int:
    """Return the longest request that a deployment's pool holds, up to the model's own longest. [tokens]."""
    resolved, model = deployment.resolved, question.model.architecture
    if question.settings.max_model_len is None:
        settings = replace(resolved.settings, max_model_len=model.default_max_model_len)
        resolved = replace(resolved, settings=settings)
    plan = planned(resolved, deployment.layout, question.input_tokens or 0, question.output_tokens or 0)
    return plan.kv_cache.estimated_max_model_len


def at_context(question: CapacityQuestion, resolved: Resolved, context_tokens: int) -> Deployment:
    """Return the given GPUs as they hold most requests of exactly this context, with the engine's own settings.

    Args:
        question: what was asked.
        resolved: its settings.
        context_tokens: of each request, and the longest that is served. [tokens]
    """
    settings = replace(resolved.settings, max_model_len=context_tokens)
    served = replace(resolved, settings=settings, shorten_to_fit=False)
    load = replace(_split(question.load, context_tokens), concurrent_requests=None, request_rate_per_s=None)
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

    def plans_of(self, layout: Layout) -> Planner:
        """Return what plans one layout under any settings."""
        question = self.question
        lengths = question.input_tokens or 0, question.output_tokens or 0

        def held(settings: Resolved) -> Callable[[int], int]:
            if _has_lengths(question):
                return held_of(settings, layout, *lengths)
            return by_plans(settings, lambda other: self.plan_of(other, layout))

        is_timed = needs_time(question.load, question.limits)
        budgets = budgets_for(question.limits, is_timed=is_timed)
        return Planner(lambda settings: self.plan_of(settings, layout), held, budgets, is_timed)

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
            tried = self._deployed(resolved, plan)
            known = tried if self.merit(tried) > self.merit(known) else known
        return known

    def better(self, resolved: Resolved, layouts: Iterable[Layout], known: Deployment) -> Deployment | None:
        """Return what carries truly more than what is known, with layouts or settings that are not the usual ones."""
        least = self.merit(known)
        found: Deployment | None = None
        for bound, layout in sorted(self._room(resolved, layouts), key=lambda entry: _descending(entry[0])):
            if bound <= least:
                break
            for settings, plan in self._settings(resolved, layout):
                if self._bound(plan) > least:
                    tried = self._deployed(settings, plan)
                    found, least = (tried, self.merit(tried)) if self.merit(tried) > least else (found, least)
        return found

    def _room(self, resolved: Resolved, layouts: Iterable[Layout]) -> Iterator[tuple[Merit, Layout]]:
        """Yield layouts by the most that any settings let them carry."""
        for layout in layouts:
            planner = self.plans_of(layout)
            plans = under_budgets(resolved, roomiest(resolved, planner), planner)
            yield max(map(self._bound, plans)), layout

    def _settings(self, resolved: Resolved, layout: Layout) -> Iterator[tuple[Resolved, MemoryPlan]]:
        yield resolved, self.plan_of(resolved, layout)
        yield from variants(resolved, self.plans_of(layout))

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
        context = 0 if _has_lengths(self.question) else plan.settings.max_model_len
        return of_one > 0, context if of_one > 0 else 0, of_one * self._replicas(plan)

    def _replicas(self, plan: MemoryPlan) -> int:
        return self.question.gpu_count // plan.layout.gpus_per_replica

    def _deployed(self, resolved: Resolved, plan: MemoryPlan) -> Deployment:
        """Return a plan's replicas, timed where time decides, capped where that keeps pace at higher rates."""
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
        return max((own, *paced), key=highest_rate) if paced else own

    def _deployment(self, resolved: Resolved, plan: MemoryPlan, replica: Replica | None) -> Deployment:
        return Deployment(
            resolved=resolved,
            plan=plan,
            replica=replica,
            load=lengths_of(self.question, plan),
            limits=self.question.limits,
            replicas=self._replicas(plan),
        )


def _descending(merit: Merit) -> tuple[bool, int, float]:
    return not merit[0], -merit[1], -merit[2]


def highest_rate(deployment: Deployment) -> float:
    """Return the highest rate of one replica within limits; 0 where nobody tells time. [1/s]."""
    replica = deployment.replica
    return 0.0 if replica is None else replica.most(Arrivals, deployment.limits).load


def _has_lengths(question: CapacityQuestion) -> bool:
    return question.input_tokens is not None or question.output_tokens is not None


def _plan(question: CapacityQuestion, resolved: Resolved, layout: Layout) -> MemoryPlan:
    """Return the plan for requests of the asked lengths, or of the longest context served, if it is worth serving."""
    if _has_lengths(question):
        return surely_planned(resolved, layout, question.input_tokens or 0, question.output_tokens or 0)
    stated = resolved.settings.max_model_len
    if not resolved.shorten_to_fit:
        return planned(resolved, layout, stated, 0)
    context = max(surely_served(resolved, layout), min(SHORTEST_CONTEXT, stated))
    served = replace(resolved, settings=replace(resolved.settings, max_model_len=context))
    return surely_planned(served, layout, context, 0)


def lengths_of(question: CapacityQuestion, plan: MemoryPlan) -> Load:
    """Return the asked load with the lengths that are timed: without any, a long prompt and a short answer."""
    if not _has_lengths(question):
        return _split(question.load, plan.context_tokens)
    return replace(question.load, input_tokens=question.input_tokens or 0, output_tokens=question.output_tokens or 0)


def _split(load: Load, context_tokens: int) -> Load:
    """Return a load whose requests fill a context, an eighth of it or 512 tokens with output."""
    prompt, answer = lengths_within(context_tokens)
    return replace(load, input_tokens=prompt, output_tokens=answer)


def lengths_within(context_tokens: int) -> tuple[int, int]:
    """Return the prompt and the answer of a request that fills a context. [tokens].

    >>> lengths_within(2_048), lengths_within(131_072)
    ((1792, 256), (130560, 512))
    """
    output = max(min(context_tokens // OUTPUT_SHARE, MOST_OUTPUT_TOKENS), 1)
    return max(context_tokens - output, 1), output

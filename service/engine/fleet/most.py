"""The search for what carries most on the GPUs given: bounds first, then one load, and only then all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from service.engine.fleet.ceilings import serving_at_best
from service.engine.fleet.choice import HOPED
from service.engine.fleet.deployments import Deployment, highest_rate
from service.engine.fleet.in_time import needs_room
from service.engine.fleet.lengths import has_lengths, lengths_of
from service.engine.fleet.pacing import may_pace, paced_replicas
from service.engine.fleet.planned import by_plans, held_of
from service.engine.fleet.questions import CapacityQuestion
from service.engine.fleet.rooms import rooms_of
from service.engine.fleet.settings import Resolved
from service.engine.fleet.space import simplicity
from service.engine.fleet.variants import Planner, batched_tokens, roomiest, under_budgets, variants
from service.engine.inputs import Layout, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.carried import carried_in_memory, deciding_replica, hoped, needs_time
from service.engine.time.demand import Arrivals, Demand, Users, kind_of
from service.engine.time.estimate import budgets_at_best
from service.engine.time.replica import Replica
from service.engine.time.roomy import may_carry
from service.engine.time.tries import Tries

Merit = tuple[bool, int, float]  # carries anything; context served where no lengths are stated; load. More is better
PlanOf = Callable[[Resolved, Layout], MemoryPlan]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The given GPUs on their way to a deployment."""

    question: CapacityQuestion
    plan_of: PlanOf
    is_paced: bool = True  # caps that keep pace are tried; without them as many run at once, answered less often
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

    def under(self, resolved: Resolved, layout: Layout, budgets: Sequence[int]) -> Iterator[Deployment]:
        """Yield one layout's deployments under some token budgets, each with the requests that it lets run."""
        for settings, plan in self._settings(resolved, layout, budgets):
            yield self._deployed(settings, plan)

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
            return self._best_above(least, share, self._capped(resolved, plan))

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
        if not has_lengths(question) or not needs_time(load, question.limits):
            return budgets
        load = replace(load, input_tokens=question.input_tokens or 0, output_tokens=question.output_tokens or 0)
        room_of = partial(rooms_of(resolved).of, layout, is_own=False)
        serving = serving_at_best(question.timers, resolved, layout, load, room_of)
        if serving is None:
            return budgets
        share = self._more(layout, load, least) if least[0] else Users(1)  # who is alone waits least
        return budgets_at_best(serving, budgets, share, question.limits)

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
        own, *paced = self._capped(resolved, plan)
        return self._better_of(paced, own)

    def _capped(self, resolved: Resolved, plan: MemoryPlan) -> Iterator[Deployment]:
        """Yield a plan's replicas with the engine's own cap on running requests, then with those that keep pace."""
        question, load = self.question, lengths_of(self.question, plan)
        replica = deciding_replica(plan, question.timers, load, question.limits)
        yield self._deployment(resolved, plan, replica)
        if replica is None or not self.is_paced or not may_pace(resolved, load, question.limits):
            return
        for capped, other in paced_replicas(
            resolved, replica, question.limits, lambda capped: self.plan_of(capped, plan.layout)
        ):
            yield replace(self._deployment(capped, other.plan, other), is_paced=True)

    def _best_above(self, least: Merit, share: Demand | None, tried: Iterator[Deployment]) -> Deployment | None:
        """Return the best of one layout's deployments, if it is truly better than what is known.

        Of a rate one load tells that, before the most is looked for; of users who share out unevenly among ranks and
        stages a few may break what more of them keep.

        Args:
            least: what is known.
            share: the least of a replica that makes it better; None where any does.
            tried: the deployments.
        """
        rate = share if isinstance(share, Arrivals) else None
        may_be = (
            each for each in tried if rate is None or each.replica is None or each.replica.carries(rate, each.limits)
        )
        first = next((each for each in may_be if self.merit(each) > least), None)
        return None if first is None else self._better_of(tried, first)

    def _better_of(self, others: Iterable[Deployment], known: Deployment) -> Deployment:
        """Return the best of one layout's deployments: of equal ones that which answers most, then the first."""
        for each in others:
            most = self.merit(known)
            if self._may_be_as_good(each, most):
                merit = self.merit(each)
                known = each if merit > most or (merit == most and self._answers_more(each, known)) else known
        return known

    def _may_be_as_good(self, deployment: Deployment, known: Merit) -> bool:
        """Return whether a deployment may be as good as what is known: by memory, of a rate whether it is better."""
        plan, replica = deployment.plan, deployment.replica
        if kind_of(deployment.load) is Users or replica is None:
            return self._merit(plan, carried_in_memory(plan).max_concurrent_requests) >= known
        share = self._more_than(known, plan, deployment.load)
        return share is None or replica.carries(share, deployment.limits)

    def _answers_more(self, deployment: Deployment, known: Deployment) -> bool:
        """Return whether a deployment carries a higher rate than what is known: told by one, before the most is."""
        rate, replica = highest_rate(known), deployment.replica
        may_answer = replica is not None and replica.carries(Arrivals.above(rate), deployment.limits)
        return may_answer and highest_rate(deployment) > rate

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

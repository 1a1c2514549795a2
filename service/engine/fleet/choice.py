"""The choice between deployments: every legal layout with every setting left open, the best of them by an aim.

    deployments = legal layouts x settings, each with the fewest replicas that carry the load
    chosen      = min by (GPUs, price), or by (price, GPUs paid); among equals by latency, then by the plainer layout

The engine's own settings on usual layouts come first; all others are kept where they are truly better. A layout is
planned, estimated and simulated only while a bound on what it may achieve is not worse than the best that is known.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, nextafter
from typing import Final

from service.engine.fleet.aims import NOTHING, Aim, Merit, aim_for, aim_of
from service.engine.fleet.ceilings import ENDLESS_SLOTS, Ceilings
from service.engine.fleet.deployments import Deployment, deployment_of, keeps_limits, plan_for, resolve_size
from service.engine.fleet.estimates import hoped_replicas, may_be_enough, quickly_alone_s, replica_for, serving_for
from service.engine.fleet.fastest import may_be_as_fast, rising_in_time, soonest_first
from service.engine.fleet.hopeless import Hopeless
from service.engine.fleet.in_time import budgets_in_time, needs_room
from service.engine.fleet.planned import held_of, layouts_of
from service.engine.fleet.questions import Objective, SizeQuestion
from service.engine.fleet.ranking import as_fast, as_fast_as, latency_s, most_worth
from service.engine.fleet.recalled import recalled
from service.engine.fleet.rooms import rooms_of
from service.engine.fleet.settings import Resolved
from service.engine.fleet.space import Space
from service.engine.fleet.turns import in_turn
from service.engine.fleet.variants import Planner, roomiest, under_budgets, variants
from service.engine.inputs import Layout
from service.engine.memory.plan import MemoryPlan
from service.engine.time.tries import Tries

HOPED: Final = 4.0  # times that kernels may be faster than the quick estimate


@dataclass(frozen=True, kw_only=True)
class _Search:
    """One question on its way to its deployments."""

    question: SizeQuestion
    resolved: Resolved
    space: Space
    aim: Aim
    hope: float
    is_sure: bool  # what is kept was simulated with exactly its share of the load
    ceilings: Ceilings
    first: tuple[Layout, ...]  # that are looked at with the engine's own settings
    hopeless: Hopeless
    tries: Tries = field(default_factory=Tries)
    kept: list[Deployment] = field(default_factory=list)

    def _plan_of(self, layout: Layout) -> Planner:
        load = self.question.load
        return Planner(
            lambda resolved: plan_for(self.question, resolved, layout),
            lambda resolved: held_of(resolved, layout, load.input_tokens, load.output_tokens),
            is_timed=not self.question.is_of_memory,
        )

    def _roomiest(self, layout: Layout) -> MemoryPlan:
        return roomiest(self.resolved, self._plan_of(layout))

    def bound(self, plan: MemoryPlan) -> Merit:
        """Return what no deployment of a plan is better than: by memory, and by an optimistic estimate of time."""
        if (hoped := hoped_replicas(self.question, plan, self.hope)) < inf and self.aim.objective == "latency":
            return quickly_alone_s(self.question, plan) / self.hope, 0.0
        return self.aim.merit(plan.layout, hoped)

    def _roomy_bound(self, plan: MemoryPlan) -> Merit:
        """Return what no deployment with as much room at most is better than, whatever its token budget."""
        return min(map(self.bound, under_budgets(self.resolved, plan, self._plan_of(plan.layout))))

    def _leaves_hope(self, layout: Layout) -> bool:
        """Return whether any settings of a layout do: with the most room, where the engine's own leave none."""
        if not self.ceilings.may_serve(layout, self.hope):
            return False
        own = plan_for(self.question, self.resolved, layout)
        return self.bound(own) < NOTHING or self._roomy_bound(self._roomiest(layout)) < NOTHING

    def at_best(self, layout: Layout, *, is_own: bool, known: Merit = NOTHING) -> Merit:
        """Return what no plan of a layout that is better than what is known is better than: told without one."""
        most = inf if self.question.is_of_memory else self.aim.most_replicas(layout, known, is_equal_welcome=False)
        return self.aim.merit(layout, self.ceilings.replicas_at_best(layout, most, is_own=is_own))

    def usual(self, known: Merit, *, is_equal_welcome: bool = True) -> Merit:
        """Look at usual layouts with the engine's own settings; return the best that is known then."""
        soonest_s = inf
        at_best, plan_of = partial(self.at_best, is_own=True), partial(plan_for, self.question, self.resolved)
        for bound, plan in self._steps(self.first, at_best, plan_of, self.bound):
            is_past = bound > known or (bound == known and not is_equal_welcome)
            if plan is None:  # not even one replica of what is left is good enough: none of it is planned
                if is_past and (self.kept or not is_equal_welcome):
                    break
            elif bound == NOTHING:
                self.hopeless.add(self.resolved, plan)
            elif is_past:
                break
            elif soonest_s == inf or may_be_as_fast(self.question, self.resolved, plan.layout, soonest_s):
                merit = self._tried(self.resolved, plan, known, is_equal_welcome=is_equal_welcome)
                known = min(known, merit)
                soonest_s = min(soonest_s, merit[0]) if self.aim.objective == "latency" else inf
        return known

    def look_at_all(self, at_most: Merit) -> None:
        """Look at usual layouts, and at what else is better; leave out what is worse than a bound."""
        first, second = known = self.usual(at_most)
        # What is as good is truly better than it, priced or not.
        worse = (first, nextafter(second, inf)) if second < inf else (nextafter(first, inf), second)
        self.others(known if self.kept else worse, is_told=known == NOTHING)

    def look_at_better(self, than: Merit) -> None:
        """Look at everything for what is truly better than a bound."""
        self.others(self.usual(than, is_equal_welcome=False))

    def others(self, known: Merit, *, is_told: bool = False) -> Merit:
        """Look at all else for what truly beats what is known; return the best then. What is hopeless may be told."""
        if self.aim.objective == "latency" and known[0] < inf:
            return self._sooner(known)
        for bound, _, layout in sorted(self._others_bounds(known, is_told=is_told)):
            if bound >= known and not (is_told and known == NOTHING):
                break
            if not (budgets := self._budgets(layout, known)) and is_told and known == NOTHING:
                self.hopeless.leave(layout)
            for resolved, plan in self._settings_of(layout, budgets) if budgets else ():
                if self.bound(plan) < known:
                    known = min(known, self._tried(resolved, plan, known, is_equal_welcome=False))
                if self.aim.objective == "latency" and known[0] < inf:
                    return self._sooner(known)
        return known

    def _sooner(self, known: Merit) -> Merit:
        """Look at all other layouts and settings for what answers sooner; return the best that is known then."""
        bests, layouts, most_of = [known], self.space.layouts, partial(most_worth, self.kept, self.resolved)
        for layout, tokens in soonest_first(self.question, self.resolved, layouts, lambda: bests[-1][0], most_of):
            for resolved, plan in self._settings_of(layout, (tokens,)):
                bests.append(min(bests[-1], self._tried(resolved, plan, bests[-1], is_equal_welcome=False)))
        return bests[-1]

    def _budgets(self, layout: Layout, known: Merit) -> Sequence[int]:
        """Return the token budgets with which a layout may be better than what is known. [tokens]."""
        most = self.aim.most_replicas(layout, known, is_equal_welcome=False)
        hoped = self.ceilings.budgets(layout, most)
        if self.question.is_of_memory or not hoped:
            return hoped if known < NOTHING or (hoped and self._roomy_bound(self._roomiest(layout)) < NOTHING) else ()
        serving = self.ceilings.serving(layout, is_own=False) or serving_for(self.question, self._roomiest(layout))
        if serving is not None and serving.slots == ENDLESS_SLOTS:  # only a plan tells of room
            serving = replace(serving, slots=layout.data_parallel_size * self._roomiest(layout).requests_in_cache)
        return budgets_in_time(self.question, serving, most, hoped)

    def _others_bounds(self, known: Merit, *, is_told: bool) -> Iterator[tuple[Merit, int, Layout]]:
        """Yield layouts with what no plan of theirs is better than: those that may be better, or that are told."""
        small = self.aim.sizes_better(self.space.sizes, 1 + self.question.headroom.spare_replicas, known)
        for index, layout in self.space.of_sizes(small):
            if (bound := self.at_best(layout, is_own=False, known=known)) < known or is_told:
                yield bound, index, layout

    def _settings_of(self, layout: Layout, budgets: Sequence[int] = ()) -> Iterator[tuple[Resolved, MemoryPlan]]:
        """Yield settings of one layout that were not looked at, of some token budgets or of all, the engine's first."""
        if layout not in self.first and (self.resolved.settings.max_num_batched_tokens in budgets or not budgets):
            yield self.resolved, plan_for(self.question, self.resolved, layout)
        needs_more = needs_room(self.question, plan_for(self.question, self.resolved, layout))
        yield from variants(self.resolved, self._plan_of(layout), budgets, needs_room=needs_more, rises=bool(budgets))

    def _tried(self, resolved: Resolved, plan: MemoryPlan, known: Merit, *, is_equal_welcome: bool) -> Merit:
        """Keep a plan's deployment if it is as good as what is known; return how good it is."""
        most = self.aim.most_replicas(plan.layout, known, is_equal_welcome=is_equal_welcome)
        replica = replica_for(self.question, plan)
        if self.hope <= HOPED and not may_be_enough(self.question, replica, most):
            return self.hopeless.nothing(resolved, plan, most)
        if not is_equal_welcome and self.tries.tell_of(replica):
            return NOTHING
        at_most, soonest_s = most, inf
        if self.aim.objective == "latency":
            at_most, soonest_s = min(most, most_worth(self.kept, self.resolved, plan.layout)), known[0]
        is_soon = as_fast_as(self.question, soonest_s)  # others are not chosen, and slower under a cap
        with self.tries.noting(replica):
            deployment = deployment_of(
                self.question, resolved, plan, at_most, is_sure=self.is_sure, replica=replica, may_pace_it=is_soon
            )
        if deployment is None or not deployment.is_feasible:
            return self.hopeless.nothing(resolved, plan, most)
        self.kept.append(deployment)
        if self.aim.objective == "latency":
            return latency_s(deployment, self.question), 0.0
        return self.aim.merit(plan.layout, deployment.replicas)

    def _by_weight(self, layout: Layout) -> Merit:
        fewest = self.ceilings.replicas_by_weight(layout)
        is_hopeful = fewest < inf and self.ceilings.may_serve(layout, self.hope)
        return self.aim.merit(layout, fewest) if is_hopeful else NOTHING

    def rising(self) -> Iterator[tuple[Merit, bool]]:
        """Yield bounds that no deployment is better than, rising, and whether each is the last, with the most room."""
        if self.aim.objective == "latency":
            is_hopeless = (not self._leaves_hope(layout) for layout in reversed(self.first))
            yield from rising_in_time(self.question, self.resolved, self.first, self.hope, is_hopeless)
            return
        for bound, plan in self._steps(self.space.layouts, self._by_weight, self._roomiest, self._roomy_bound):
            yield bound, plan is not None
            if plan is not None:
                return

    def _steps(
        self,
        layouts: Sequence[Layout],
        at_best: Callable[[Layout], Merit],
        plan_of: Callable[[Layout], MemoryPlan],
        bound_of: Callable[[MemoryPlan], Merit],
    ) -> Iterator[tuple[Merit, MemoryPlan | None]]:
        """Yield bounds on what is left, rising, as `in_turn`: by one replica, by what has room, by what is planned."""
        fewest = 1 + self.question.headroom.spare_replicas
        merits = ((self.aim.merit(layout, fewest), index) for index, layout in enumerate(layouts))
        first = merits if self.aim.objective == "gpus" and layouts is self.space.usual else iter(sorted(merits))
        return in_turn(first, lambda at: at_best(layouts[at]), lambda at: plan_of(layouts[at]), bound_of)

    def best(self) -> list[Deployment]:
        """Return what may be chosen: of what was kept, the best and their equals."""
        if self.aim.objective == "latency":
            return list(as_fast(self.kept, self.question, "latency")) if self.kept else []
        merits = [self.aim.merit(each.layout, each.replicas) for each in self.kept]
        return [each for each, merit in zip(self.kept, merits, strict=True) if merit == min(merits)]

    def found(self) -> tuple[Deployment, ...]:
        """Return what was kept; where nothing carries the load, what misses least."""
        return tuple(self.kept) or self.hopeless.explained(self._leaves_hope, self._settings_of)


def _search(question: SizeQuestion, aim: Aim, hope: float, *, is_sure: bool = False) -> _Search:
    resolved = resolve_size(question)
    space = layouts_of(question, resolved)
    return _Search(
        question=question,
        resolved=resolved,
        space=space,
        hopeless=Hopeless(question, resolved, usual=len(space.usual)),
        first=space.splitting if aim.objective == "latency" else space.usual,
        aim=aim,
        hope=hope,
        is_sure=is_sure,
        ceilings=Ceilings(question=question, resolved=resolved, rooms=rooms_of(resolved)),
    )


def _searched(question: SizeQuestion, aim: Aim, hope: float, look: Callable[[_Search], object]) -> _Search:
    """Return a search that is done, and whose best keep their limits at exactly their share of the load.

    That is simulated for the best alone. Where chance breaks a limit, which is rare, all are looked at anew.
    """
    search = _search(question, aim, hope)
    look(search)
    if all(keeps_limits(each, question) for each in search.best()):
        return search
    search = _search(question, aim, hope, is_sure=True)
    look(search)
    return search


def deployments(
    question: SizeQuestion, objective: Objective = "gpus", at_most: Merit = NOTHING, hope: float = HOPED
) -> tuple[Deployment, ...]:
    """Return the deployments that may be the best; none where all that carry the load are worse than a bound.

    Args:
        question: what to deploy.
        objective: what is looked for: GPUs, then price; price, then GPUs; or latency, for which nothing is left out.
        at_most: leave out what is worse than this.
        hope: how many times faster than the quick estimate kernels may be.
    """

    def found(aim: Aim) -> tuple[Deployment, ...]:
        return _searched(question, aim, hope, lambda search: search.look_at_all(at_most)).found()

    return recalled(question, hope, objective, at_most, found)


def better(question: SizeQuestion, than: Merit, aim: Aim | None = None) -> Merit:
    """Return how good the best deployment is that is truly better than a bound; the bound itself where none is.

    Equals are not looked at. Questions that differ in settings alone may share an aim: by default GPUs, then price.

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """

    def found(noting: Aim) -> tuple[Deployment, ...]:
        return tuple(_searched(question, noting, HOPED, lambda search: search.look_at_better(than)).kept)

    aim = aim or aim_of("gpus", question.gpu, question.offers)
    if aim.objective == "gpus" and aim.merit_of(1, 1 + question.headroom.spare_replicas) >= than:
        return than  # no replica takes less than one GPU
    kept = recalled(question, "better", aim.objective, than, found, aim)
    return min((aim.merit(each.layout, each.replicas) for each in kept), default=than)


def rising(question: SizeQuestion, objective: Objective = "gpus", hope: float = HOPED) -> Iterator[tuple[Merit, bool]]:
    """Yield bounds on every deployment, were kernels faster than estimated by a factor: rising, the last final."""
    return _search(question, aim_for(question, objective), hope).rising()

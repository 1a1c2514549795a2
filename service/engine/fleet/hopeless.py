"""What carries nothing, kept to say why: what misses least is told, and layouts that miss by more are never planned.

    missed by = (bytes that are missing, times that one request alone takes what the tighter limit allows)

A request alone takes as long under all settings of a layout, but for the steps in which a token budget has its prompt
read. Where as many as are told hold it and take less, a layout whose settings nobody tried is not among them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from service.engine.fleet.aims import NOTHING, Merit
from service.engine.fleet.ceilings import timed_as
from service.engine.fleet.deployments import Deployment, deployment_of
from service.engine.fleet.estimates import estimated_excess, excess_of
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.settings import Resolved
from service.engine.inputs import Layout
from service.engine.memory.plan import MemoryPlan

Planned = tuple[Resolved, MemoryPlan]
SettingsOf = Callable[[Layout], Iterable[Planned]]
# Of layouts that an estimate calls too slow, those looked at to say by how much.
MOST_EXPLAINED: Final = 4
MOST_LOOKED_AT: Final = 32  # of layouts too slow under any settings, for one that memory does not rule out


@dataclass(frozen=True, slots=True)
class Hopeless:
    """Settings of one question that carry nothing, and layouts of which none were tried, in the order of a search."""

    question: SizeQuestion
    resolved: Resolved
    usual: int  # layouts [count]
    _seen: list[Planned | Layout] = field(default_factory=list)

    def add(self, resolved: Resolved, plan: MemoryPlan) -> None:
        """Take down settings that carry nothing."""
        self._seen.append((resolved, plan))

    def nothing(self, resolved: Resolved, plan: MemoryPlan, most_replicas: float) -> Merit:
        """Return that settings are as good as nothing; take them down where that is so of any number of replicas."""
        if most_replicas == inf:
            self.add(resolved, plan)
        return NOTHING

    def leave(self, layout: Layout) -> None:
        """Take down a layout that keeps the limits under no token budget: its settings are not looked at for now."""
        self._seen.append(layout)

    def explained(self, leaves_hope: Callable[[Layout], bool], settings_of: SettingsOf) -> tuple[Deployment, ...]:
        """Return deployments that carry nothing, those that miss least.

        None where fewer settings than there are usual layouts do so: what takes too much does carry the load. None
        within a budget either: what takes more than that stands among them, and may carry it.

        Args:
            leaves_hope: whether any settings of a layout that was left may carry a load. [yes or no]
            settings_of: these settings.
        """
        if not self.question.budget.is_free:
            return ()
        missing = list(self._that_may_miss_least(leaves_hope, settings_of))
        if len(missing) < self.usual:
            return ()
        ordered = sorted(enumerate(missing), key=lambda entry: (*self._missed_by(entry[1][1]), entry[0]))
        tried = [deployment_of(self.question, *planned) for _, planned in ordered[:MOST_EXPLAINED]]
        return tuple(deployment for deployment in tried if deployment is not None)

    def _that_may_miss_least(self, leaves_hope: Callable[[Layout], bool], settings_of: SettingsOf) -> Iterator[Planned]:
        """Yield what was tried, and settings of those layouts that were left and may miss as little."""
        tried = [each for each in self._seen if not isinstance(each, Layout)]
        most = self._excess_told(tried) if len(tried) >= self.usual else inf
        left = {each: self._excess(each) for each in self._seen if isinstance(each, Layout)}
        for each in self._seen:
            if not isinstance(each, Layout):
                yield each
            elif each in left and left[each] <= most and leaves_hope(each):
                del left[each]
                yield from settings_of(each)
        holding = (estimated_excess(self.question, plan) for _, plan in tried if plan.holds_one_request)
        yield from self._that_hold_a_request(left, settings_of, min(holding, default=inf))

    def _that_hold_a_request(
        self, left: Mapping[Layout, float], settings_of: SettingsOf, below: float
    ) -> Iterator[Planned]:
        """Yield settings that hold a request and are too slow by less, of layouts that leave no hope.

        Args:
            left: these layouts, and by how much each is too slow at least. [times]
            settings_of: settings of a layout.
            below: by how much the fastest that was tried is too slow. [times]
        """
        for layout in sorted(left, key=lambda each: left[each])[:MOST_LOOKED_AT]:
            if left[layout] >= below:  # whatever its budget
                return
            for resolved, plan in settings_of(layout):
                excess = estimated_excess(self.question, plan) if plan.holds_one_request else inf
                if excess < below:
                    below = excess
                    yield resolved, plan

    def _excess(self, layout: Layout) -> float:
        """Return how many times what the tighter limit allows one request alone takes."""
        return excess_of(self.question, timed_as(self.resolved, layout))

    def _excess_told(self, tried: Sequence[Planned]) -> float:
        """Return by how much the last misses of those tried that would be told; infinite where memory is missing."""
        excesses = sorted(excess for missing, excess in (self._missed_by(plan) for _, plan in tried) if not missing)
        return excesses[MOST_EXPLAINED - 1] if len(excesses) >= MOST_EXPLAINED else inf

    def _missed_by(self, plan: MemoryPlan) -> tuple[int, float]:
        return plan.shortfall_bytes, estimated_excess(self.question, plan)

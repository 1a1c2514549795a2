"""Sizes of experts whose kernels were measured, and which of them are nearest to a model's.

distance = |log of what a token multiplies| + |log of what all experts hold|      of the one over the other
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from math import log
from typing import Any

import yaml

from service.engine.layers import NetworkShape
from service.performance.restated import Shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredExperts:
    """Experts whose kernels were measured, and the width of the model around them."""

    hidden_size: int
    expert_columns: int
    num_experts: int
    num_experts_per_tok: int

    def within(self, shapes: Shapes) -> Shapes:
        """Return a model's sizes with these experts in place of its own."""
        own = shapes.experts
        changed = replace(
            own,
            num_experts=self.num_experts,
            num_experts_per_tok=self.num_experts_per_tok,
            expert_columns=self.expert_columns,
        )
        networks = [changed if network == own else network for network in shapes.networks]
        return replace(shapes, hidden_size=self.hidden_size, networks=networks, experts=changed)

    @property
    def told(self) -> str:
        """Return what they are called."""
        return f"{self.num_experts} experts of {self.expert_columns} columns in {self.hidden_size}"

    def are_those_of(self, shapes: Shapes) -> bool:
        """Return whether they are a model's own."""
        return self.within(shapes) == shapes

    def distance(self, hidden_size: int, experts: NetworkShape) -> float:
        """Return how far apart they are: by what a token multiplies, and by what all of them hold."""
        one = self.hidden_size * self.expert_columns
        other = hidden_size * experts.expert_columns
        active = one * self.num_experts_per_tok / (other * experts.num_experts_per_tok)
        return abs(log(active)) + abs(log(one * self.num_experts / (other * experts.num_experts)))


def were_measured(shapes: Shapes) -> bool:
    """Return whether a model has no experts but such as were measured."""
    return not shapes.has_experts or any(each.are_those_of(shapes) for each in _measured())


def nearest(hidden_size: int, experts: NetworkShape) -> Sequence[MeasuredExperts]:
    """Return measured experts, the nearest first; a model's own, where they were measured, before all."""
    return sorted(_measured(), key=lambda each: each.distance(hidden_size, experts))


@lru_cache(maxsize=1)
def _measured() -> tuple[MeasuredExperts, ...]:
    text = files("service.performance").joinpath("data/measured_experts.yaml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = yaml.load(text, Loader=yaml.CSafeLoader)["experts"]
    return tuple(MeasuredExperts(**row) for row in rows)

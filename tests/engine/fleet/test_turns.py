"""Layouts take their turn by what bounds them."""

from collections.abc import Mapping
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from service.engine.fleet.aims import Merit
from service.engine.fleet.turns import in_turn

COUNTS = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))


def taken(bounds: Mapping[int, tuple[Merit, Merit, Merit]], planned: list[int]) -> list[tuple[Merit, int | None]]:
    def plan_of(index: int) -> Any:
        planned.append(index)
        return index

    turns = in_turn(
        iter(sorted((first, index) for index, (first, _, _) in bounds.items())),
        lambda index: bounds[index][1],
        plan_of,
        lambda plan: bounds[cast("int", plan)][2],
    )
    return [(bound, cast("int | None", plan)) for bound, plan in turns]


@given(counts=st.lists(COUNTS, max_size=6))
def test_bounds_rise_and_plans_come_in_the_order_of_their_own(counts: list[tuple[int, int, int]]) -> None:
    bounds = {index: tuple((float(sum(count[:end])), 0.0) for end in (1, 2, 3)) for index, count in enumerate(counts)}

    turns = taken(cast("Mapping[int, tuple[Merit, Merit, Merit]]", bounds), [])

    assert [bound for bound, _ in turns] == sorted(bound for bound, _ in turns)
    told = [index for _, index in turns if index is not None]
    assert told == sorted(bounds, key=lambda index: (bounds[index][2], index))


def test_a_layout_is_not_planned_while_another_may_be_better() -> None:
    planned: list[int] = []
    near, far = (1.0, 0.0), (9.0, 0.0)

    turns = taken({0: (near, far, far), 1: (near, near, near)}, planned)

    assert planned == [1, 0]
    assert [index for _, index in turns if index is not None] == [1, 0]

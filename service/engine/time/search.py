"""The search for the largest load that is carried within limits."""

from collections.abc import Callable, Iterator

from service.engine.time.grid import Grid
from service.engine.time.results import Bracket, Violation


def search(grid: Grid, breaks: Callable[[float], Violation | None]) -> Iterator[Bracket]:
    """Yield each step of the search; the last one is what it finds.

    Args:
        grid: the loads to visit.
        breaks: what a load breaks that there is room for; None where it is carried.
    """
    passes, fails, violates = grid.passes, grid.fails, grid.violates
    yield grid.bracket(passes, fails, violates)
    while (step := grid.following(passes, fails)) is not None:
        amount = grid.amount(step)
        broken = "throughput" if amount > grid.most else breaks(amount)
        if broken is None:
            passes = step
        else:
            fails, violates = step, broken
        yield grid.bracket(passes, fails, violates)

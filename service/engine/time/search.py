"""The search for the largest load that is carried within limits."""

from collections.abc import Callable
from dataclasses import dataclass

from service.engine.time.grid import Grid
from service.engine.time.results import Bracket, Violation

Breaks = Callable[[float], Violation | None]


@dataclass(frozen=True, slots=True)
class _Gap:
    """Two numbers of a grid: one that passes and one that fails, and what it fails by."""

    passes: int
    fails: int | None
    violates: Violation | None

    def with_tried(self, step: int, broken: Violation | None) -> "_Gap":
        """Return the gap with one more number known."""
        return _Gap(step, self.fails, self.violates) if broken is None else _Gap(self.passes, step, broken)


def search(grid: Grid, roughly: Breaks, breaks: Breaks) -> Bracket:
    """Return the largest load that passes: found by small samples, and confirmed by large ones around it.

    Args:
        grid: the loads to visit.
        roughly: what a load breaks, by a small sample; None where it is carried.
        breaks: the same by a sample as large as its percentile needs.
    """
    gap = _narrowed(grid, _Gap(grid.passes, grid.fails, grid.violates), roughly)
    if grid.passes < gap.passes:
        gap = _narrowed(grid, _around(grid, gap.passes, breaks), breaks)
    return grid.bracket(gap.passes, gap.fails, gap.violates)


def _narrowed(grid: Grid, gap: _Gap, breaks: Breaks) -> _Gap:
    while (step := grid.following(gap.passes, gap.fails)) is not None:
        gap = gap.with_tried(step, _broken(grid, step, breaks))
    return gap


def _broken(grid: Grid, step: int, breaks: Breaks) -> Violation | None:
    """Return what a load breaks, room included."""
    amount = grid.amount(step)
    return "throughput" if amount > grid.most else breaks(amount)


def _around(grid: Grid, guess: int, breaks: Breaks) -> _Gap:
    """Return a gap near a guess: from it up to a number that fails, or down to one that passes, in growing strides."""
    gap = _Gap(grid.passes, grid.fails, grid.violates).with_tried(guess, _broken(grid, guess, breaks))
    rises, stride = gap.passes == guess, grid.finest(guess)
    step = guess
    while (gap.fails is None or gap.fails - gap.passes > stride) and (gap.passes >= guess) == rises:
        step = step + stride if rises else step - stride
        if step <= grid.passes or (gap.fails is not None and step >= gap.fails):
            break
        tried = gap.with_tried(step, _broken(grid, step, breaks))
        if (tried.passes == step) != rises:
            return tried
        gap, stride = tried, 2 * stride
    return gap

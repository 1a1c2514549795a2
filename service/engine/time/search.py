"""The search for the largest load that is carried within limits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from service.engine.time.grid import Grid
from service.engine.time.results import Bracket, Violation

Breaks = Callable[[float], Violation | None]

# Steps from a guess to the next load that is tried: of an estimate, and of what a small sample shows.
STRIDE_OF_AN_ESTIMATE: Final = 4
STRIDE_OF_A_SAMPLE: Final = 1


@dataclass(frozen=True, slots=True)
class _Gap:
    """Two numbers of a grid: one that passes and one that fails, and what it fails by."""

    passes: int
    fails: int
    violates: Violation | None

    def with_tried(self, step: int, broken: Violation | None) -> "_Gap":
        """Return the gap with one more number known."""
        return _Gap(step, self.fails, self.violates) if broken is None else _Gap(self.passes, step, broken)


def falling_to_most(grid: Grid, guess: float, roughly: Breaks) -> Iterator[float]:
    """Yield loads no less than about the largest that passes, by small samples alone: falling, that one last.

    The first is looked for above the guess, where most likely it fails: often nobody asks for another.
    """
    gap, above = None, grid.at_least(guess) + STRIDE_OF_AN_ESTIMATE
    for each in _narrowing(grid, above, STRIDE_OF_AN_ESTIMATE, roughly):
        if gap is not None and each.fails < gap.fails:
            yield grid.amount(each.fails)
        gap = each
    yield grid.amount(gap.passes if gap else grid.passes)


def search(grid: Grid, guess: float, roughly: Breaks, breaks: Breaks) -> Bracket:
    """Return the largest load that passes: found by small samples, and confirmed by large ones around it.

    Args:
        grid: the loads to visit.
        guess: about the largest load that passes.
        roughly: what a load breaks, by a small sample; None where it is carried.
        breaks: the same by a sample as large as its percentile needs.
    """
    gap = _narrowed(grid, grid.at_least(guess), STRIDE_OF_AN_ESTIMATE, roughly)
    if grid.passes < gap.passes:
        gap = _narrowed(grid, gap.passes, STRIDE_OF_A_SAMPLE, breaks)
    return grid.bracket(gap.passes, gap.fails, gap.violates)


def _narrowed(grid: Grid, guess: int, stride: int, breaks: Breaks) -> _Gap:
    """Return neighbours of which one passes and one fails."""
    *_, last = _narrowing(grid, guess, stride, breaks)
    return last


def _narrowing(grid: Grid, guess: int, stride: int, breaks: Breaks) -> Iterator[_Gap]:
    """Yield ever smaller gaps, down to neighbours: away from a guess in growing strides, then by halves."""
    gap, step = _Gap(grid.passes, grid.fails, grid.violates), guess
    yield gap
    has_passed = has_failed = False
    while gap.fails - gap.passes > 1:
        if has_passed and has_failed:
            step = (gap.passes + gap.fails) // 2
        step = min(max(step, gap.passes + 1), gap.fails - 1)
        gap = gap.with_tried(step, breaks(grid.amount(step)))
        yield gap
        has_passed, has_failed = has_passed or gap.passes == step, has_failed or gap.fails == step
        step, stride = step + (stride if has_passed else -stride), 2 * stride

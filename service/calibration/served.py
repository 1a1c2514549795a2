"""Published serving runs beside our times: errors by source, engine, GPU and quantity, and verdicts on open loops."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from service.calibration.fits.judged import times_off
from service.calibration.logs.rows import Row, Skipped, without_copies
from service.calibration.serving import Measured, Run, measured_pairs, resolve_run
from service.calibration.verdicts import keeps_limits, saturated, saturates
from service.catalog.snapshot import Snapshot
from service.engine import Timing, deployed
from service.performance.known import MEASURED
from service.performance.timers import KernelTimers

MEDIAN_PERCENT = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Errors and verdicts, by the subject of a line of the report."""

    errors: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    verdicts: dict[str, list[bool]] = field(default_factory=dict)


def served_figures(rows: Sequence[Row], catalog: Snapshot, skipped: list[Skipped]) -> Figures:
    """Return every figure of every run that can be simulated; the others are added to what is skipped."""
    timers, figures = KernelTimers(), Figures()
    own, copied = without_copies(rows)
    skipped += copied
    for row in own:
        run = resolve_run(row, catalog)
        if isinstance(run, Skipped):
            skipped.append(run)
            continue
        timing = timers.timer(deployed(run.plan))
        if timing is not None:
            _compare(run, timing, figures)
    return figures


def _compare(run: Run, timing: Timing, figures: Figures) -> None:
    for pair in measured_pairs(run, timing):
        if pair.percent in (None, MEDIAN_PERCENT):
            error = (pair.case, pair.error_fraction)
            figures.errors.setdefault(_subject(pair), []).append(error)
            if pair.quantity != "throughput":
                within = times_off(pair) <= pair.expected_error_fraction
                figures.verdicts.setdefault(f"serving, {pair.source}: within the expected error", []).append(within)
    ours = saturates(run, timing)
    if ours is not None:
        right = ours == saturated(run)
        figures.verdicts.setdefault(f"serving, {run.log.source}: whether arrivals pile up", []).append(right)
    kept = keeps_limits(run, timing)
    if kept is not None:
        figures.verdicts.setdefault("serving: limits are kept by what is sized at 0.9", []).append(kept)


def _subject(pair: Measured) -> str:
    basis = "" if pair.basis == MEASURED else ", roofline"
    middle = "mean" if pair.percent is None else "median"
    return f"serving, {pair.source}, {pair.engine} on {pair.gpu}{basis}: {pair.quantity} ({middle})"

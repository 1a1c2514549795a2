"""Writes `calibration.yaml`: efficiencies of the roofline from measured kernels, factors from serving runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, Final

import yaml

from service.calibration.fits.serving import (
    ANY,
    Case,
    Key,
    case_errors,
    cases_of,
    class_left_out,
    errors_of,
    fit_classes,
    halves,
    overall,
    with_fallback,
)
from service.calibration.logs.rows import rows_of
from service.calibration.serving import Measured, Run, resolve_run
from service.catalog.snapshot import Snapshot
from service.performance.tables import Factors
from service.performance.timers import MEASURED, ROOFLINE

SERVING: Final = "serving.jsonl"
SIGNIFICANT_DIGITS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Rows for the file, and what was found on the way, for a terminal."""

    rows: tuple[dict[str, Any], ...]
    text: str


def calibrate(folder: Path, catalog: Snapshot, today: date) -> Calibration:
    """Return the factors of every class, judged on groups they were not fitted on.

    Args:
        folder: a directory with `serving.jsonl`.
        catalog: the models and GPUs that the runs name.
        today: the date to state.
    """
    resolved = [resolve_run(row, catalog) for row in rows_of(folder / SERVING)]
    runs = [run for run in resolved if isinstance(run, Run)]
    lines: list[str] = [f"{len(runs)} of {len(resolved)} runs can be simulated"]
    rows: list[dict[str, Any]] = []
    for basis in (MEASURED, ROOFLINE):
        cases = cases_of(runs, basis)
        fitting, judging = halves(cases)
        half = fit_classes(fitting)
        seen = with_fallback(half, judging)
        judged = errors_of([case for case in judging if case.key in seen], seen)
        lines += _lines(f"{basis}, groups fitted on", errors_of(fitting, with_fallback(half, fitting)))
        lines += _lines(f"{basis}, groups left out", judged)
        rows += _rows(basis, cases, judged, fit_classes(cases, half), today)
    return Calibration(rows=tuple(rows), text="\n".join(lines) + "\n")


def _lines(subject: str, pairs: Sequence[Measured]) -> list[str]:
    groups: dict[tuple[str, str, str], list[float]] = {}
    for pair in pairs:
        groups.setdefault((pair.engine, pair.gpu, pair.quantity), []).append(abs(pair.error_fraction))
    return [
        f"{subject}: {engine} on {gpu}, {quantity}: {len(sizes)} figures, median {100 * median(sizes):.1f} %, "
        f"p90 {100 * sorted(sizes)[min(int(0.9 * len(sizes)), len(sizes) - 1)]:.1f} %"
        for (engine, gpu, quantity), sizes in sorted(groups.items())
    ]


def _rows(
    basis: str,
    cases: Sequence[Case],
    judged: Iterable[Measured],
    factors: Mapping[Key, Factors],
    today: date,
) -> list[dict[str, Any]]:
    """Return the rows of one basis, the most specific first, the one for everything last."""
    key_of = {case.run.log.case: case.key for case in cases}
    unseen: dict[Key, list[Measured]] = {}
    for pair in judged:
        unseen.setdefault(key_of[pair.case], []).append(pair)
    strange = class_left_out(cases, factors)
    rows = []
    for key in sorted(factors, key=lambda name: (name.count(ANY), name)):
        own = [case for case in cases if case.key == key]
        errors = case_errors(unseen.get(key, [])) or (case_errors(errors_of(own, factors)) if own else [])
        expected = median(errors) if errors else strange.get(key[1], max(strange.values()))
        rows.append(_row(key, factors[key], len(own), len(errors), expected, today))
    everything = (basis, ANY, ANY, ANY, ANY)
    return [*rows, _row(everything, overall(factors), 0, 0, max(strange.values()), today)]


def _row(key: Key, factors: Factors, fitted: int, judged: int, expected: float, today: date) -> dict[str, Any]:
    basis, engine, version, generation, kernels = key
    return {
        "basis": basis,
        "engine": engine,
        "rules_versions": version,
        "gpu_architecture": generation,
        "kernels": kernels,
        "expected_error_fraction": round(expected, 3),
        "factors": {name: float(f"{value:.{SIGNIFICANT_DIGITS}g}") for name, value in asdict(factors).items()},
        "fit": {"runs": fitted, "judged_on_runs": judged, "date": today.isoformat()},
    }


def written(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Replace the rows of a calibration file; what else it holds stays."""
    text = path.read_text(encoding="utf-8")
    head, _, _ = text.partition("rows:\n")
    body = yaml.safe_dump({"rows": [dict(row) for row in rows]}, sort_keys=False, default_flow_style=None, width=400)
    path.write_text(head + body, encoding="utf-8")

"""Writes `calibration.yaml`: the factors of every class, with the error of runs that their fit had not seen."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, Final, TypeVar

import yaml

from service.calibration.fits.judged import (
    Judged,
    by_class,
    cold_errors,
    coverage,
    fit,
    judged,
    times_off,
    told_errors,
    told_without,
)
from service.calibration.fits.kinds import by_kind
from service.calibration.fits.priors import Key, start_of
from service.calibration.fits.serving import (
    ANY,
    Case,
    are_stand_ins,
    cases_of,
    hide_hosts,
    overall,
    teaches,
    typical,
)
from service.calibration.fits.standing import Standing
from service.calibration.logs.cookbook import cookbook_rows
from service.calibration.logs.engines import LOGS
from service.calibration.logs.rows import rows_at_hand, without_copies
from service.calibration.serving import Measured, Run, resolve_run
from service.catalog.engine_rules import rules_versions
from service.catalog.snapshot import Snapshot
from service.engine import EngineName
from service.performance.fitted import BESIDE, MOST_ERROR, SPARSE, SPREAD, family_of
from service.performance.known import MEASURED, ROOFLINE
from service.performance.tables import Factors

SERVING: Final = "serving.jsonl"
FILES: Final = (SERVING, "serving_2.jsonl")
SIGNIFICANT_DIGITS: Final = 4
PROCESSES: Final = 2
SUBJECT: Final = ("basis", "source", "engine", "gpu", "quantity")  # of what a source that was left out tells
ROUNDS: Final = 2
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Rows for the file, and what was found on the way, for a terminal."""

    rows: tuple[dict[str, Any], ...]
    left_out: tuple[dict[str, Any], ...]
    text: str


def calibrate(
    folder: Path, catalog: Snapshot, today: date, engine: EngineName | None = None, kept: Standing | None = None
) -> Calibration:
    """Return the factors of every class, or of one engine's, judged on sources or groups they were not fitted on.

    Args:
        folder: a directory with `serving.jsonl`, and others of `FILES`.
        catalog: the models and GPUs that the runs name.
        today: the date to state.
        engine: whose classes alone are fitted; what any engine's tell of one that nobody measured is not, then.
        kept: constants that stand, of which none is fitted again: they are judged alone.
    """
    own, copied = without_copies([*rows_at_hand(folder, FILES), *cookbook_rows()])
    resolved = [resolve_run(row, catalog) for row in own]
    runs = [run for run in resolved if isinstance(run, Run) and engine in (None, run.log.engine)]
    lines: list[str] = [f"{len(runs)} of {len(own) + len(copied)} runs can be simulated"]
    rows: list[dict[str, Any]] = []
    unseen: list[dict[str, Any]] = []
    timed: set[str] = set()  # with measured kernels, by which they are answered
    for basis in (MEASURED, ROOFLINE):
        cases = cases_of(runs, basis)
        outcomes = _judged(cases, kept)
        unseen += _left_out(basis, outcomes, timed)
        timed |= {case.run.log.case for case in cases}
        rows += [row for row in _rows(basis, outcomes, today) if engine in (None, row["engine"])]
        latencies, paces = coverage(outcomes)
        lines.append(
            f"{basis}: told without their source, {latencies:.0%} of latencies are within, {paces:.0%} of paces"
        )
    lines += [" ".join(f"{name}={value}" for name, value in row.items()) for row in unseen]
    rows = rows if kept is None else kept.kept(rows)
    return Calibration(rows=tuple(rows), left_out=tuple(unseen), text="\n".join(lines) + "\n")


Handed = Mapping[Key, tuple[list[Case], Factors, Factors | None]]
# What a forked process was handed, by the fork itself: runs and tables are too large to be sent to it.
_handed: Handed = MappingProxyType({})


def _take(handed: Handed) -> None:
    global _handed  # noqa: PLW0603 - of one process, set once as it begins
    _handed = handed


def _judged(cases: Sequence[Case], kept: Standing | None = None) -> list[Judged]:
    """Return every class, fitted twice unless its constants are kept, and then judged, in processes side by side.

    The first fit is held near its start, the second near the median of the engine's other classes. A class of runs that
    teach nothing is none of these others: it has their constants, and is judged by them. One that stand-ins alone tell
    is none of them either.
    """
    classes = by_class(cases)
    told = {key for key, own in classes.items() if are_stand_ins(own)}
    hidden = {key for key, own in classes.items() if hide_hosts(own)}
    taught = {key: own for key, own in classes.items() if any(teaches(case) for case in own)}
    stand = {} if kept is None else kept.fitted
    factors = {key: stand[key] for key in taught if key in stand}
    for _ in range(ROUNDS if kept is None else 0):
        centres = {key: _like(key, factors, told, hidden) for key in taught}
        factors = _side_by_side(_fit_one, taught, centres, factors)
    kinds = by_kind({key: each for key, each in factors.items() if key[0] == ROOFLINE})
    centres = {
        key: _like(key, factors, told, hidden) if key in taught else _untaught(key, factors, kinds, hidden)
        for key in classes
    }
    return list(_side_by_side(_judge_one, classes, centres, factors).values())


def _untaught(
    key: Key, factors: Mapping[Key, Factors], kinds: Mapping[Key, Factors], hidden: Collection[Key] = ()
) -> Factors:
    """Return the constants that answer for a class without runs: of its family's kind, of its kind, of its engine."""
    basis, engine, _, generation, kind = key
    places = ((basis, engine, ANY, each, kind) for each in (family_of(generation), ANY))
    return next((kinds[place] for place in places if place in kinds), typical(factors, engine, hidden=hidden))


def _like(key: Key, factors: Mapping[Key, Factors], told: Collection[Key], hidden: Collection[Key]) -> Factors:
    """Return the median constants of an engine's other classes, those that stand-ins tell left out."""
    others = {other: each for other, each in factors.items() if other != key and other not in told}
    return typical(others, key[1], start_of(key), hidden)


def _side_by_side(
    work: Callable[[Key], Result],
    classes: Mapping[Key, list[Case]],
    centres: Mapping[Key, Factors],
    factors: Mapping[Key, Factors],
) -> dict[Key, Result]:
    handed = {key: (own, centres[key], factors.get(key)) for key, own in classes.items()}
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("fork"), initializer=_take, initargs=(handed,)) as pool:
        keys = sorted(handed)
        return dict(zip(keys, pool.map(work, keys), strict=True))


def _fit_one(key: Key) -> Factors:
    own, like, begin = _handed[key]
    return fit([case for case in own if teaches(case)], like, begin)


def _judge_one(key: Key) -> Judged:
    own, like, factors = _handed[key]
    return judged(key, own, like, factors or like)


def _left_out(basis: str, outcomes: Sequence[Judged], timed: Collection[str]) -> list[dict[str, Any]]:
    """Return how each source's runs fared, by engine, GPU and quantity, under fits that had not seen them.

    Those that are answered from measured kernels are told apart: they judge a roofline, and no answer. Each figure is
    held against what would be told of its class without its source.
    """
    groups: dict[tuple[str, str, str, str, str], list[tuple[float, bool]]] = {}
    told = told_without(outcomes)
    for outcome in outcomes:
        for pair in (*outcome.unseen, *outcome.unfit):
            name = (BESIDE if pair.case in timed else basis, pair.source, pair.engine, pair.gpu, pair.quantity)
            groups.setdefault(name, []).append(
                (abs(pair.error_fraction), times_off(pair) <= told[outcome.key, pair.source][0])
            )
    return [_left_out_row(name, sorted(figures)) for name, figures in sorted(groups.items())]


def _left_out_row(name: tuple[str, str, str, str, str], figures: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    sizes = [size for size, _ in figures]
    return {
        **dict(zip(SUBJECT, name, strict=True)),
        "figures": len(sizes),
        "median_error_fraction": round(median(sizes), 3),
        "p90_error_fraction": round(sizes[min(int(0.9 * len(sizes)), len(sizes) - 1)], 3),
        "within_expected_fraction": round(sum(within for _, within in figures) / len(figures), 3),
    }


def _rows(basis: str, outcomes: Sequence[Judged], today: date) -> list[dict[str, Any]]:
    """Return the rows of one basis, the most specific first, the one for everything last."""
    factors = {outcome.key: outcome.factors for outcome in outcomes if outcome.runs and not outcome.is_of_stand_ins}
    rows = [
        _row(outcome.key, outcome.factors, outcome.runs, outcome.unseen, told_errors(outcome, outcomes), today)
        for outcome in outcomes
        if outcome.runs
    ]
    rows += _stand_ins(rows)
    hidden = {outcome.key for outcome in outcomes if outcome.hides_host}
    unseen = {
        (basis, engine, ANY, ANY, ANY): typical(factors, engine, hidden=hidden)
        for engine in sorted({key[1] for key in factors})
    }
    kinds = by_kind(factors) if basis == ROOFLINE else {}
    unseen |= {key: each for key, each in kinds.items() if key not in factors}  # a family's only generation has its own
    for key, like in unseen.items():
        own = [outcome for outcome in outcomes if outcome.key[1] == key[1]]
        rows.append(_row(key, like, 0, (), cold_errors(own), today))
    rows.sort(key=_specific_first)
    everything = (basis, ANY, ANY, ANY, ANY)
    return [*rows, _row(everything, overall(factors), 0, (), cold_errors(outcomes), today)]


def _stand_ins(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows for classes that a version has no runs of: the constants of the newest version before it.

    None cross over from engines that were built ahead, whose kernels and executor were others.
    """
    own = {_place(row) for row in rows}
    added = {
        _place(stand_in): stand_in
        for row in rows  # older versions first
        for stand_in in ({**row, "rules_versions": version} for version in _later_versions(row))
    }
    return [stand_in for place, stand_in in added.items() if place not in own]


def _place(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("basis", "engine", "rules_versions", "gpu_architecture", "kernels"))


def _later_versions(row: Mapping[str, Any]) -> Sequence[str]:
    """Return the versions after a row's, of an engine with rows by version; none after one that was built ahead."""
    engine, version = row["engine"], row["rules_versions"]
    if version == ANY:
        return ()
    names = rules_versions(engine)
    built = LOGS[engine].last_built_version
    place = names.index(version)
    return () if built is not None and place <= names.index(f"{engine}-{built}") else names[place + 1 :]


def _specific_first(row: Mapping[str, Any]) -> list[bool]:
    """Return the place of a row: what matches everything comes last, what matches two classes after either alone."""
    places = [row[name] == ANY for name in ("engine", "rules_versions", "gpu_architecture", "kernels")]
    return [*places, SPARSE not in row["kernels"], not row["kernels"].endswith(SPREAD)]


def _row(
    key: Key, factors: Factors, fitted: int, unseen: Sequence[Measured], errors: tuple[float, float], today: date
) -> dict[str, Any]:
    basis, engine, version, generation, kernels = key
    return {
        "basis": basis,
        "engine": engine,
        "rules_versions": version,
        "gpu_architecture": generation,
        "kernels": kernels,
        "expected_error_fraction": round(min(errors[0], MOST_ERROR), 3),
        "pace_error_fraction": round(min(errors[1], MOST_ERROR), 3),
        "factors": {name: float(f"{value:.{SIGNIFICANT_DIGITS}g}") for name, value in asdict(factors).items()},
        "fit": {"runs": fitted, "judged_on_runs": len({pair.case for pair in unseen}), "date": today.isoformat()},
    }


def written(calibration: Calibration, path: Path) -> None:
    """Replace what was fitted in a calibration file; what else it holds, other engines' constants too, stays."""
    text = path.read_text(encoding="utf-8")
    before, engines = yaml.safe_load(text), {row["engine"] for row in calibration.rows}
    head, _, _ = text.partition("left_out:\n")
    head, _, _ = head.partition("rows:\n")
    unseen = [row for row in before.get("left_out", ()) if row["engine"] not in engines] + list(calibration.left_out)
    kept = [row for row in before.get("rows", ()) if row["engine"] not in engines] + list(calibration.rows)
    fitted = {
        "left_out": sorted(unseen, key=lambda row: [row[name] for name in SUBJECT]),
        "rows": sorted(kept, key=lambda row: (row["basis"], _specific_first(row))),
    }
    body = yaml.safe_dump(fitted, sort_keys=False, default_flow_style=None, width=400)
    path.write_text(head + body, encoding="utf-8")

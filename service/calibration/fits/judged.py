"""Classes fitted, and judged on what a fit had not seen: whole sources, else whole groups of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import expm1, log1p
from typing import Final

from service.calibration.fits.priors import Key
from service.calibration.fits.serving import (
    FEWEST_RUNS,
    MOST_RUNS,
    RUNS_OF_DOUBT,
    Case,
    are_stand_ins,
    errors_of,
    fitted,
    hide_hosts,
    is_central,
    sampled,
    scaled,
    teaches,
)
from service.calibration.serving import Measured
from service.engine import COVERED_FRACTION
from service.performance.fitted import MOST_ERROR
from service.performance.tables import Factors

LATENCIES: Final = ("ttft", "tpot", "e2e")
PACES: Final = ("tpot",)
FOLD_EVALUATIONS: Final = 10
FOLD_RUNS: Final = 24
JUDGED_RUNS: Final = 80
# Sources differ: what so many of the others' figures stay within, four in five of one more source's do.
EXPECTED_FRACTION: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Constants of one class, with the figures of runs that they, or those of a fold, had not seen."""

    key: Key
    factors: Factors
    runs: int  # that the fit may look at
    sources: tuple[str, ...]
    unseen: tuple[Measured, ...]
    cold: tuple[Measured, ...]  # its runs under the constants of other classes alone, as one that nobody measured
    unfit: tuple[Measured, ...]  # of runs that teach nothing of an engine: told, and no part of any expected error
    is_by_source: bool  # left out by source, not by group
    is_of_stand_ins: bool = False  # other models' kernels tell all that its fit may look at
    hides_host: bool = False  # in all runs that its fit may look at


def judged(key: Key, cases: Sequence[Case], like: Factors, factors: Factors) -> Judged:
    """Return the constants of a class and how they do on what they had not seen.

    Args:
        key: the class.
        cases: its runs.
        like: median constants of the engine's other classes, which few runs keep to.
        factors: constants that were fitted on all of its runs.
    """
    own = [case for case in cases if teaches(case)]
    folds, is_by_source = _folds(own)
    unseen: list[Measured] = []
    for left_out in folds:
        rest = [case for case in own if case not in left_out]
        unseen += _errors(left_out, _fit_fold(rest, like))
    others = [case for case in cases if not teaches(case)]
    return Judged(
        key=key,
        factors=factors,
        runs=len(own),
        sources=tuple(sorted({case.run.log.source for case in own})),
        unseen=tuple(unseen),
        cold=tuple(_errors(own, like)),
        unfit=tuple(_errors(others, factors)),
        is_by_source=is_by_source,
        is_of_stand_ins=are_stand_ins(own),
        hides_host=hide_hosts(cases),
    )


def fit(cases: Sequence[Case], like: Factors, begin: Factors | None = None) -> Factors:
    """Return constants of a class: all of them where latencies tell, else one speed of its kernels."""
    timed = [case for case in cases if not case.run.is_throughput]
    if len(timed) >= FEWEST_RUNS:
        return fitted(sampled(timed, MOST_RUNS), begin or like, like)
    return scaled(sampled(cases, MOST_RUNS), like) if cases else like


def _fit_fold(rest: Sequence[Case], like: Factors) -> Factors:
    """Return constants without what was left out; those of the engine where too little is left.

    A fold has no constants of a first fit to begin with, and begins at the one speed that suits its runs best.
    """
    timed = [case for case in rest if not case.run.is_throughput]
    if len(timed) >= FEWEST_RUNS:
        chosen = sampled(timed, FOLD_RUNS)
        return fitted(chosen, scaled(chosen, like), like, FOLD_EVALUATIONS)
    return scaled(sampled(rest, FOLD_RUNS), like) if rest else like


def _folds(cases: Sequence[Case]) -> tuple[list[list[Case]], bool]:
    """Return what is left out in turn: every source, or every other group where there is one source."""
    sources: dict[str, list[Case]] = {}
    for case in cases:
        sources.setdefault(case.run.log.source, []).append(case)
    if len(sources) > 1:
        return list(sources.values()), True
    groups = sorted({case.run.group for case in cases})
    halves = [set(groups[::2]), set(groups[1::2])]
    return [[case for case in cases if case.run.group in half] for half in halves if half], False


def _errors(cases: Sequence[Case], factors: Factors) -> list[Measured]:
    chosen = sampled(cases, JUDGED_RUNS)
    return [pair for pair in errors_of(chosen, {case.key: factors for case in chosen}) if is_central(pair)]


def cold_errors(outcomes: Sequence[Judged]) -> tuple[float, float]:
    """Return how far latencies, and pace alone, are off of a class that nobody measured.

    Each class was predicted by the constants of others. Of the errors that its figures stay within, those that two
    classes in three are within: of one more class, about four figures in five are.
    """
    cold = [each.cold for each in outcomes if each.cold]
    latencies = [expected_error(pairs) or 0.0 for pairs in cold]
    paces = [pace_error(pairs) or 0.0 for pairs in cold]
    return _two_in_three(latencies), _two_in_three(paces)


def _two_in_three(errors: Sequence[float]) -> float:
    return sorted(errors)[2 * len(errors) // 3]


def times_off(pair: Measured) -> float:
    """Return by how much a prediction is off, whichever way: 1.0 is twice or half. [fraction]."""
    ratio = pair.predicted / pair.measured
    return max(ratio, 1 / ratio) - 1


def expected_error(unseen: Sequence[Measured]) -> float | None:
    """Return what four in five latencies of one more source stay within; of throughput where nothing else is known."""
    latencies = [times_off(pair) for pair in unseen if pair.quantity in LATENCIES]
    return _most(latencies or [times_off(pair) for pair in unseen], EXPECTED_FRACTION)


def pace_error(unseen: Sequence[Measured]) -> float | None:
    """Return what 80 % of unseen paces stay within: step times alone, without the queues that they make."""
    paces = [times_off(pair) for pair in unseen if pair.quantity in PACES]
    return _most(
        paces or [times_off(pair) for pair in unseen if pair.quantity in ("e2e", "throughput")], COVERED_FRACTION
    )


def _most(errors: Sequence[float], fraction: float) -> float | None:
    """Return what a share of errors stays within; None without any."""
    return sorted(errors)[min(int(fraction * len(errors)), len(errors) - 1)] if errors else None


def told_errors(outcome: Judged, outcomes: Sequence[Judged]) -> tuple[float, float]:
    """Return how far latencies, and pace alone, are told to be off of a class, by what its runs and others' show.

    Args:
        outcome: the class.
        outcomes: every class of its basis; of its engine's others it is expected what `cold_errors` says of them.
    """
    unmeasured = cold_errors(_others(outcome, outcomes))
    runs = len({pair.case for pair in outcome.unseen})
    latency, pace = expected_error(outcome.unseen), pace_error(outcome.unseen)
    return told_error(latency, runs, unmeasured[0]), told_error(pace, runs, unmeasured[1])


def told_error(own: float | None, runs: int, unmeasured: float) -> float:
    """Return the error told of a class that few or many runs judge.

        1 + told = (1 + own)^(n / (n + 2)) x (1 + unmeasured)^(2 / (n + 2)), and told >= own

    That n runs came near may be chance: what is told of a class that nobody measured counts as much as two of them, as
    it does for the speed of a class. Of 1.1 % by one run beside 92 %, 53 % are told; of 13 % by 45 runs, 16 %. What its
    own runs missed by is never told smaller.

    Held against published runs, of 43 classes with several models: paces of models of which no run was looked at are
    within what one run alone lets expect in 51 % of cases, and in 87 as it is told; with two runs in 63 and 85, with
    four in 69 and 86. 80 are told.

    Args:
        own: what its unseen runs are within; None without any. [fraction]
        runs: how many they are. [count]
        unmeasured: what is told of a class that nobody measured. [fraction]
    """
    if own is None:
        return unmeasured
    seen, expected = (min(error, MOST_ERROR) for error in (own, unmeasured))
    shrunk = (runs * log1p(seen) + RUNS_OF_DOUBT * log1p(expected)) / (runs + RUNS_OF_DOUBT)
    return max(seen, expm1(shrunk))


def _others(outcome: Judged, outcomes: Sequence[Judged]) -> Sequence[Judged]:
    """Return the engine's other classes with runs; every engine's where it has none."""
    others = [each for each in outcomes if each.key != outcome.key and each.cold]
    return [each for each in others if each.key[1] == outcome.key[1]] or others or [outcome]


def without_source(outcome: Judged, source: str) -> Judged:
    """Return a class as if a source had never been published; its fits of what is left are as they were."""
    unseen, cold = (tuple(pair for pair in pairs if pair.source != source) for pairs in (outcome.unseen, outcome.cold))
    return replace(outcome, unseen=unseen, cold=cold)


def told_without(outcomes: Sequence[Judged]) -> Mapping[tuple[Key, str], tuple[float, float]]:
    """Return the errors that would be told of every class without one of its sources, by class and source."""
    sources = {pair.source for outcome in outcomes for pair in (*outcome.unseen, *outcome.unfit)}
    told: dict[tuple[Key, str], tuple[float, float]] = {}
    for source in sources:
        rest = [without_source(each, source) for each in outcomes]
        told |= {(each.key, source): told_errors(each, rest) for each in rest}
    return told


def coverage(outcomes: Sequence[Judged]) -> tuple[float, float]:
    """Return the shares of unseen latencies, and of paces, within what would be told without their source."""
    told = told_without(outcomes)
    within: tuple[list[bool], list[bool]] = [], []
    for outcome in outcomes:
        for pair in outcome.unseen:
            for place, quantities in enumerate((LATENCIES, PACES)):
                if pair.quantity in quantities:
                    within[place].append(times_off(pair) <= told[outcome.key, pair.source][place])
    latencies, paces = (sum(each) / len(each) if each else 1.0 for each in within)
    return latencies, paces


def by_class(cases: Sequence[Case]) -> Mapping[Key, list[Case]]:
    """Return the runs of each class."""
    classes: dict[Key, list[Case]] = {}
    for case in cases:
        classes.setdefault(case.key, []).append(case)
    return classes

"""The factors of step times, derived again from published serving runs.

Runs fall into classes by engine, GPU generation and kind of kernels. Few constants of each are fitted on a
sample of its runs, in which every run has the same say, and judged on whole sources that were left out
(`judged.py`). A class with throughput alone, or few runs, keeps its engine's median constants, and one speed of
its kernels is fitted.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.calibration.fits.priors import BOUNDS, SCALES, START, Key, bounds_of, ease_of
from service.calibration.logs.engines import LOGS
from service.calibration.serving import Measured, Run, measured_pairs
from service.engine import Basis, Deployed, Timing, deployed
from service.performance.chunked import chunked_states
from service.performance.estimated import own_share_of
from service.performance.fitted import generation_of
from service.performance.kernel_tables import in_process
from service.performance.known import MEASURED, ROOFLINE, Knowledge, kernel_class
from service.performance.states import untabled_states
from service.performance.tables import Factors, StepTables, calibrated
from service.performance.timers import hides_host, launched_layers

ANY: Final = "*"

# A class with fewer measured latencies keeps the engine's constants; only its kernels' speed is fitted.
FEWEST_RUNS: Final = 3
RUNS_OF_DOUBT: Final = 2  # that a class's speed is like the engine's others' counts as much as so many of its runs
# Errors beyond this count linearly, not as squares: single odd runs must not decide.
ROBUST_ERROR: Final = 0.1
# A user notices a slow answer most by its pace: errors of TPOT count twice.
TPOT_WEIGHT: Final = 2.0
# How firmly constants are held to their centre where runs are many; the fewer there are, the firmer.
HELD: Final = 0.5
MOST_RUNS: Final = 32  # of a class that a fit looks at
MOST_RATIO: Final = 10.0  # a queue that grows without end is no more wrong than this
SEARCH_STEP: Final = 0.02
SCALES_TRIED: Final = np.geomspace(0.4, 2.5, 15)
BESIDE: Final = np.geomspace(0.88, 1.14, 15)  # the best of them
MOST_EVALUATIONS: Final = 12
HIDDEN: Final = "sequence_overhead_s"  # behind kernels, where the host plans ahead


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A run with its step times before any factor."""

    run: Run
    key: Key
    tables: StepTables
    floor: StepTables
    hides_host: bool
    chunked_states: float
    untabled_states: float
    layers: float
    own_share: float
    is_stand_in: bool = False  # timed by another model's kernels
    is_outdone: bool = False  # where others of its class have kernels of their own

    def timing(self, factors: Factors) -> Timing:
        """Return the run's times under factors."""
        return Timing(
            steps=calibrated(
                self.tables,
                self.floor,
                factors,
                hides_host=self.hides_host,
                chunked_states=self.chunked_states,
                untabled_states=self.untabled_states,
                layers=self.layers,
            ),
            request_overhead=factors.request_overhead,
            basis=Basis(
                name=self.key[0],
                is_measured=False,
                source="",
                note="",
                overhead_source="",
                expected_error_fraction=0.0,
            ),
            own_share=self.own_share,
        )


def cases_of(runs: Iterable[Run], basis: str) -> list[Case]:
    """Return the runs that a basis has step times for, stand-ins outdone where their class has kernels of its own."""
    known = Knowledge(in_process())
    tables: dict[Deployed, _Tables | None] = {}
    cases = []
    for run in runs:
        key = deployed(run.plan)
        found = tables[key] if key in tables else tables.setdefault(key, _tables(key, basis, known))
        if found is not None:
            cases.append(
                Case(
                    run=run,
                    key=_class_of(key, basis),
                    tables=found.tables,
                    floor=found.floor,
                    hides_host=hides_host(key),
                    chunked_states=chunked_states(key),
                    untabled_states=untabled_states(key) if basis == MEASURED else 0.0,
                    layers=launched_layers(key),
                    own_share=own_share_of(key),
                    is_stand_in=found.is_stand_in,
                )
            )
    better_told = {case.key for case in cases if teaches(case) and not case.is_stand_in}
    return [replace(case, is_outdone=case.is_stand_in and case.key in better_told) for case in cases]


def _class_of(key: Deployed, basis: str) -> Key:
    """Return the class of a run: the roofline has two for each generation, measured kernels one for each kind."""
    generation, rules, kernels = generation_of(key.gpu), key.rules, kernel_class(key)
    if basis == ROOFLINE:
        return (basis, rules.engine, ANY, generation, kernels.split("-")[0])
    version = rules.rules_version if LOGS[rules.engine].is_fitted_by_version else ANY
    return (basis, rules.engine, version, generation, kernels)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """Step times of a run before any factor, and whether another model's kernels tell them."""

    tables: StepTables
    floor: StepTables
    is_stand_in: bool = False


def _tables(key: Deployed, basis: str, known: Knowledge) -> _Tables | None:
    estimates = known.estimates(key)
    if basis == ROOFLINE:
        return _Tables(tables=estimates.estimated, floor=estimates.floor)
    times = known.of_kernels(key)
    if times is None:
        return None
    return _Tables(tables=times.tables, floor=estimates.floor, is_stand_in=times.is_stand_in)


def teaches(case: Case) -> bool:
    """Return whether a fit may look at a run, as its source words it before anything is predicted.

    Settings that were assumed, trials and slowed GPUs teach nothing of an engine; where arrivals pile up without end,
    a mean wait says how long the run took. What another model's kernels tell, those of a class's own tell better.
    """
    return not case.run.log.is_doubtful and not case.run.log.saturated and not case.is_outdone


def hide_hosts(cases: Sequence[Case]) -> bool:
    """Return whether what the host does for a request hides in all the runs that teach."""
    return all(case.hides_host for case in cases if teaches(case))


def are_stand_ins(cases: Sequence[Case]) -> bool:
    """Return whether other models' kernels time all the runs that teach."""
    return all(case.is_stand_in for case in cases if teaches(case))


def sampled(cases: Sequence[Case], most: int) -> list[Case]:
    """Return about so many runs at most, spread over each source: two of it at least, else in proportion.

    Sources that contradict each other are weighed by what they ran: the next run is most likely of the larger.
    """
    sources: dict[str, list[Case]] = {}
    for case in cases:
        sources.setdefault(case.run.log.source, []).append(case)
    shares = {name: max(round(most * len(own) / len(cases)), 2) for name, own in sources.items()}
    return [case for name, own in sources.items() for case in own[:: max(-(-len(own) // shares[name]), 1)]]


def is_central(pair: Measured) -> bool:
    """Return whether a figure speaks of the typical request: a mean or a median, of latencies or throughput."""
    return pair.percent in (None, 50.0)


def errors_of(cases: Sequence[Case], factors: Mapping[Key, Factors]) -> list[Measured]:
    """Return every figure beside its prediction, under the factors of each class."""
    timings: dict[Hashable, Timing] = {}
    pairs: list[Measured] = []
    for case in cases:
        name = (*map(id, (case.tables, case.floor)), case.key, case.hides_host, case.chunked_states, case.layers)
        if name not in timings:
            timings[name] = case.timing(factors[case.key])
        pairs += measured_pairs(case.run, timings[name])
    return pairs


def _away(factors: Factors, centre: Factors, name: str, ease: Mapping[str, float]) -> float:
    """Return how far a constant is from its centre, in units of its ease; factors by their logarithm."""
    one, other = getattr(factors, name), getattr(centre, name)
    return float(np.log(one / other) if name in SCALES else one - other) / ease[name]


def _robust(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what has the square 2 e^2 (sqrt(1 + (error / e)^2) - 1), of which large errors are no more than linear."""
    return ROBUST_ERROR * np.sqrt(2.0 * (np.sqrt(1.0 + (errors / ROBUST_ERROR) ** 2) - 1.0))


def _residual(pair: Measured) -> float:
    ratio = min(max(pair.predicted / pair.measured, 1 / MOST_RATIO), MOST_RATIO)
    return (TPOT_WEIGHT if pair.quantity == "tpot" else 1.0) * float(np.log(ratio))


def _teaches(pair: Measured, timed: set[str]) -> bool:
    """Return whether a figure counts: throughput only where nothing else was measured, as it repeats the latencies."""
    return is_central(pair) and (pair.quantity != "throughput" or pair.case not in timed)


def fitted(
    cases: Sequence[Case], start: Factors, centre: Factors = START, evaluations: int = MOST_EVALUATIONS
) -> Factors:
    """Return the factors under which predictions come closest.

        sum of rho(log(predicted / measured)) + sum of (distance from the centre / ease)^2

    rho is quadratic up to about 10 % and linear beyond, as single runs may be odd; the distance is quadratic however
    far, so that no constant takes what another should have, and few runs move little.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - 40 MB that no server needs

    ease, bounds = ease_of(cases[0].key), bounds_of(cases[0].key)
    names = tuple(ease)
    scales = np.array([bounds[name][0] for name in names])
    low = np.array([bounds[name][1] for name in names]) / scales
    high = np.array([bounds[name][2] for name in names]) / scales
    begin = np.array([getattr(start, name) for name in names]) / scales
    timed = {case.run.log.case for case in cases if not case.run.is_throughput}
    firmness = HELD * max(MOST_RUNS / len(cases), 1.0) ** 0.5

    def factors_at(point: NDArray[np.float64]) -> Factors:
        return replace(start, **dict(zip(names, (point * scales).tolist(), strict=True)))

    def residuals(point: NDArray[np.float64]) -> NDArray[np.float64]:
        factors = factors_at(point)
        pairs = errors_of(cases, {case.key: factors for case in cases})
        errors = np.array([_residual(pair) for pair in pairs if _teaches(pair, timed)])
        held = [firmness * ROBUST_ERROR * _away(factors, centre, name, ease) for name in names]
        return np.concatenate([_robust(errors), held])

    optimum = least_squares(
        residuals,
        np.clip(begin, low + 1e-3, high - 1e-3),
        bounds=(low, high),
        diff_step=SEARCH_STEP,
        max_nfev=evaluations,
    )
    return factors_at(optimum.x)


def typical(
    factors: Mapping[Key, Factors], engine: str, start: Factors = START, hidden: Collection[Key] = ()
) -> Factors:
    """Return the median constants of an engine's classes, or of every engine's; `start` without any.

    What a host does behind kernels nobody saw: of classes where it hides, that constant is none of the median's.
    """
    own = {key: each for key, each in factors.items() if key[1] == engine and key[3] != ANY} or dict(factors)
    seen = [each for key, each in own.items() if key not in hidden] or list(own.values())
    amounts = {name: seen if name == HIDDEN else list(own.values()) for name in BOUNDS}
    return replace(
        start,
        **{name: float(median(getattr(each, name) for each in those or [start])) for name, those in amounts.items()},
    )


def overall(factors: Mapping[Key, Factors]) -> Factors:
    """Return the median constants of every engine, for those nobody measured."""
    return typical(factors, "")


def scaled(cases: Sequence[Case], like: Factors) -> Factors:
    """Return an engine's constants with one factor for the speed of a class's kernels.

    Its mean log(1 + (error / e)^2) is least: what is far off, for reasons of its own, weighs little. Of n runs it goes
    n / (n + 2) of the way, by its logarithm: one run tells of itself first.
    """

    def distance(scale: float) -> float:
        factors = replace(like, **{name: scale * getattr(like, name) for name in SCALES})
        pairs = [pair for pair in errors_of(cases, {case.key: factors for case in cases}) if is_central(pair)]
        errors = np.log([pair.predicted / pair.measured for pair in pairs])
        return float(np.mean(np.log1p((errors / ROBUST_ERROR) ** 2)))

    scale = float(min(BESIDE * min(SCALES_TRIED, key=distance), key=distance))
    scale **= len(cases) / (len(cases) + RUNS_OF_DOUBT)
    return replace(like, **{name: scale * getattr(like, name) for name in SCALES})

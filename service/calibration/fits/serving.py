"""The factors of step times, derived again from published serving runs.

`sizer fit-serving --data DIR` fits few constants for each engine, GPU generation and kind of kernels
on half of the groups (engine, GPU, model, GPUs per replica), prints the errors on both halves, fits
once more on everything and writes `calibration.yaml`. What a request waits outside iterations is the
same for every class: its median.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.calibration.serving import Measured, Run, measured_pairs
from service.engine.time.results import Basis
from service.engine.time.steps import Deployed, Timing, deployed
from service.performance.kernel_tables import NotMeasuredError
from service.performance.roofline import FLOOR, roofline_tables
from service.performance.tables import Factors, StepTables, calibrated
from service.performance.timers import ROOFLINE, estimated_step_tables, kernel_class, workload
from service.performance.timers import measured_step_tables as kernels_of

Key = tuple[str, str, str, str, str]  # basis, engine, rules version, GPU generation, kernels
ANY: Final = "*"

START: Final = Factors(
    decode_factor=1.0,
    small_prefill_factor=1.1,
    large_prefill_factor=1.1,
    step_overhead_s=0.0005,
    sequence_overhead_s=0.00001,
    mixed_overhead_s=0.002,
    request_overhead_s=0.010,
    tokenizer_s_per_token=1e-6,
)
# name: scale of one step of the search, lowest, highest
BOUNDS: Final[Mapping[str, tuple[float, float, float]]] = {
    "decode_factor": (1.0, 0.6, 1.8),
    "small_prefill_factor": (1.0, 0.5, 3.0),
    "large_prefill_factor": (1.0, 0.5, 4.0),
    "step_overhead_s": (0.003, 0.0, 0.01),
    "sequence_overhead_s": (0.00005, 0.0, 0.0002),
    "mixed_overhead_s": (0.005, 0.0, 0.04),
    "request_overhead_s": (0.01, 0.0, 0.06),
    "tokenizer_s_per_token": (0.000002, 0.0, 0.00001),
}
OUTSIDE_ITERATIONS: Final = ("request_overhead_s", "tokenizer_s_per_token")
IN_ITERATIONS: Final = tuple(name for name in BOUNDS if name not in OUTSIDE_ITERATIONS)
SCALES: Final = ("decode_factor", "small_prefill_factor", "large_prefill_factor")
# A class with fewer measured latencies keeps the engine's constants; only its kernels' speed is fitted.
FEWEST_RUNS: Final = 8
# Errors beyond this count linearly, not as squares: single odd runs must not decide.
ROBUST_ERROR: Final = 0.1
# A user notices a slow answer most by its pace: errors of TPOT count twice.
TPOT_WEIGHT: Final = 2.0
FREE_RUNS: Final = 24  # of a class, enough to tell what happens outside iterations
SEARCH_STEP: Final = 0.02
MOST_EVALUATIONS: Final = 14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A run with its step times before any factor."""

    run: Run
    key: Key
    tables: StepTables
    floor: StepTables

    def timing(self, factors: Factors) -> Timing:
        """Return the run's times under factors."""
        return Timing(
            steps=calibrated(self.tables, self.floor, factors),
            request_overhead=factors.request_overhead,
            basis=Basis(
                name=self.key[0],
                is_measured=False,
                source="",
                note="",
                overhead_source="",
                expected_error_fraction=0.0,
            ),
        )


def cases_of(runs: Iterable[Run], basis: str) -> list[Case]:
    """Return the runs that a basis has step times for."""
    tables: dict[Deployed, tuple[StepTables, StepTables] | None] = {}
    cases = []
    for run in runs:
        key = deployed(run.plan)
        if key not in tables:
            tables[key] = _tables(key, basis)
        known = tables[key]
        if known is not None:
            cases.append(Case(run=run, key=_class_of(key, basis), tables=known[0], floor=known[1]))
    return cases


def _class_of(key: Deployed, basis: str) -> Key:
    """Return the class of a run: the roofline has one for each generation, measured kernels one for each kind."""
    generation, rules = key.gpu.architecture, key.rules
    if basis == ROOFLINE:
        return (basis, rules.engine, ANY, generation, ANY)
    # Its years before 0.20 had other kernels; vLLM's change little with its rules.
    version = rules.rules_version if rules.engine == "tensorrt-llm" else ANY
    return (basis, rules.engine, version, generation, kernel_class(key))


def _tables(key: Deployed, basis: str) -> tuple[StepTables, StepTables] | None:
    floor = roofline_tables(workload(key), key.gpu, key.layout, FLOOR)
    if basis == ROOFLINE:
        return estimated_step_tables(key), floor
    try:
        return kernels_of(key), floor
    except NotMeasuredError:
        return None


def errors_of(cases: Sequence[Case], factors: Mapping[Key, Factors]) -> list[Measured]:
    """Return every figure beside its prediction, under the factors of each class."""
    timings: dict[tuple[int, Key], Timing] = {}
    pairs: list[Measured] = []
    for case in cases:
        name = (id(case.tables), case.key)
        if name not in timings:
            timings[name] = case.timing(factors[case.key])
        pairs += measured_pairs(case.run, timings[name])
    return pairs


def fitted(cases: Sequence[Case], names: Sequence[str], start: Factors) -> Factors:
    """Return the factors, of those named, under which predictions come closest; the others stay.

    Minimises the sum of rho(log(predicted / measured)) with rho quadratic up to about 10 %.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - 40 MB that no server needs

    scales = np.array([BOUNDS[name][0] for name in names])
    low = np.array([BOUNDS[name][1] for name in names]) / scales
    high = np.array([BOUNDS[name][2] for name in names]) / scales
    begin = np.array([getattr(start, name) for name in names]) / scales

    def factors_at(point: NDArray[np.float64]) -> Factors:
        return replace(start, **dict(zip(names, (point * scales).tolist(), strict=True)))

    def residuals(point: NDArray[np.float64]) -> NDArray[np.float64]:
        factors = factors_at(point)
        pairs = errors_of(cases, {case.key: factors for case in cases})
        logs = [
            (TPOT_WEIGHT if pair.quantity == "tpot" else 1.0) * float(np.log(pair.predicted / pair.measured))
            for pair in pairs
        ]
        return np.array(logs)

    optimum = least_squares(
        residuals,
        np.clip(begin, low + 1e-3, high - 1e-3),
        bounds=(low, high),
        loss="soft_l1",
        f_scale=ROBUST_ERROR,
        diff_step=SEARCH_STEP,
        max_nfev=MOST_EVALUATIONS,
    )
    return factors_at(optimum.x)


def fit_classes(cases: Sequence[Case], begin: Mapping[Key, Factors] | None = None) -> dict[Key, Factors]:
    """Return the factors of every class, and of every engine for classes nobody measured.

    First each class with enough latencies is fitted freely; what happens outside iterations is then
    the median over classes, and the rest is fitted again. A class with throughput alone, or few
    runs, keeps its engine's median constants, and one speed of its kernels is fitted.

    Args:
        cases: runs of one basis.
        begin: factors found before, from which the search starts.
    """
    begin = begin or {}
    basis = cases[0].key[0]
    classes: dict[Key, list[Case]] = {}
    for case in cases:
        classes.setdefault(case.key, []).append(case)
    timed = {key: [case for case in own if not case.run.is_throughput] for key, own in classes.items()}
    rich = {key: own for key, own in timed.items() if len(own) >= FEWEST_RUNS}
    free = {
        key: begin.get(key) or fitted(own[:: max(len(own) // FREE_RUNS, 1)], tuple(BOUNDS), START)
        for key, own in rich.items()
    }
    shared = replace(START, **{name: _median(free.values(), name) for name in OUTSIDE_ITERATIONS})
    factors = {key: fitted(own, IN_ITERATIONS, replace(free[key], **_outside(shared))) for key, own in rich.items()}
    for engine in sorted({key[1] for key in classes}):
        factors[(basis, engine, ANY, ANY, ANY)] = _typical(factors, engine, shared)
    for key, own in classes.items():
        if key not in factors:
            factors[key] = _scaled(own, factors[(key[0], key[1], ANY, ANY, ANY)])
    return factors


def _outside(shared: Factors) -> dict[str, float]:
    return {name: getattr(shared, name) for name in OUTSIDE_ITERATIONS}


def _median(factors: Iterable[Factors], name: str) -> float:
    return float(median([getattr(each, name) for each in factors] or [getattr(START, name)]))


def _typical(factors: Mapping[Key, Factors], engine: str, shared: Factors) -> Factors:
    """Return the median constants of an engine's classes, or of every engine's."""
    own = [each for key, each in factors.items() if key[1] == engine and key[3] != ANY]
    own = own or list(factors.values()) or [START]
    return replace(shared, **{name: _median(own, name) for name in IN_ITERATIONS})


def overall(factors: Mapping[Key, Factors]) -> Factors:
    """Return the median constants of every engine, for those nobody measured."""
    return _typical(factors, "", replace(START, **_outside(next(iter(factors.values()))))) if factors else START


def _scaled(cases: Sequence[Case], typical: Factors) -> Factors:
    """Return an engine's constants with one factor for the speed of a class's kernels."""

    def distance(scale: float) -> float:
        factors = replace(typical, **{name: scale * getattr(typical, name) for name in SCALES})
        pairs = errors_of(cases, {case.key: factors for case in cases})
        return float(median(abs(float(np.log(pair.predicted / pair.measured))) for pair in pairs))

    scale = min((float(each) for each in np.geomspace(0.6, 2.0, 25)), key=distance)
    return replace(typical, **{name: scale * getattr(typical, name) for name in SCALES})


def halves(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Return the cases of every other group, and those of the groups between them."""
    groups = sorted({case.run.group for case in cases})
    first = set(groups[::2])
    return [case for case in cases if case.run.group in first], [case for case in cases if case.run.group not in first]


def with_fallback(factors: Mapping[Key, Factors], cases: Sequence[Case]) -> dict[Key, Factors]:
    """Return factors for every class of the cases: its own, or its engine's."""
    return {
        case.key: factors.get(case.key) or factors[(case.key[0], case.key[1], ANY, ANY, ANY)]
        for case in cases
        if case.key in factors or (case.key[0], case.key[1], ANY, ANY, ANY) in factors
    }


def case_errors(pairs: Iterable[Measured]) -> list[float]:
    """Return, for each run, the largest error of its figures. [fraction]."""
    worst: dict[str, float] = {}
    for pair in pairs:
        worst[pair.case] = max(worst.get(pair.case, 0.0), abs(pair.error_fraction))
    return list(worst.values())


def class_left_out(cases: Sequence[Case], factors: Mapping[Key, Factors]) -> dict[str, float]:
    """Return, for each engine, the median error of its runs under the median constants of its other classes."""
    errors: dict[str, list[float]] = {}
    for key in sorted({case.key for case in cases}):
        others = {name: own for name, own in factors.items() if name != key and name[1] == key[1] and name[3] != ANY}
        typical = _typical(others or factors, key[1], next(iter(factors.values())))
        own = [case for case in cases if case.key == key]
        errors.setdefault(key[1], []).extend(case_errors(errors_of(own, {key: typical})))
    return {engine: median(values) for engine, values in errors.items()}

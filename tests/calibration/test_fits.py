"""What a fit may find, and what is said of classes that nobody measured."""

import shutil
from dataclasses import asdict, replace
from datetime import date
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import yaml

from service.calibration.fits.constants import Calibration, _rows, _untaught, written
from service.calibration.fits.judged import Judged, cold_errors, coverage, told_error, told_without
from service.calibration.fits.kinds import by_kind
from service.calibration.fits.priors import BOUNDS, SCALES, START, bounds_of, ease_of, start_of
from service.calibration.fits.serving import _robust, typical
from service.calibration.serving import Measured
from service.performance.fitted import ANY, MOST_ERROR, factors_of, fitted_rows
from service.performance.known import MEASURED, ROOFLINE
from service.performance.tables import Factors

WRITTEN = ("rows", "left_out")  # of the file


def test_the_constants_of_an_engine_are_one_whole_fit() -> None:
    dates: dict[str, set[str]] = {}
    for row in fitted_rows():
        dates.setdefault(row.engine, set()).add(row.fit.date)

    assert {engine: len(own) for engine, own in dates.items()} == dict.fromkeys(dates, 1)


def test_no_two_rows_speak_for_one_class() -> None:
    places = [(row.basis, row.engine, row.rules_versions, row.gpu_architecture, row.kernels) for row in fitted_rows()]

    assert len(places) == len(set(places))


def test_a_fit_of_one_engine_leaves_the_others_rows_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "calibration.yaml"
    shutil.copy(str(files("service.performance") / "data" / "calibration.yaml"), path)
    before = yaml.safe_load(path.read_text(encoding="utf-8"))
    (row, *_), (unseen, *_) = ([each for each in before[name] if each["engine"] == "sglang"] for name in WRITTEN)

    written(Calibration(rows=(row,), left_out=(unseen,), text=""), path)

    after = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name, only in zip(WRITTEN, (row, unseen), strict=True):
        assert [each for each in after[name] if each["engine"] == "sglang"] == [only]
        assert [each for each in after[name] if each["engine"] != "sglang"] == [
            each for each in before[name] if each["engine"] != "sglang"
        ]
    assert {name: after[name] for name in after.keys() - WRITTEN} == {
        name: before[name] for name in before.keys() - WRITTEN
    }


@pytest.mark.parametrize("name", BOUNDS)
def test_constants_are_within_what_physics_leaves_open(name: str) -> None:
    # One speed of its kernels moves all three of a class without latencies, or without runs, at once.
    slack = 1.35 if name.endswith("factor") else 1.0
    for row in fitted_rows():
        _, low, high = bounds_of((row.basis, row.engine, row.rules_versions, row.gpu_architecture, row.kernels))[name]
        assert low / slack <= getattr(factors_of(row), name) <= high * slack, row


@pytest.mark.parametrize(
    ("basis", "engine", "is_launched"),
    [
        (MEASURED, "vllm", True),
        (MEASURED, "sglang", True),
        (MEASURED, "tensorrt-llm", False),  # engines that were built ahead are launched as a whole
        (ROOFLINE, "vllm", False),  # its layers have a latency of their own
    ],
)
def test_launches_are_a_constant_where_a_runtimes_own_kernels_were_measured(
    basis: str, engine: str, is_launched: object
) -> None:
    """Issue 45709 of vLLM: 34.4 ms for the 48 layers of Qwen3-30B-A3B without any graph."""
    key = (basis, engine, ANY, "hopper", "experts-bf16")

    assert ("layer_launch_s" in ease_of(key)) is is_launched
    assert bool(start_of(key).layer_launch_s) is is_launched
    assert ease_of(key).keys() <= bounds_of(key).keys()
    assert start_of(key).layer_launch_s <= 0.0344 / 48 < bounds_of(key)["layer_launch_s"][2]


def test_an_engine_that_launches_prompts_one_kernel_at_a_time_is_expected_to_wait_for_that_on_any_basis() -> None:
    keys = [(basis, "sglang", ANY, "hopper", "experts") for basis in (MEASURED, ROOFLINE)]

    assert [start_of(key).layer_launch_s for key in keys] == [0.0344 / 48] * 2
    assert all("layer_launch_s" in ease_of(key) for key in keys)


def test_what_nobody_measured_beside_measured_kernels_is_no_blank() -> None:
    rows = [row for row in fitted_rows() if row.basis == MEASURED and row.kernels == ANY]

    assert len(rows) == 4  # three engines, and any
    assert all(row.expected_error_fraction < MOST_ERROR for row in rows)


def test_large_errors_weigh_no_more_than_linearly() -> None:
    small, large, larger = (_robust(np.array([error]))[0] ** 2 for error in (0.01, 5.0, 10.0))

    assert small == pytest.approx(0.01**2, rel=0.01)
    assert larger == pytest.approx(2 * large, rel=0.05)


def judged(*predicted: float) -> Judged:
    pair = Measured(
        case="any",
        source="any",
        tier="A",
        engine="vllm",
        gpu="h100-sxm-80gb",
        group=("vllm", "h100-sxm-80gb", "llama-3.1-8b", 1),
        basis=MEASURED,
        quantity="tpot",
        percent=None,
        expected_error_fraction=0.5,
        measured=1.0,
        predicted=1.0,
    )
    return Judged(
        key=(MEASURED, "vllm", ANY, "hopper", "dense-bf16"),
        factors=START,
        runs=len(predicted),
        sources=("any",),
        unseen=(),
        cold=tuple(replace(pair, predicted=each) for each in predicted),
        unfit=(),
        is_by_source=True,
    )


def test_each_class_has_the_same_say_of_what_nobody_measured() -> None:
    well, less, badly = judged(*[1.1] * 90), judged(1.2), judged(3.0)

    assert cold_errors([well, less, badly]) == pytest.approx((2.0, 2.0))
    assert cold_errors([well, well, well, less, less, badly]) == pytest.approx((0.2, 0.2))
    assert cold_errors([judged(0.5), judged()]) == pytest.approx((1.0, 1.0))


def test_what_one_kind_shows_of_a_family_without_measured_kernels_is_carried_to_the_other() -> None:
    """Half as fast in every factor as the engine's other dense classes, with a host of 4 ms: so are its experts."""
    dense, experts = (replace(START, decode_factor=factor, small_prefill_factor=factor) for factor in (0.8, 1.0))
    slow = Factors(**{**asdict(dense), "step_overhead_s": 0.004} | {name: 2 * getattr(dense, name) for name in SCALES})
    fitted = {
        (ROOFLINE, "vllm", ANY, generation, kind): factors
        for generation in ("ada", "blackwell", "hopper")
        for kind, factors in (("dense", dense), ("experts", experts))
    }
    added = by_kind({**fitted, (ROOFLINE, "vllm", ANY, "cdna3", "dense"): slow})

    found = added[ROOFLINE, "vllm", ANY, "cdna", "experts"]
    assert found.decode_factor == pytest.approx(2.0)
    assert found.large_prefill_factor == pytest.approx(2.0)
    assert found.step_overhead_s == 0.004
    assert added[ROOFLINE, "vllm", ANY, "cdna", "dense"] == slow
    assert added[ROOFLINE, "vllm", ANY, ANY, "experts"] == experts


def test_runs_that_teach_nothing_move_no_other_class() -> None:
    """MI300X, vllm-project/recipes: one run of experts, its version not stated. The family's dense class tells more."""
    slow = replace(START, decode_factor=1.5)
    classes = {("hopper", "experts"): START, ("ada", "experts"): START, ("blackwell", "experts"): START}
    classes |= {("hopper", "dense"): START, ("ada", "dense"): START, ("blackwell", "dense"): START}
    classes |= {("cdna3", "dense"): slow}
    taught = [replace(judged(1.1), key=(ROOFLINE, "vllm", ANY, *place), factors=own) for place, own in classes.items()]
    nothing = replace(judged(), key=(ROOFLINE, "vllm", ANY, "cdna3", "experts"), factors=START)
    rows = _rows(ROOFLINE, taught, date(2026, 11, 23))

    assert _rows(ROOFLINE, [*taught, nothing], date(2026, 11, 23)) == rows
    factors = {each.key: each.factors for each in taught}
    answers = _untaught(nothing.key, factors, by_kind(factors))
    said = next(row for row in rows if (row["gpu_architecture"], row["kernels"]) == ("cdna", "experts"))
    assert asdict(answers) == pytest.approx(said["factors"], rel=1e-3)
    assert answers.decode_factor > START.decode_factor


def test_a_host_that_nobody_saw_is_none_of_what_is_typical() -> None:
    keys = [
        (MEASURED, "vllm", ANY, "hopper", kernels) for kernels in ("dense-bf16", "dense-delta-bf16", "experts-bf16")
    ]
    hosts = dict(zip(keys, (6e-5, 1e-5, 1e-5), strict=True))
    factors = {key: replace(START, sequence_overhead_s=hosts[key], decode_factor=1.2) for key in keys}

    assert typical(factors, "vllm").sequence_overhead_s == 1e-5
    seen = typical(factors, "vllm", hidden=keys[1:])
    assert (seen.sequence_overhead_s, seen.decode_factor) == (6e-5, 1.2)
    assert typical(factors, "vllm", hidden=keys).sequence_overhead_s == 1e-5  # where nobody saw any, all speak


def test_the_fewer_runs_judge_a_class_the_more_is_told_of_what_nobody_measured() -> None:
    """Two runs of doubt: of a class that one run judges by 1.1 %, beside 94.2 and 48.9 % where nobody measured."""
    told = [told_error(0.011, runs, 0.942) for runs in (0, 1, 2, 45)]

    assert told == pytest.approx([0.942, 0.562, 0.401, 0.0393], abs=1e-3)
    assert told_error(None, 0, 0.942) == 0.942
    assert told_error(0.6, 1, 0.2) == 0.6  # what it was missed by is never told smaller
    assert told_error(150.0, 1, 0.2) == MOST_ERROR


def test_rows_tell_of_a_few_runs_what_the_rule_tells() -> None:
    """A published pair: vLLM's dense recurrent classes of one run and of thirty."""
    few, many = (
        next(row for row in fitted_rows() if (row.engine, row.gpu_architecture, row.kernels) == ("vllm", *place))
        for place in (("blackwell", "dense-recurrent-bf16"), ("hopper", "dense-recurrent-bf16"))
    )
    engine = next(row for row in fitted_rows() if (row.basis, row.engine, row.kernels) == (MEASURED, "vllm", ANY))

    assert few.fit.judged_on_runs < 3 < many.fit.judged_on_runs
    assert many.expected_error_fraction < few.expected_error_fraction < engine.expected_error_fraction


def test_no_class_is_told_surer_than_what_nobody_measured_leaves_open_for_so_few_runs() -> None:
    everywhere = {row.engine: row for row in fitted_rows() if row.basis == MEASURED and row.kernels == ANY}
    for row in fitted_rows():
        if row.basis == MEASURED and row.fit.runs:
            least = told_error(0.0, row.fit.judged_on_runs, everywhere[row.engine].expected_error_fraction)
            # What an engine's other classes leave open, without this one, is somewhat less.
            assert row.expected_error_fraction > 0.6 * least, row


def test_coverage_holds_figures_against_what_is_told_without_their_source() -> None:
    """Sources that agree among themselves alone: each within 10 % of a prediction that is half of the other's."""
    pairs = judged(1.1).cold
    one = replace(
        judged(*[1.1] * 8, *[2.0] * 8),
        unseen=tuple(
            replace(pairs[0], source=source, case=f"{source} {case}", predicted=predicted)
            for source, predicted in (("near", 1.1), ("far", 2.0))
            for case in range(8)
        ),
    )
    other = replace(judged(1.3), key=(MEASURED, "vllm", ANY, "ada", "dense-bf16"))

    told = told_without([one, other])

    assert told[one.key, "far"] == pytest.approx([told_error(0.1, 8, 0.3)] * 2)
    assert told[one.key, "near"] == pytest.approx([1.0, 1.0])
    assert coverage([one, other]) == (0.5, 0.5)

"""Aims beside what was reached, and reasons for sources that were left out."""

import pytest

from service.calibration.aims import REASONS, Aim, aims_of, sources_table
from service.calibration.lines import Line
from service.performance.fitted import BESIDE, LeftOut, left_out

POOLS = Line(
    subject="logged start-ups, vLLM 0.10 and newer: kv_cache_bytes",
    count=10,
    equal=0.0,
    median=0.002,
    mean=0.02,
    p90=0.1,
    worst="",
    safe=0.9,
)


@pytest.mark.parametrize(
    ("reached", "is_floor", "met"), [(0.7, True, False), (0.9, True, True), (0.7, False, True), (None, False, None)]
)
def test_an_aim_is_met_from_its_own_side(reached: float | None, is_floor: bool, met: bool | None) -> None:  # noqa: FBT001 - columns
    assert Aim(name="any", wanted=0.8, reached=reached, is_floor=is_floor).is_met is met


def test_pools_are_held_to_median_mean_and_the_safe_side() -> None:
    met = {aim.name: aim.is_met for aim in aims_of([POOLS], ())}

    assert met["pools of start-ups: median"] is True
    assert met["pools of start-ups: mean"] is False
    assert met["pools of start-ups: on the safe side"] is True
    assert met["whether an open loop saturates"] is None


def test_every_left_out_source_says_what_it_leaves_open() -> None:
    sources = {each.source for each in left_out()}

    assert [source for source in sorted(sources) if not source.startswith(tuple(REASONS))] == []
    assert len(sources_table(left_out()).splitlines()) == 2 + len(sources)


def test_aims_rest_on_what_answers_rest_on() -> None:
    def judged(basis: str, median: float) -> LeftOut:
        return LeftOut(
            basis=basis, source="GPUStack", engine="vllm", gpu="h100-sxm-80gb", quantity="tpot", figures=9,
            median_error_fraction=median, p90_error_fraction=1.0, within_expected_fraction=1.0,
        )  # fmt: skip

    reached = {aim.name: aim.reached for aim in aims_of((), (judged("measured-kernels", 0.05), judged(BESIDE, 0.4)))}

    assert reached["TPOT, left-out sources on Hopper and Blackwell: median"] == 0.05

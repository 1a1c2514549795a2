"""An engine without graphs: its times are those with them, and say so."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.engines.measured_here import MEASURED_HERE
from service.engine.time.eager import ERROR_FRACTION, NOTE, EagerTimers, eager
from service.engine.time.steps import deployed
from service.questions.asked import Desk
from service.questions.size import SIZE, SizeBody
from tests.conftest import shared_timers
from tests.engine.time.conftest import HandTimers, plan_of, timing

if TYPE_CHECKING:
    from service.engine.time.steps import StepTimers


def test_times_are_those_with_graphs_and_trusted_less(catalog: Snapshot) -> None:
    key, timers = deployed(plan_of(catalog)), HandTimers()
    told: StepTimers = EagerTimers(timers)

    for with_graphs, without in ((timers.timer(key), told.timer(key)), (timers.quick(key), told.quick(key))):
        assert without is not None
        assert (without.steps, without.basis.note) == (with_graphs.steps, NOTE)
        assert without.basis.expected_error_fraction == without.basis.pace_error_fraction == ERROR_FRACTION
    assert told.simulations is timers.simulations


def test_what_callers_measured_of_their_own_servers_stands(catalog: Snapshot) -> None:
    timers = HandTimers()
    timers._timing = replace(timing(), basis=replace(timing().basis, name=MEASURED_HERE))  # noqa: SLF001 - a toy

    assert EagerTimers(timers).timer(deployed(plan_of(catalog))) == timers._timing  # noqa: SLF001
    assert eager(None) is None


@pytest.mark.parametrize("is_eager", [True, False])
def test_an_answer_warns_of_it(catalog: Snapshot, is_eager: bool) -> None:  # noqa: FBT001 - a column
    asked = SizeBody.model_validate({
        "model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 1, "input_tokens": 100, "output_tokens": 10,
        "enforce_eager": is_eager,
    })  # fmt: skip

    answer = Desk(shared_timers()).answer(SIZE, asked, catalog).document

    assert any(NOTE in warning for warning in answer["warnings"]) is is_eager
    assert (answer["latency"]["expected_error_fraction"] >= ERROR_FRACTION) is is_eager

"""Every assumption has an origin, and every default a source."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.answers.capacity import capacity
from service.engine.answers.recommend import recommend
from service.engine.answers.size import size
from service.engine.fleet.results import Assumption
from service.engine.inputs import Limits
from tests.engine.conftest import Asked, arrivals, capacity_of, recommendation_of


@pytest.fixture
def answers(asked: Asked, catalog: Snapshot) -> dict[str, tuple[Assumption, ...]]:
    question = asked(load=arrivals(3.0), limits=Limits(ttft_s=1.0))
    return {
        "size": size(question).assumptions,
        "capacity": capacity(capacity_of(question, 1)).assumptions,
        "recommend": recommend(recommendation_of(question, catalog, "h100")).assumptions,
    }


def test_names_are_said_once_and_defaults_have_sources(answers: dict[str, tuple[Assumption, ...]]) -> None:
    for notes in answers.values():
        names = [note.name for note in notes]
        assert len(names) == len(set(names))
        assert all(note.source for note in notes if note.origin in ("default", "measured"))


def test_times_say_who_measured_them(asked: Asked, answers: dict[str, tuple[Assumption, ...]]) -> None:
    by_kernels = {note.name: note for note in answers["size"]}
    by_roofline = {note.name: note for note in size(asked(gpu="l4")).assumptions}

    assert (by_kernels["step_times"].value, by_kernels["step_times"].origin) == ("measured-kernels", "measured")
    assert (by_roofline["step_times"].value, by_roofline["step_times"].origin) == ("roofline", "default")
    assert "no kernels were measured on l4" in (by_roofline["step_times"].source or "")
    assert by_kernels["steps_planned_ahead"].value == 1  # asynchronous scheduling of vLLM 0.33


def test_what_is_stated_is_the_requests(asked: Asked) -> None:
    question = asked()
    stated = replace(question.settings, max_num_seqs=32, block_size=32, max_loras=2)
    notes = {note.name: note for note in size(replace(question, settings=stated)).assumptions}

    assert {notes[name].origin for name in ("max_num_seqs", "block_size", "max_loras", "concurrent_requests")} == {
        "request"
    }
    assert (notes["max_lora_rank"].origin, notes["percentile"].origin if "percentile" in notes else "default") == (
        "default",
        "default",
    )


def test_a_version_without_rules_of_its_own_says_whose_plan_it_gets(asked: Asked, catalog: Snapshot) -> None:
    older, newest, unstated = (asked(rules=rules_for("vllm", version)) for version in ("0.6.3", "0.33.0", None))
    notes = {note.name: note for note in size(older).assumptions}

    assert notes["rules_version"].value == "vllm-0.6"
    assert (notes["plan_rules"].value, notes["plan_rules"].origin) == ("vLLM 0.8", "default")
    assert "plan_rules" in {note.name for note in recommend(recommendation_of(older, catalog, "h100")).assumptions}
    for question in (newest, unstated):
        assert "plan_rules" not in {note.name for note in size(question).assumptions}

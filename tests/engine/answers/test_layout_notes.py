"""Every part of a layout is noted: as stated, or as chosen and why. Referee: the same question with it stated."""

from dataclasses import replace

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.answers.capacity import capacity
from service.engine.answers.layout_notes import COUNT, MOST, OPTION, PLAINEST, POD, SIZED, SOONEST
from service.engine.answers.recommend import recommend
from service.engine.answers.replicas import replicas
from service.engine.answers.size import size
from service.engine.fleet.results import Assumption
from service.engine.inputs import StatedLayout
from tests.engine.conftest import Asked, arrivals, capacity_of, recommendation_of, users

PARTS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "expert_parallel",
    "decode_context_parallel_size",
)


def parts_of(notes: tuple[Assumption, ...]) -> dict[str, Assumption]:
    return {note.name: note for note in notes if note.name in PARTS}


@pytest.mark.parametrize(("model", "open_parts"), [("llama-3.3-70b", 2), ("deepseek-v3", 4)])
def test_what_is_chosen_may_be_stated_and_is_the_same_answer(asked: Asked, model: str, open_parts: int) -> None:
    question = asked(model, "h200", load=users(64, 2_000, 500))
    chosen = size(question)
    notes = parts_of(chosen.assumptions)
    layout = StatedLayout(**{name: note.value for name, note in notes.items()})  # type: ignore[arg-type]
    stated = size(replace(question, layout=layout))

    assert len(notes) == open_parts
    assert {(note.origin, note.source) for note in notes.values()} == {("chosen", SIZED)}
    assert (stated.gpus, stated.layout) == (chosen.gpus, chosen.layout)
    assert {(note.origin, note.source) for note in parts_of(stated.assumptions).values()} == {("request", None)}


def test_given_gpus_say_how_many_and_why_they_are_laid_out_so(asked: Asked) -> None:
    loaded = capacity_of(asked("qwen3-32b", load=users(16, 2_000, 500)), 8)
    unasked = replace(loaded, load=users(None, 2_000, 500))
    of_rate = replace(loaded, load=arrivals(1e3, 2_000, 500))  # more than any layout answers
    reasons = [
        parts_of(capacity(each).assumptions)["tensor_parallel_size"].source for each in (loaded, unasked, of_rate)
    ]

    assert reasons == [SOONEST, MOST.format("the most requests at once"), MOST.format("the highest rate")]
    whole = replace(unasked, input_tokens=None, output_tokens=None, is_count_stated=False)
    notes = {note.name: note for note in capacity(whole).assumptions}
    assert (notes["gpu_count"].value, notes["gpu_count"].origin, notes["gpu_count"].source) == (8, "default", COUNT)
    assert "the longest context" in (notes["tensor_parallel_size"].source or "")
    plain = replace(whole, model=asked("llama-3.1-8b").model, gpu_count=100)
    assert parts_of(capacity(plain).assumptions)["tensor_parallel_size"].source == PLAINEST


def test_pods_and_options_say_whose_layout_it_is(asked: Asked, catalog: Snapshot) -> None:
    question = asked("qwen3-32b", load=users(16, 2_000, 500))
    stated = replace(question, layout=StatedLayout(tensor_parallel_size=2))

    assert parts_of(replicas(question).assumptions)["tensor_parallel_size"].source == POD
    assert parts_of(replicas(stated).assumptions)["tensor_parallel_size"].origin == "request"
    options = {note.name: note for note in recommend(recommendation_of(question, catalog, "h100")).assumptions}
    assert options["layout"].source == OPTION
    fixed = {note.name: note for note in recommend(recommendation_of(stated, catalog, "h100")).assumptions}
    assert (fixed["tensor_parallel_size"].value, fixed["tensor_parallel_size"].origin) == (2, "request")
    assert "layout" not in fixed


def test_tables_in_the_host_are_told_with_their_bytes(asked: Asked) -> None:
    # 768,022,850 rows of 256 values and 8 scales (deepseek-ai/DeepSeek-V4.1-Flash); Qwen3.8-Flash-Next's in bf16.
    for model, printed in (("deepseek-v4.1-flash", "203 GB"), ("qwen3.8-flash-next", "102 GB")):
        answer = capacity(capacity_of(asked(model, load=users(16, 2_000, 500)), 8))
        note = next(each for each in answer.assumptions if each.name == "engram_config.cpu_offload")

        assert f"up to {printed} a replica" in (note.source or "")
        assert any(
            warning.startswith(f"each replica keeps {printed} of tables in its host") for warning in answer.warnings
        )

"""`/size` as the engine's question, as a row and as lines."""

from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.errors import RefusedStartError
from service.questions.asked import Desk
from service.questions.capacity import CapacityQuery
from service.questions.formats import written
from service.questions.replicas import ReplicasQuery
from service.questions.size import OF_ANY_TIME, SIZE, SizeAnswer, SizeBody, SizeQuery
from service.questions.sources import Sources
from tests.conftest import shared_timers

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100",
    "concurrent_requests": 64,
    "input_tokens": 1000,
    "output_tokens": 200,
}


@pytest.fixture(scope="module")
def answer(sources: Sources) -> SizeAnswer:
    return SizeQuery(**ASKED).answer(sources)


def test_every_field_reaches_the_engine_s_question(sources: Sources) -> None:
    asked = SizeQuery(
        **{**ASKED, "concurrent_requests": None}, request_rate_per_s=4, disaggregated=True, spare_replicas=1,
        headroom_fraction=0.25, ttft_s=0.5, tensor_parallel_size=2, max_num_seqs=32, engine="sglang",
    )  # fmt: skip

    question = asked.looked_up(sources)

    assert (question.model.id, question.gpu.id) == ("llama-3.1-8b-instruct", "h100-sxm-80gb")
    assert (question.load.request_rate_per_s, question.load.input_tokens, question.load.output_tokens) == (4, 1000, 200)
    assert (question.headroom.spare_replicas, question.headroom.headroom_fraction) == (1, 0.25)
    assert (question.limits.ttft_s, question.limits.tpot_s) == (0.5, None)
    assert question.layout.tensor_parallel_size == 2
    assert question.settings.max_num_seqs == 32
    assert question.rules.engine == "sglang"
    assert question.disaggregated
    assert {offer.gpu for offer in question.offers} == {"h100-sxm-80gb"}


def test_a_body_is_a_query_with_a_model_that_may_be_pasted(sources: Sources, answer: SizeAnswer) -> None:
    assert SizeBody(**ASKED).answer(sources).json == answer.json


def test_the_row_holds_every_single_value_by_its_path(answer: SizeAnswer) -> None:
    (row,) = answer.rows()

    assert row["gpus"] == answer.result.gpus
    assert row["memory_per_gpu.weight_bytes"] == answer.result.memory_per_gpu.weight_bytes
    assert row["catalog_revision"] == 0
    assert "engine_args" not in row


def test_the_lines_say_how_many_of_what(answer: SizeAnswer) -> None:
    assert answer.lines()[0] == "1 x h100-sxm-80gb for llama-3.1-8b-instruct (bf16, cache bf16)"
    assert answer.labels() == {"model": "llama-3.1-8b-instruct", "gpu": "h100-sxm-80gb"}


def test_examples_are_legal_questions(sources: Sources) -> None:
    asked = SizeBody(**{**ASKED, "tensor_parallel_size": 2})

    assert asked.answer(sources).result.layout.tensor_parallel_size == 2


def test_memory_is_as_sure_as_ever(sources: Sources) -> None:
    counts = SizeQuery(**ASKED, confidence=0.9).answer(sources).result.confidence.counts

    assert len({count.gpus for count in counts}) == 1
    assert [count.probability for count in counts] == [0.5, 0.8, 0.9, 0.95]


def test_memory_alone_needs_no_times(catalog: Snapshot) -> None:
    asked = {
        "model": "llama-3.1-8b",
        "gpu": "h100",
        "concurrent_requests": 64,
        "input_tokens": 900,
        "output_tokens": 90,
    }
    timers = shared_timers()

    whole = Desk(timers).answer(SIZE, SIZE.body.model_validate(asked), catalog).document
    memory = Desk(timers).answer(SIZE, SIZE.body.model_validate({**asked, "latency": "none"}), catalog).document

    assert memory["latency"] is None
    assert whole["latency"] is not None
    for name in ("feasible", "gpus", "memory_per_gpu", "kv_cache", "engine_args"):
        assert memory[name] == whole[name]


@pytest.mark.parametrize("stated", [{"ttft_s": 0.5}, {"tpot_s": 0.04}])
def test_memory_alone_keeps_no_limit(stated: dict[str, float]) -> None:
    asked = {
        "model": "llama-3.1-8b",
        "gpu": "h100",
        "concurrent_requests": 64,
        "input_tokens": 900,
        "output_tokens": 90,
    }

    with pytest.raises(ValueError, match=f"latency is none, and {next(iter(stated))}"):
        SIZE.body.model_validate({**asked, **stated, "latency": "none"})


@pytest.mark.parametrize("field", sorted(OF_ANY_TIME))
@pytest.mark.parametrize("users", [64, 900])
def test_a_number_that_times_do_not_change_is_told_without_them(catalog: Snapshot, field: str, users: int) -> None:
    desk, asked = Desk(shared_timers()), {**ASKED, "concurrent_requests": users}
    alone = SizeBody(**asked, field=field)

    assert alone.is_of_memory_alone
    told, whole = (desk.answer(SIZE, body, catalog) for body in (alone, SizeBody(**asked)))
    assert whole.result.latency is not None
    assert written(told, alone).text == written(whole, SizeBody(**asked, format="json", field=field)).text


@pytest.mark.parametrize("more", [{"ttft_s": 1}, {"field": "replicas"}, {"confidence": 0.9}, {"levers": "all"}])
def test_a_number_that_times_may_change_is_told_with_them(more: dict[str, Any]) -> None:
    assert not SizeBody(**{**ASKED, "field": "gpus", **more}).is_of_memory_alone


LIMITED: dict[str, Any] = {
    "model": "llama-3.1-8b", "gpu": "h100", "request_rate_per_s": 40, "input_tokens": 1000, "output_tokens": 200,
    "ttft_s": 1,
}  # fmt: skip


@pytest.mark.parametrize("field", ["gpus", "latency.ttft_s.p95", "one_gpu_step_less.gpus", "cost.usd_per_hour"])
def test_a_number_that_levers_do_not_change_is_told_without_them(catalog: Snapshot, field: str) -> None:
    desk, alone = Desk(shared_timers()), SizeBody(**LIMITED, field=field)

    assert alone.levers == "none"
    told, whole = (desk.answer(SIZE, body, catalog) for body in (alone, SizeBody(**LIMITED)))
    assert (bool(told.result.levers), bool(whole.result.levers)) == (False, True)
    assert written(told, alone).text == written(whole, SizeBody(**LIMITED, field=field)).text


def test_gauges_are_told_without_levers(catalog: Snapshot) -> None:
    desk, alone = Desk(shared_timers()), SizeBody(**LIMITED, format="prometheus")

    assert alone.levers == "none"
    told, whole = (desk.answer(SIZE, body, catalog) for body in (alone, SizeBody(**LIMITED)))
    assert dict(told.gauges()) == dict(whole.gauges())


@pytest.mark.parametrize("more", [{"field": "levers.0.gpus"}, {}, {"field": "gpus", "levers": "all"}])
def test_levers_are_looked_for_where_they_are_read(more: dict[str, Any]) -> None:
    assert SizeBody(**LIMITED, **more).levers == more.get("levers", "settings")


def test_nothing_but_levers_is_left_out_without_them(catalog: Snapshot) -> None:
    desk = Desk(shared_timers())

    whole, told = (
        desk.answer(SIZE, SizeBody(**LIMITED, **more), catalog).document for more in ({}, {"levers": "none"})
    )

    assert told == {**whole, "levers": []}


@pytest.mark.parametrize("gpu", ["a40", "a100-sxm-80gb", "l40s"])
def test_a_number_of_gpus_that_nothing_runs_on_is_refused(sources: Sources, gpu: str) -> None:
    """vLLM 0.33 plans DeepSeek V4 everywhere; `v1/attention/ops/flashmla.py` has no sparse kernel below Hopper."""
    asked: dict[str, Any] = {**ASKED, "model": "deepseek-v4-pro", "gpu": gpu}
    on_gpus = {"model": "deepseek-v4-pro", "gpu": gpu, "gpu_count": 64}

    for question in (SizeQuery(**asked), ReplicasQuery(**asked)):
        with pytest.raises(RefusedStartError, match="run on compute capability") as refused:
            question.answer(sources)
        assert refused.value.field == "gpu"
    assert SizeQuery(**{**asked, "gpu": "h200"}).answer(sources).result.feasible
    # What the engine plans of its cache there is told of given GPUs, and that it does not start.
    assert any(each.startswith("no command: ") for each in CapacityQuery(**on_gpus).answer(sources).result.warnings)

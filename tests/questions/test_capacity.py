"""`/capacity` as the engine's question, as rows and as lines."""

from typing import Any

import pytest

from service.questions.capacity import CapacityAnswer, CapacityQuery
from service.questions.sources import Sources

ASKED: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "h100"}


@pytest.fixture(scope="module")
def answer(sources: Sources) -> CapacityAnswer:
    return CapacityQuery(**ASKED).answer(sources)


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        ({}, 1),
        ({"tensor_parallel_size": 2}, 2),
        ({"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, 4),
        ({"data_parallel_size": 4}, 4),
        ({"tensor_parallel_size": 2, "gpu_count": 6}, 6),
    ],
)
def test_without_a_count_the_gpus_are_those_of_one_replica(sources: Sources, asked: dict[str, Any], gpus: int) -> None:
    assert CapacityQuery(**ASKED, **asked).looked_up(sources).gpu_count == gpus


def test_lengths_may_be_left_out(sources: Sources) -> None:
    question = CapacityQuery(**ASKED, output_tokens=10).looked_up(sources)

    assert (question.input_tokens, question.output_tokens) == (None, 10)
    assert (question.load.input_tokens, question.load.output_tokens) == (0, 10)


def test_there_is_a_row_for_each_context_length(answer: CapacityAnswer) -> None:
    rows = answer.rows()

    assert [row["context_tokens"] for row in rows] == [row.context_tokens for row in answer.result.table]
    assert {(row["model"], row["gpu"], row["gpus"]) for row in rows} == {("llama-3.1-8b-instruct", "h100-sxm-80gb", 1)}
    assert len({tuple(row) for row in rows}) == 1


def test_the_lines_say_how_many_requests_fit(answer: CapacityAnswer) -> None:
    requests = answer.result.per_replica.max_concurrent_requests

    assert answer.lines()[3].startswith(f"requests at once: {requests} per replica")

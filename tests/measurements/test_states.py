"""Results in odd states: none answered, several in one text, arrivals in bunches."""

import json
from typing import Any

import pytest

from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement

RESULT: dict[str, Any] = {
    "model_id": "Qwen/Qwen3-32B", "num_prompts": 200, "request_rate": 2.0, "completed": 200, "burstiness": 1.0,
    "total_input_tokens": 204_800, "total_output_tokens": 25_600, "mean_ttft_ms": 90.0, "mean_tpot_ms": 6.0,
}  # fmt: skip


def test_a_result_of_no_answer_is_refused() -> None:
    with pytest.raises(UnreadableTextError, match="200 of 200 requests failed"):
        read_measurement(json.dumps(RESULT | {"completed": 0}))


def test_one_result_in_a_list_is_read_and_several_are_counted() -> None:
    assert read_measurement(json.dumps([RESULT])).settings["model"] == "Qwen/Qwen3-32B"
    with pytest.raises(UnreadableTextError, match="a list of 2 results"):
        read_measurement(json.dumps([RESULT, RESULT]))


@pytest.mark.parametrize(("burstiness", "doubts"), [(1.0, 0), (0.5, 1)])
def test_arrivals_in_bunches_are_doubted(burstiness: float, doubts: int) -> None:
    assert len(read_measurement(json.dumps(RESULT | {"burstiness": burstiness})).doubts) == doubts

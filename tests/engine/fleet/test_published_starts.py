"""Servers that people start today, and some that they tell of as not starting, each asked as its command says.

Source: https://github.com/vllm-project/recipes of August 2026, by the path of each recipe: commands that name their
GPUs and how many, and what its notes say fits, or does not.
"""

import csv
from pathlib import Path
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.errors import EngineError
from service.questions.asked import Desk
from service.questions.capacity import CAPACITY, CapacityAnswer

# Of a command that names none of them.
OWN_LAYOUT = {"tensor_parallel_size": 1, "pipeline_parallel_size": 1, "data_parallel_size": 1}
with Path(__file__).with_name("published_starts.csv").open(encoding="utf-8") as file:
    STARTS = list(csv.DictReader(file))


@pytest.mark.parametrize("start", STARTS, ids=lambda start: f"{start['model']} {start['gpu']} {start['settings']}")
def test_what_people_start_starts(start: dict[str, str], catalog: Snapshot) -> None:
    stated: dict[str, Any] = dict(each.split("=") for each in start["settings"].split(";") if each)
    asked = CAPACITY.body.model_validate(
        {**OWN_LAYOUT, "model": start["model"], "gpu": start["gpu"], "gpu_count": int(start["gpu_count"]), **stated}
    )

    assert _starts(asked, catalog) == (start["starts"] == "yes")


def _starts(asked: Any, catalog: Snapshot) -> bool:
    try:
        answer = Desk(None).answer(CAPACITY, asked, catalog)
    except EngineError:
        return False
    assert isinstance(answer, CapacityAnswer)
    return answer.result.feasible

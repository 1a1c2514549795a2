"""Layers over pipeline stages, as vLLM deals them out."""

import pytest

from service.engine.memory.stages import pipeline_stages

# vLLM tests/distributed/test_pipeline_partition.py (`test_uneven_auto_partition`)
PARTITIONS = {
    (2, 2): [(0, 1), (1, 2)],
    (3, 2): [(0, 2), (2, 3)],
    (3, 3): [(0, 1), (1, 2), (2, 3)],
    (4, 3): [(0, 1), (1, 3), (3, 4)],
    (5, 3): [(0, 2), (2, 4), (4, 5)],
}


@pytest.mark.parametrize(("case", "stages"), PARTITIONS.items(), ids=str)
def test_what_remains_spares_the_last_stage_and_then_the_first(
    case: tuple[int, int], stages: list[tuple[int, int]]
) -> None:
    assert pipeline_stages(*case) == stages

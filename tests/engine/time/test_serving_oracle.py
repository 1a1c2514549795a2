"""Every published serving run of the referee, by the lines the accuracy report must keep."""

from statistics import median

import pytest

from service.calibration.serving import Measured, Run, compare_run, resolve_run
from service.catalog.snapshot import Snapshot
from tests.conftest import referee_rows, shared_timers


@pytest.fixture(scope="module")
def compared(catalog: Snapshot) -> list[Measured]:
    rows, timers = referee_rows("serving.jsonl"), shared_timers()
    runs = [resolve_run(row, catalog) for row in rows]
    assert all(isinstance(run, Run) for run in runs), "a run was left out"
    return [it for run in runs if isinstance(run, Run) for it in compare_run(run, timers)]


# engine, part of the GPU's id, quantity: highest median and 90th percentile of the error
LINES = [
    ("vllm", "h100", "tpot", 0.07, 0.20),
    ("vllm", "h100", "ttft", 0.12, 0.30),
    ("vllm", "h200", "tpot", 0.07, 0.20),
    ("vllm", "h200", "ttft", 0.12, 0.30),
    ("vllm", "b200", "tpot", 0.12, 1.0),
    ("vllm", "b200", "ttft", 0.20, 1.0),
    ("tensorrt-llm", "", "tpot", 0.12, 1.0),
    ("tensorrt-llm", "", "ttft", 0.20, 1.0),
    ("tensorrt-llm", "", "throughput", 0.15, 1.0),
]


@pytest.mark.parametrize(("engine", "gpu", "quantity", "middle", "tail"), LINES)
def test_errors_stay_within_the_line(
    compared: list[Measured], engine: str, gpu: str, quantity: str, middle: float, tail: float
) -> None:
    sizes = sorted(
        abs(it.error_fraction)
        for it in compared
        if it.engine == engine and it.gpu.startswith(gpu) and it.quantity == quantity
    )

    assert len(sizes) >= 40
    assert median(sizes) <= middle
    assert sizes[int(0.9 * len(sizes))] <= tail

"""Whether arrivals piled up in a published run, by what it measured."""

from typing import Any

import pytest

from service.calibration.serving import Run, resolve_run
from service.calibration.verdicts import saturated
from service.catalog.snapshot import Snapshot

ROW: dict[str, Any] = {
    "id": "one", "source": "a source", "engine": "vLLM", "engine_version": "v0.15.1", "tp": 1, "num_gpus": 1,
    "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "NVIDIA H100 SXM 80GB", "isl": 342, "osl": 128,
    "dataset": "random", "reported": {},
}  # fmt: skip


def run(catalog: Snapshot, **more: Any) -> Run:
    resolved = resolve_run({**ROW, **more}, catalog)
    assert isinstance(resolved, Run)
    return resolved


@pytest.mark.parametrize(("median_ms", "expected"), [(6_537.6, True), (41.1, False)])
def test_a_median_wait_of_a_twentieth_of_the_run_is_a_queue_that_grows(
    catalog: Snapshot, median_ms: float, expected: object
) -> None:
    # GPUStack's Qwen3.5-35B-A3B at 8/s: the last of 1,000 waits 12.7 s, the middle one 6.5 s.
    reported = {"ttft_ms": {"mean": median_ms, "p50": median_ms}, "output_tokens_per_s": 1_000.0}
    row = {"request_rate_per_s": 8.0, "arrival": "constant", "notes": "Requests 1000, duration 148.88 s"}

    assert saturated(run(catalog, **row, reported=reported)) is expected


def test_few_arrivals_by_chance_tell_nothing_of_a_queue(catalog: Snapshot) -> None:
    # One request a second of 128 tokens: 115 tokens a second were seen, over 8 to 32 requests.
    reported = {"tpot_ms": {"mean": 6.53}, "output_tokens_per_s": 115.0}
    few = {"request_rate_per_s": 1.0, "notes": "few requests (8-32 per run x 3 runs)", "reported": reported}
    even = {**few, "arrival": "constant", "notes": "Requests 500"}

    assert not saturated(run(catalog, **few))
    assert saturated(run(catalog, **even))


def test_what_a_source_says_of_saturation_goes_before_its_figures(catalog: Snapshot) -> None:
    waits = {"ttft_ms": {"mean": 41.1}, "output_tokens_per_s": 1_000.0}

    assert saturated(run(catalog, request_rate_per_s=8.0, saturated=True, reported=waits))

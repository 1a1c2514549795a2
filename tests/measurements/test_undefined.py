"""A figure that nothing can measure is told, and not dropped without a word."""

import json

import pytest
from starlette.testclient import TestClient

from service.measurements.reading import read_measurement

# As vLLM 0.33 `benchmarks/serve.py` writes it, figures made up.
RESULT = {
    "model_id": "meta-llama/Llama-3.1-8B-Instruct", "num_prompts": 80, "completed": 80, "max_concurrency": 8,
    "request_rate": float("inf"), "total_input_tokens": 80_000, "total_output_tokens": 16_000,
    "mean_ttft_ms": 80.0, "mean_tpot_ms": 9.0, "request_throughput": 3.9, "output_throughput": 780.0,
}  # fmt: skip
PRINTED = """============ Serving Benchmark Result ============
Successful requests:                     80
Maximum request concurrency:             8
Total input tokens:                      80000
Total generated tokens:                  16000
Request throughput (req/s):              3.90
Mean TTFT (ms):                          {ttft}
Mean TPOT (ms):                          9.00"""


def told(text: str) -> list[str]:
    """Return what is said of figures that are not used."""
    return [doubt.sentence for doubt in read_measurement(text).doubts]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (-80.0, "line 1: ttft_s.mean is -80, which nothing can measure: it is not used"),
        (float("nan"), "line 1: mean_ttft_ms is NaN, which nothing can measure: it is not used"),
        (float("inf"), "line 1: mean_ttft_ms is Infinity, which nothing can measure: it is not used"),
    ],
)
def test_a_figure_of_a_result_is_told_to_be_none(client: TestClient, value: float, sentence: str) -> None:
    text = json.dumps({**RESULT, "mean_ttft_ms": value})

    assert told(text) == [sentence]
    assert "ttft_s.mean" not in read_measurement(text).figures
    answer = client.post("/measurements", json={"text": text, "question": {"gpu": "h100"}})
    assert (answer.status_code, sentence in answer.json()["warnings"]) == (200, True)


def test_a_rate_without_end_and_figures_that_are_some_are_no_matter_of_doubt() -> None:
    assert told(json.dumps(RESULT)) == []
    assert told(PRINTED.format(ttft="80.00")) == []
    assert told(json.dumps({**RESULT, "mean_ttft_ms": 0.0})) == []


@pytest.mark.parametrize("value", ["-80.00", "nan", "inf"])
def test_a_printed_figure_is_told_by_its_label_and_line(value: str) -> None:
    assert told(PRINTED.format(ttft=value)) == [
        f"line 7: Mean TTFT (ms) is {value}, which nothing can measure: it is not used"
    ]


def test_counts_that_are_no_numbers_are_no_error_of_the_service(client: TestClient) -> None:
    text = json.dumps({**RESULT, "total_input_tokens": float("nan"), "max_concurrency": float("inf")})
    answer = client.post("/measurements", json={"text": text, "question": {"gpu": "h100", "input_tokens": 1000}})

    assert answer.status_code in (200, 422)


@pytest.mark.parametrize("cache", ["460,496,000,000,000,000,000", "9" * 400])
def test_a_figure_beyond_all_that_is_stored_is_told_and_stores_nothing_of_it(writable: TestClient, cache: str) -> None:
    log = f"INFO Model loading took 15.0 GiB memory\nINFO GPU KV cache size: {cache} tokens"
    question = {"model": "llama-3.1-8b", "gpu": "a100-80gb", "engine_version": "0.31.0"}
    answer = writable.post("/measurements", json={"text": log, "question": question})

    assert answer.status_code == 200, answer.text
    assert [term["name"] for term in answer.json()["terms"]] == ["weight_bytes"]
    assert any("line 2: kv_cache.tokens is" in told for told in answer.json()["warnings"])

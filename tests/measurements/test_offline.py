"""Benchmarks of vLLM without a server: as their JSON has it, and as they print it."""

import json
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.measurements.checking import check
from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement
from service.questions.asked import Desk

# https://github.com/vllm-project/vllm/pull/7117, on an H100; tokens of prompts and answers together.
PRINTED = """$ python benchmarks/benchmark_throughput.py --input-len 256 --output-len 256 --model meta-llama/Meta-Llama-3-8B
Throughput: 24.32 requests/s, 12453.04 tokens/s
"""
THROUGHPUT: dict[str, Any] = {
    "elapsed_time": 41.11,
    "num_requests": 1_000,
    "total_num_tokens": 512_000,
    "requests_per_second": 24.32,
    "tokens_per_second": 12_453.04,
}
# vLLM 0.33 benchmarks/latency.py (`main`); figures made up.
LATENCY: dict[str, Any] = {
    "avg_latency": 1.02,
    "std_latency": 0.01,
    "latencies": [1.01, 1.03],
    "percentiles": {"10": 1.0, "25": 1.0, "50": 1.02, "75": 1.03, "90": 1.03, "99": 1.03},
}
ASIDE: dict[str, str | int] = {"model": "llama-3-8b", "gpu": "h100"}


def figures(text: str) -> dict[str, float]:
    return {name: figure.value for name, figure in read_measurement(text).figures.items()}


def test_all_requests_of_a_throughput_are_sent_at_once() -> None:
    observed = read_measurement(json.dumps(THROUGHPUT))

    assert observed.what == "vllm bench throughput"
    assert figures(json.dumps(THROUGHPUT)) == {"requests_per_s": 24.32}
    assert observed.settings == {"num_prompts": 1_000, "concurrent_requests": 1_000}


def test_a_batch_lasts_as_long_as_each_of_its_requests() -> None:
    assert figures(json.dumps(LATENCY)) == {
        "end_to_end_s.mean": 1.02,
        "end_to_end_s.p50": 1.02,
        "end_to_end_s.p99": 1.03,
    }


@pytest.mark.parametrize("document", [THROUGHPUT, LATENCY])
def test_nothing_is_compared_before_the_lengths_are_stated(catalog: Snapshot, document: dict[str, Any]) -> None:
    checked = check(json.dumps(document), {**ASIDE, "concurrent_requests": 8}, catalog, Desk(None))
    stated = {**ASIDE, "concurrent_requests": 8, "input_tokens": 256, "output_tokens": 256}

    assert not checked.terms
    assert any("does not tell how long requests were" in warning for warning in checked.warnings)
    assert check(json.dumps(document), stated, catalog, Desk(None)).terms


def test_what_is_printed_is_read_with_its_command() -> None:
    plain = read_measurement(PRINTED)
    counted = read_measurement(PRINTED.replace("--model", "--num-prompts 1000 --model"))

    assert plain.settings == {"model": "meta-llama/Meta-Llama-3-8B", "input_tokens": 256, "output_tokens": 256}
    assert "does not tell how many requests" in plain.doubts[0].sentence
    assert counted.settings["concurrent_requests"] == counted.settings["num_prompts"] == 1_000


def test_requests_are_counted_by_their_tokens() -> None:
    # vLLM 0.33 benchmarks/throughput.py (`main`)
    text = (
        "Throughput: 24.32 requests/s, 12453.04 total tokens/s, 6226.52 output tokens/s\n"
        "Total num prompt tokens:  256000\nTotal num output tokens:  256000\n"
    )

    observed = read_measurement(text)

    assert observed.settings == {
        "input_tokens": 256,
        "output_tokens": 256,
        "num_prompts": 1_000,
        "concurrent_requests": 1_000,
    }
    assert figures(text) == {"requests_per_s": 24.32, "output_tokens_per_s": 6_226.52}
    slow = "Throughput: 0.05 requests/s, 51.20 total tokens/s, 25.60 output tokens/s\nTotal num output tokens:  51200"
    assert not read_measurement(slow).settings  # its rate has one digit


def test_a_printed_batch_is_as_large_as_its_arguments_say() -> None:
    text = (
        "Namespace(input_len=32, output_len=128, batch_size=8, n=1, model='meta-llama/Llama-3.1-8B', seed=0)\n"
        "Avg latency: 1.02 seconds\n50% percentile latency: 1.0 seconds\n75% percentile latency: 1.03 seconds\n"
    )

    observed = read_measurement(text)

    assert observed.settings["concurrent_requests"] == observed.settings["num_prompts"] == 8
    assert (observed.settings["input_tokens"], observed.settings["output_tokens"]) == (32, 128)
    assert figures(text) == {"end_to_end_s.mean": 1.02, "end_to_end_s.p50": 1.0}


def test_two_results_are_those_of_two_runs() -> None:
    with pytest.raises(UnreadableTextError, match="line 3: a second result"):
        read_measurement(PRINTED + PRINTED.splitlines()[1])

"""GuideLLM's tables: of one benchmark they are read in either layout; of several, each is named."""

import json

import pytest

from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement

# The layout of https://github.com/vllm-project/guidellm/issues/136; numbers of our own that add up.
HEAD = """guidellm benchmark --target http://localhost:8000 --rate-type sweep --data prompt_tokens=512,output_tokens=256
Benchmarks Metadata:
    Worker:type_='generative_requests_worker' backend_type='openai_http' backend_target='http://127.0.0.1:8000'
    backend_model='meta-llama/Llama-3.1-8B-Instruct' backend_info={'max_output_tokens': 16384}

Benchmarks Info:
================================================================================================================
Metadata                                      |||| Requests Made  ||| Prompt Tok/Req  ||| Output Tok/Req  ||
    Benchmark| Start Time| End Time| Duration (s)|  Comp|  Inc|  Err|   Comp|  Inc|  Err|   Comp|  Inc|  Err
-------------|-----------|---------|-------------|------|-----|-----|-------|-----|-----|-------|-----|-----
  synchronous|   20:10:02| 20:12:13|        130.7|    30|    0|    0|  512.3|  0.0|  0.0|  256.0|  0.0|  0.0
constant@0.69|   20:12:23| 20:13:09|         46.5|    32|    0|    0|  511.8|  0.0|  0.0|  256.0|  0.0|  0.0
================================================================================================================


Benchmarks Stats:
================================================================================================================
Metadata     | Request Stats         || Out Tok/sec| Tot Tok/sec| Req Latency (ms)||| TTFT (ms)          ||| ITL (ms)        ||
    Benchmark| Per Second| Concurrency|        mean|        mean| mean| median|  p99|  mean| median|    p99| mean| median|  p99
-------------|-----------|------------|------------|------------|-----|-------|-----|------|-------|-------|-----|-------|-----
"""
SYNCHRONOUS = "  synchronous|       0.23|        1.00|        58.7|       293.7| 4.35|   4.30| 4.90|  60.0|   59.0|   63.0| 16.8|   16.5| 19.0\n"
CONSTANT = "constant@0.69|       0.65|        2.93|       165.1|       825.3| 4.54|   4.57| 4.58|  72.0|   73.5|   80.0| 17.5|   17.6| 17.7\n"
END = "=" * 112 + "\n"


@pytest.mark.parametrize(
    ("row", "load", "figures"),
    [
        (SYNCHRONOUS, {"concurrent_requests": 1, "input_tokens": 512, "num_prompts": 30},
         {"ttft_s.mean": 0.06, "tpot_s.p99": 0.019, "end_to_end_s.mean": 4.35, "requests_per_s": 0.23}),
        (CONSTANT, {"request_rate_per_s": 0.69, "output_tokens": 256, "num_prompts": 32},
         {"ttft_s.p50": 0.0735, "tpot_s.mean": 0.0175, "output_tokens_per_s": 165.1}),
    ],
    ids=["synchronous", "constant"],
)  # fmt: skip
def test_the_first_tables_say_one_benchmark(row: str, load: dict[str, float], figures: dict[str, float]) -> None:
    observed = read_measurement(HEAD + row + END)

    assert observed.what == "GuideLLM report"
    assert {"model": "meta-llama/Llama-3.1-8B-Instruct", **load}.items() <= observed.settings.items()
    assert {name: observed.figures[name].value for name in figures} == pytest.approx(figures)


def test_a_sweep_is_refused_by_the_names_of_its_benchmarks() -> None:
    with pytest.raises(UnreadableTextError, match=r"of synchronous, constant@0\.69: each is another load") as refusal:
        read_measurement(HEAD + SYNCHRONOUS + CONSTANT + END)

    assert refusal.value.line == HEAD.count("\n") + 2
    assert "one at a time" in refusal.value.accepted


def test_a_report_of_several_benchmarks_names_them() -> None:
    runs = [
        {"args": {"strategy": strategy}, "metrics": {}}
        for strategy in ({"type_": "synchronous"}, {"type_": "constant", "rate": 0.6875})
    ]

    with pytest.raises(UnreadableTextError, match=r"2 benchmarks: synchronous, constant@0\.6875"):
        read_measurement(json.dumps({"benchmarks": runs}))


@pytest.mark.parametrize(
    "text",
    [
        "Benchmarks Stats:\na|b|c\nd|e\nx|1|2\n",
        "i Request Latency Statistics (Completed Requests)\n|====\n| a | b |\n| c |\n| d | e |\n| concurrent | 1 |\n",
    ],
)
def test_heads_of_unequal_widths_are_no_table(text: str) -> None:
    with pytest.raises(UnreadableTextError, match="measure nothing"):
        read_measurement(text)

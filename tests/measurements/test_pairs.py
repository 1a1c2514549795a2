"""Results as spreadsheets keep them, and today's reports: a metric a row, a benchmark a row, other dividers and commas."""

import json
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.measurements.checking import check
from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement
from service.questions.asked import Desk
from service.questions.refusals import RefusalError

# https://github.com/ai-dynamo/aiperf, exporters/csv_exporter.py; figures are made up.
AIPERF = """Metric,avg,min,max,p50,p95,p99,std
Inter Token Latency (ms),18.50,17.95,19.00,17.80,18.30,18.50,0.10
Output Sequence Length (tokens),99.00,99.00,99.00,99,99,99,0.00
Request Latency (ms),1851.25,1783.41,1900.00,1800.00,1850.00,1890.00,20.00

Metric,Value
Output Token Throughput (tokens/sec),218.25
Request Count,64
Request Throughput (requests/sec),2.25
"""
VLLM = {
    "mean_ttft_ms": 120.5, "p99_ttft_ms": 900.25, "mean_tpot_ms": 24.5, "request_throughput": 12.5,
    "max_concurrency": 64, "completed": 640, "total_input_tokens": 640_000, "total_output_tokens": 128_000,
}  # fmt: skip
SAID = {"ttft_s.mean": 0.1205, "ttft_s.p99": 0.90025, "tpot_s.mean": 0.0245, "requests_per_s": 12.5}
LOADED = {"concurrent_requests": 64, "num_prompts": 640, "input_tokens": 1_000, "output_tokens": 200}
# https://github.com/vllm-project/guidellm of August 2026, benchmark/outputs/csv.py; some of its columns.
COLUMNS = (
    (("Run Info", "Backend", ""), '"{""type_"": ""openai_http"", ""model"": ""Qwen/Qwen3-8B""}"'),
    (("Benchmark", "Strategy", ""), "concurrent"),
    (("Request Counts", "Successful", ""), "500"),
    (("Request Counts", "Errored", ""), "0"),
    (("Request Counts", "Total", ""), "503"),
    (("Time to First Token", "Successful ms", "Mean"), "120.12345678901234"),
    (("Time to First Token", "Successful ms", "Median"), "110.5"),
    (("Time to First Token", "Successful ms", "Percentiles"), '"[1, 1, 2, 3, 4, 5, 7, 8, 200.5, 300.5, 400]"'),
    (("Inter Token Latency", "Successful ms", "Mean"), "24.25"),
    (("Server Throughput", "Successful Requests/Sec", "Mean"), "12.5"),
    (("Server Throughput", "Successful Concurrency", "Mean"), "63.7"),
    (("Token Metrics", "Successful Input Tokens", "Mean"), "1000.25"),
    (("Token Metrics", "Successful Output Tokens", "Mean"), "200.0"),
)


def guidellm(*rows: dict[tuple[str, str, str], str]) -> str:
    heads = [",".join(head[level] for head, _ in COLUMNS) for level in range(3)]
    return "\n".join([*heads, *(",".join(row.get(head, cell) for head, cell in COLUMNS) for row in rows)])


def report(strategy: dict[str, Any]) -> str:
    """Return a report as GuideLLM writes it since 0.4."""
    metrics = {
        "request_totals": {"successful": 500, "incomplete": 3, "errored": 0, "total": 503},
        "request_concurrency": {"successful": {"mean": 63.7}},
        "time_to_first_token_ms": {"successful": {"mean": 120.0}},
    }
    run = {"config": {"strategy": strategy, "backend": {"model": "Qwen/Qwen3-8B"}}, "metrics": metrics}
    return json.dumps({"metadata": {"version": 2}, "benchmarks": [run]})


@pytest.mark.parametrize("divider", [";", "\t"])
def test_a_table_divided_otherwise_says_the_same(divider: str) -> None:
    said = read_measurement(AIPERF)

    divided = read_measurement(AIPERF.replace(",", divider))

    assert (divided.figures, divided.settings) == (said.figures, said.settings)
    assert said.figures["tpot_s.mean"].value == pytest.approx(0.0185)


def test_a_decimal_comma_is_no_comma_of_thousands() -> None:
    table = read_measurement(AIPERF.replace(",", ";").replace(".", ","))

    assert table.figures == read_measurement(AIPERF).figures
    assert table.figures["end_to_end_s.mean"].value == pytest.approx(1.85125)


@pytest.mark.parametrize(
    "text",
    [
        "metric,value\n" + "\n".join(f"{name},{value}" for name, value in VLLM.items()),
        "Metric;Value\n" + "\n".join(f"{name};{str(value).replace('.', ',')}" for name, value in VLLM.items()),
        (
            "name\tvalue\nMean TTFT (ms)\t120.5\nP99 TTFT (ms)\t900.25\nMean TPOT (ms)\t24.5\n"
            "Request throughput (req/s)\t12.5\nMaximum request concurrency\t64\nSuccessful requests\t640\n"
            "Total input tokens\t640000\nTotal generated tokens\t128000"
        ),
        ",".join(VLLM) + "\n" + ",".join(map(str, VLLM.values())),
    ],
    ids=["rows", "decimal commas", "as printed", "columns"],
)
def test_a_metric_a_row_or_a_column_is_a_result(text: str) -> None:
    observed = read_measurement(text)

    assert {name: each.value for name, each in observed.figures.items()} == pytest.approx(SAID)
    assert observed.settings == LOADED


def test_a_value_alone_is_the_mean() -> None:
    observed = read_measurement("Metric,Value\nTime to First Token (ms),120.5\nRequest Count,640\n")

    assert {name: (each.value, each.line) for name, each in observed.figures.items()} == {"ttft_s.mean": (0.1205, 2)}


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("metric,value\nlatency,12\nspeed,3", 2, "'latency,12' is no metric known here"),
        ("metric,value\nmean_ttft_ms,12\nmean_ttft_ms,13", 3, "'mean_ttft_ms' stands here a second time"),
        ("mean_ttft_ms,mean_tpot_ms\n120,24\n130,25", 3, "the table holds 2 results"),
        (AIPERF + "Error Request Count,30\n", 10, "30 of 94 requests failed"),
        (guidellm({}, {}), 5, "a second benchmark begins here, of concurrent, concurrent"),
        (guidellm({("Request Counts", "Errored", ""): "40"}), 4, "40 of 503 requests failed"),
        ("metadata:\n  version: 2\n  guidellm_version: 0.6.0\nbenchmarks:\n", 3, "GuideLLM's report as YAML"),
    ],
)
def test_what_is_no_single_result_is_refused_by_its_line(text: str, line: int, sentence: str) -> None:
    with pytest.raises(UnreadableTextError, match=sentence) as refusal:
        read_measurement(text)

    assert refusal.value.line == line


def test_guidellms_csv_says_what_its_json_does() -> None:
    observed = read_measurement(guidellm({}))

    assert observed.settings == {
        "model": "Qwen/Qwen3-8B", "concurrent_requests": 64, "input_tokens": 1_000, "output_tokens": 200,
    }  # fmt: skip
    assert {name: each.value for name, each in observed.figures.items()} == pytest.approx(
        {"ttft_s.mean": 0.1201235, "ttft_s.p50": 0.1105, "ttft_s.p95": 0.2005, "ttft_s.p99": 0.3005,
         "tpot_s.mean": 0.02425, "requests_per_s": 12.5}
    )  # fmt: skip
    open_loop = read_measurement(guidellm({("Benchmark", "Strategy", ""): "poisson"}))
    assert open_loop.settings["request_rate_per_s"] == 12.5


@pytest.mark.parametrize("row", ["x", '"{}"'])
def test_a_csv_of_guidellm_that_breaks_off_is_refused_by_its_line(row: str) -> None:
    broken = "\n".join([*guidellm({}).splitlines()[:3], row])

    with pytest.raises(UnreadableTextError, match="line 4: the row ends before its strategy"):
        read_measurement(broken)


@pytest.mark.parametrize(
    ("strategy", "load"),
    [
        ({"type_": "throughput", "max_concurrency": None}, {"concurrent_requests": 64}),
        ({"type_": "throughput", "max_concurrency": 128}, {"concurrent_requests": 128}),
        ({"type_": "constant", "rate": 12.5, "max_concurrency": 512}, {"request_rate_per_s": 12.5}),
    ],
)
def test_the_load_of_guidellm_is_that_of_its_strategy(strategy: dict[str, Any], load: dict[str, float]) -> None:
    assert load.items() <= read_measurement(report(strategy)).settings.items()


def test_a_trace_is_no_single_load() -> None:
    with pytest.raises(UnreadableTextError, match="as in a trace"):
        read_measurement(report({"type_": "trace", "relative_timestamps": [0.1]}))


AIPERF_JSON = {
    "time_to_first_token": {"unit": "ms", "avg": 55.2}, "request_count": {"unit": "requests", "avg": 340.0},
    "input_config": {"endpoint": {"model_names": ["Qwen/Qwen3-8B"]}, "loadgen": {"concurrency": 64}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"was_cancelled": True}, "the run was cancelled"),
        ({"error_request_count": {"unit": "requests", "avg": 300.0}}, "300 of 640 requests failed"),
    ],
)
def test_a_run_of_aiperf_that_was_cancelled_or_failed_is_refused(more: dict[str, Any], sentence: str) -> None:
    assert read_measurement(json.dumps(AIPERF_JSON | {"was_cancelled": False})).figures

    with pytest.raises(UnreadableTextError, match=sentence):
        read_measurement(json.dumps(AIPERF_JSON | more))


def test_latency_of_no_load_is_not_compared(catalog: Snapshot) -> None:
    text = "metric,value\nmean_ttft_ms,120\nmean_tpot_ms,24"

    with pytest.raises(RefusalError, match="neither how many requests ran at once nor their rate"):
        check(text, {"gpu": "h100", "model": "qwen3-8b"}, catalog, Desk(None))


def test_fewer_prompts_than_users_are_told(catalog: Snapshot) -> None:
    text = json.dumps(VLLM | {"completed": 32, "num_prompts": 32, "total_input_tokens": 32_000, "model_id": "qwen3-8b"})

    checked = check(text, {"gpu": "h100"}, catalog, Desk(None))

    assert any(told.startswith("32 prompts never are 64 requests at once") for told in checked.warnings)

"""GuideLLM's report as CSV, of one benchmark: heads of three lines, and a row a benchmark.

Source:
    https://github.com/vllm-project/guidellm of August 2026, `benchmark/outputs/csv.py`.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.measurements.cells import value_of
from service.measurements.guidellm import OPEN, Head, refuse_second
from service.measurements.keeping import MS, Lines, check_answered, inside, keep_load, put, state
from service.measurements.observed import Observed, UnreadableTextError

BEGINS: Final = "Run Info,"
HEADS: Final = 3  # lines: group, name, statistic
TIMES: Final[Mapping[tuple[str, str], tuple[str, float]]] = {
    ("Time to First Token", "Successful ms"): ("ttft_s", MS),
    ("Inter Token Latency", "Successful ms"): ("tpot_s", MS),  # as `guidellm.TIMES` says why
    ("Request Latency", "Successful Sec"): ("end_to_end_s", 1.0),
}
STATISTICS: Final[Mapping[str, str]] = {"Mean": "mean", "Median": "p50"}
PERCENTILES: Final[Mapping[str, int]] = {"p95": 8, "p99": 9}  # places in its list, which begins with the least
RATES: Final[Mapping[Head, str]] = {
    ("Server Throughput", "Successful Requests/Sec", "Mean"): "requests_per_s",
    ("Token Throughput", "Successful Output Tokens/Sec", "Mean"): "output_tokens_per_s",
}
LENGTHS: Final[Mapping[Head, str]] = {
    ("Token Metrics", "Successful Input Tokens", "Mean"): "input_tokens",
    ("Token Metrics", "Successful Output Tokens", "Mean"): "output_tokens",
}
STRATEGY: Final = ("Benchmark", "Strategy", "")
RUNNING: Final = ("Server Throughput", "Successful Concurrency", "Mean")
ARRIVED: Final = ("Server Throughput", "Successful Requests/Sec", "Mean")


def report(lines: Lines) -> Observed | None:
    """Return what the report says; None where it is none.

    Raises:
        UnreadableTextError: it is of several benchmarks or of none, breaks off, or too many requests failed.
    """
    if len(lines) < HEADS or not lines[0][1].startswith(BEGINS):
        return None
    rows = [(place, _cells(line)) for place, line in lines]
    heads = list(zip(*(cells for _, cells in rows[:HEADS]), strict=False))
    if STRATEGY not in heads:
        return None
    if len(rows) == HEADS:
        raise UnreadableTextError(lines[-1][0], "the report ends with its heads", "a row below them, of one benchmark")
    named = [dict(zip(heads, cells, strict=False)) for _, cells in rows[HEADS:]]
    if STRATEGY not in named[0]:
        raise UnreadableTextError(rows[HEADS][0], "the row ends before its strategy", "a row as long as its heads")
    if len(named) > 1:
        refuse_second(rows[HEADS + 1][0], (str(each.get(STRATEGY, "")) for each in named))
    return _benchmark(named[0], rows[HEADS][0])


def _benchmark(row: Mapping[Head, str], place: int) -> Observed:
    observed = Observed(what="GuideLLM report", kind="benchmark")
    failed, asked = (value_of(row.get(("Request Counts", name, ""), "")) or 0.0 for name in ("Errored", "Total"))
    check_answered(failed, asked, place)
    state(observed, "model", inside(_json(row.get(("Run Info", "Backend", ""), "")), "model"), place)
    is_open = row[STRATEGY] in OPEN
    keep_load(observed, None if is_open else value_of(row.get(RUNNING, "")), value_of(row.get(ARRIVED, "")), place)
    for head, cell in row.items():
        group, name, statistic = head
        field, scale = TIMES.get((group, name), ("", 1.0))
        if field and statistic in STATISTICS:
            put(observed, f"{field}.{STATISTICS[statistic]}", value_of(_short(cell)), scale, place)
        elif field and statistic == "Percentiles":
            for percentile, value in _percentiles(_json(cell)).items():
                put(observed, f"{field}.{percentile}", value, scale, place)
        elif head in RATES:
            put(observed, RATES[head], value_of(_short(cell)), line=place)
        elif head in LENGTHS:
            state(observed, LENGTHS[head], round(value_of(_short(cell)) or 0), place)
    return observed


def _percentiles(told: object) -> dict[str, Any]:
    values = told if isinstance(told, list) else []
    return {name: values[index] for name, index in PERCENTILES.items() if index < len(values)}


def _short(cell: str) -> str:
    """Return a number without the digits that nobody measures, which would be more than a cell has."""
    whole, _, part = cell.partition(".")
    return f"{whole}.{part[:6]}" if part else whole


def _cells(line: str) -> Sequence[str]:
    return [cell.strip() for cell in next(csv.reader([line]), [""])]


def _json(cell: str) -> object:
    try:
        return json.loads(cell) if cell else None
    except (ValueError, RecursionError):
        return None

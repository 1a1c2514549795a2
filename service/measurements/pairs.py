"""Results as people keep them in a spreadsheet: a metric a row with its value, or a metric a column above one row.

Metrics are called as `vllm bench serve` calls them, in its JSON or as it prints them, or as genai-perf and AIPerf do.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from service.engine.patience import go_on
from service.measurements.benchmarks import benchmark, is_known
from service.measurements.cells import cells_of, value_of
from service.measurements.keeping import Lines
from service.measurements.observed import MOST_SHOWN, Observed, UnreadableTextError
from service.measurements.statistics import LABEL, MEANS, RATES, TIMES, keep_row

NAMES: Final = ("metric", "metrics", "name", "key", "statistic", "field", "measure")
VALUES: Final = ("value", "values", "result", "avg", "mean")
FEWEST: Final = 2  # known metrics above a row by which it is one
# What is printed, by the name that the JSON has for it.
PRINTED: Final[Mapping[str, str]] = {
    "request_throughput_req_s": "request_throughput", "output_token_throughput_tok_s": "output_throughput",
    "successful_requests": "completed", "total_generated_tokens": "total_output_tokens", "model": "model_id",
    "maximum_request_concurrency": "max_concurrency", "max_request_concurrency": "max_concurrency",
    "request_rate_configured_rps": "request_rate", "traffic_request_rate": "request_rate",
}  # fmt: skip
FIGURE: Final = re.compile(
    r"(?:mean|median|p9[59])_(?:ttft|tpot|itl|e2el|e2e_latency)_ms|(?:request|output)_throughput"
)
ACCEPTED: Final = (
    "rows named as vllm bench serve, genai-perf or AIPerf do: mean_ttft_ms, Mean TTFT (ms), Time to First Token (ms)"
)


def value_table(lines: Lines) -> Observed | None:
    """Return what a table of metrics and values says; None where there is none.

    Raises:
        UnreadableTextError: none of its metrics is known, or it holds a second result.
    """
    if not lines:
        return None
    heads = [_key(cell) for cell in cells_of(lines[0][1])]
    if len(heads) == 2 and heads[0] in NAMES and heads[1] in VALUES:
        return _pairs(lines)
    is_wide = sum(bool(FIGURE.fullmatch(PRINTED.get(head, head))) for head in heads) >= FEWEST
    return _wide(heads, lines) if is_wide else None


def _pairs(lines: Lines) -> Observed:
    """Return what rows of a metric and its value say.

    Raises:
        UnreadableTextError: none of them is known.
    """
    document: dict[str, Any] = {}
    observed, places = Observed(what="genai-perf or AIPerf table", kind="benchmark"), list[int]()
    for place, label, text in _rows(lines[1:]):
        key, said = _key(label), LABEL.fullmatch(label)
        name = PRINTED.get(key, key)
        if name in document:
            raise UnreadableTextError(
                place, f"{label[:MOST_SHOWN]!r} stands here a second time", "the result of one run"
            )
        document[name] = _value(text)
        places.append(place)
        if said and said[1].lower() in (*TIMES, *MEANS, *RATES, "request count"):
            keep_row(observed, said[1].lower(), said[2] or "", {"avg": text}, place)
    if is_known(document):
        return _on_line(benchmark(document), lines[0][0])
    if not observed.figures:
        place, line = next(((place, line) for place, line in lines[1:]), lines[0])
        raise UnreadableTextError(place, f"{line.strip()[:MOST_SHOWN]!r} is no metric known here", ACCEPTED)
    return observed


def _rows(lines: Lines) -> Iterator[tuple[int, str, str]]:
    for place, line in lines:
        go_on()
        cells = cells_of(line)
        if len(cells) > 1 and cells[0]:
            yield place, cells[0], cells[1]


def _wide(heads: Sequence[str], lines: Lines) -> Observed | None:
    """Return what the row below the names of metrics says.

    Raises:
        UnreadableTextError: there are several rows.
    """
    if len(lines) != 2:
        place = lines[min(len(lines) - 1, 2)][0]
        rows = len(lines) - 1
        raise UnreadableTextError(
            place, f"the table holds {rows} results", "the names of metrics and one row below them"
        )
    place, line = lines[1]
    document = {PRINTED.get(head, head): _value(cell) for head, cell in zip(heads, cells_of(line), strict=False)}
    return _on_line(benchmark(document), place) if is_known(document) else None


def _on_line(observed: Observed, place: int) -> Observed:
    """Return a result whose settings stand on a line, that of the table."""
    observed.setting_lines = dict.fromkeys(observed.setting_lines, place)
    return observed


def _key(label: str) -> str:
    """Return a label as the JSON writes names.

    >>> _key("Mean TTFT (ms)"), _key("P99 E2EL (ms):")
    ('mean_ttft_ms', 'p99_e2el_ms')
    """
    return re.sub(r"\W+", "_", label.casefold()).strip("_")


def _value(text: str) -> str | float:
    value = value_of(text)
    return text if value is None else int(value) if value.is_integer() else value

"""Results of `evalscope perf`: its summary as JSON and as a table, and the table of percentiles below it.

Source:
    https://github.com/modelscope/evalscope, `perf/utils/perf_constants.py`, `docs/en/user_guides/stress_test`;
    and of 0.1x `docs/en/best_practice/deepseek_r1_distill.md`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from service.engine.patience import go_on
from service.measurements.cells import cells_of, value_of
from service.measurements.keeping import MS, Lines, check_answered, check_single, keep_load, put, state
from service.measurements.observed import Observed

TITLE: Final = "Benchmarking summary:"
WHAT: Final = "evalscope perf"
LOADS: Final = ("Number of concurrency", "Concurrency")
RATES: Final = ("Request rate (req/s)", "Request Rate (req/s)")
ASKED, FAILED = ("Total requests", "Total Requests"), ("Failed requests", "Failed Requests")
COUNTS: Final = "Total / Success / Failed"
LENGTHS: Final[Mapping[str, str]] = {
    "Average input tokens per request": "input_tokens", "Avg Input Tokens": "input_tokens",
    "Average output tokens per request": "output_tokens", "Avg Output Tokens": "output_tokens",
}  # fmt: skip
FIRST: Final = {"Average time to first token (s)": 1.0, "Avg TTFT (ms)": MS, "TTFT (ms)": MS}
WHOLE: Final = {"Average latency (s)": 1.0, "Avg Latency (s)": 1.0}
EACH: Final = {"Average time per output token (s)": 1.0, "Avg TPOT (ms)": MS, "TPOT (ms)": MS}
THROUGHPUT: Final[Mapping[str, str]] = {
    "Average QPS": "requests_per_s", "Request throughput (req/s)": "requests_per_s",
    "Req Throughput (req/s)": "requests_per_s", "Throughput(average tokens/s)": "output_tokens_per_s",
    "Output token throughput (tok/s)": "output_tokens_per_s", "Output Throughput (tok/s)": "output_tokens_per_s",
}  # fmt: skip
TIMES: Final[Mapping[str, str]] = {"Latency": "end_to_end_s", "TTFT": "ttft_s", "TPOT": "tpot_s"}
TIME: Final = re.compile(r"(Latency|TTFT|TPOT) \((m?s)\)")
PERCENTILES: Final[Mapping[str, str]] = {"50%": "p50", "95%": "p95", "99%": "p99"}
MODEL: Final = re.compile(r"evalscope perf\b.{0,2000}?--model[ =]([^\s\\]{1,200})|[│|] Model +[│|] ([^\s│|]{1,200})")
STREAMED: Final = 0.99  # of the latency; a first token later than that came with all others


def summary(document: Mapping[str, Any], lines: Mapping[str, int] | None = None) -> Observed:
    """Return what a summary says, by its labels.

    Args:
        document: numbers by label.
        lines: where each label stands; None: all in one.

    Raises:
        UnreadableTextError: too many of its requests failed.
    """
    observed, places = Observed(what=WHAT, kind="benchmark"), lines or {}
    failed, asked = _first(document, FAILED), _first(document, ASKED)
    place = next((places[label] for label in (COUNTS, *FAILED) if label in places), 1)
    check_answered(failed or 0.0, asked or failed or 0.0, place)
    keep_load(observed, _first(document, LOADS), _first(document, RATES))
    for label, field in LENGTHS.items():
        state(observed, field, round(_first(document, (label,)) or 0), places.get(label, 1))
    state(observed, "num_prompts", round(asked or 0))
    for label, field in THROUGHPUT.items():
        put(observed, field, document.get(label), line=places.get(label, 1))
    for field, labels in (("end_to_end_s", WHOLE), ("ttft_s", FIRST), ("tpot_s", EACH)):
        for label, scale in labels.items():
            put(observed, f"{field}.mean", document.get(label), scale, places.get(label, 1))
    _without_stream(observed)
    return observed


def table(lines: Lines) -> Observed | None:
    """Return what a printed summary says; None where there is none.

    Raises:
        UnreadableTextError: there are two, or too many of its requests failed.
    """
    titles = [place for place, line in lines if TITLE in line]
    if not titles:
        return None
    check_single(titles)
    numbers: dict[str, float] = {}
    places: dict[str, int] = {}
    for place, line in lines:
        label, *rest = cells_of(line)
        if len(rest) == 1:
            places.setdefault(label, place)
            numbers |= _numbers(label, rest[0])
    observed = summary(numbers, places)
    _model(observed, lines)
    if "ttft_s.mean" in observed.figures:
        _percentiles(observed, lines)
    return observed


def _numbers(label: str, text: str) -> dict[str, float]:
    if label == COUNTS:
        counts = [value_of(each.strip()) or 0.0 for each in text.split("/")]
        return dict(zip((ASKED[0], "Succeed requests", FAILED[0]), counts, strict=False))
    value = value_of(text)
    return {} if value is None else {label: value}


def _percentiles(observed: Observed, lines: Lines) -> None:
    """Keep percentiles: a row of them a time, or, up to 1.x, a column."""
    heads: list[str] = []
    for place, line in lines:
        go_on()
        first, *cells = cells_of(line)
        if first in ("Metric", "Percentile", "Percentiles"):
            heads = cells
        for head, cell in zip(heads, cells, strict=False):
            said, percentile = (TIME.fullmatch(first), head) if TIME.fullmatch(first) else (TIME.fullmatch(head), first)
            if said and percentile in PERCENTILES:
                name = f"{TIMES[said[1]]}.{PERCENTILES[percentile]}"
                put(observed, name, value_of(cell), MS if said[2] == "ms" else 1.0, place)


def _without_stream(observed: Observed) -> None:
    """Forget times of tokens that came all at once: without `--stream` the first one comes with the last."""
    first, whole = observed.figures.get("ttft_s.mean"), observed.figures.get("end_to_end_s.mean")
    if first and whole and first.value >= STREAMED * whole.value:
        for name in ("ttft_s.mean", "tpot_s.mean"):
            observed.figures.pop(name, None)


def _model(observed: Observed, lines: Lines) -> None:
    """Keep the model that the command or the basic information names."""
    for place, line in lines:
        said = MODEL.search(line[:4_000])
        if said:
            observed.state("model", said[1] or said[2], place)
            return


def _first(document: Mapping[str, Any], labels: tuple[str, ...]) -> float | None:
    return next((float(document[label]) for label in labels if isinstance(document.get(label), int | float)), None)

"""Tables of statistics that genai-perf and AIPerf print and write as CSV: a metric a row, a statistic a column.

Sources:
    https://github.com/triton-inference-server/perf_analyzer, `genai-perf/README.md`, `docs/dynamo.md`;
    https://github.com/ai-dynamo/aiperf, `README.md`, `exporters/csv_exporter.py`.
"""

import re
from collections.abc import Mapping
from typing import Final

from service.engine.patience import go_on
from service.measurements.cells import cells_of, value_of
from service.measurements.keeping import STATISTICS, Lines, check_answered, check_single, keep_load, put, state
from service.measurements.observed import Observed, UnreadableTextError

HEADS: Final = ("Statistic", "Metric")
FEWEST: Final = 3  # columns of statistics by which the table is known
COLUMNS: Final = frozenset({"avg", "min", "max", "p99", "p95", "p90", "p75", "p50", "p25", "std"})
LABEL: Final = re.compile(r"([A-Za-z][A-Za-z ]{3,60}?)(?: \(([a-z/ ]{1,24})\))?:?")
UNITS: Final[Mapping[str, float]] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
# Both call the mean time between tokens of a request "inter token latency": it is TPOT by vLLM's definition.
TIMES: Final[Mapping[str, str]] = {
    "time to first token": "ttft_s", "inter token latency": "tpot_s", "request latency": "end_to_end_s",
}  # fmt: skip
MEANS: Final[Mapping[str, str]] = {
    "input sequence length": "input_tokens", "num input token": "input_tokens",
    "output sequence length": "output_tokens", "num output token": "output_tokens",
}  # fmt: skip
RATES: Final[Mapping[str, str]] = {
    "request throughput": "requests_per_s", "output token throughput": "output_tokens_per_s",
}  # fmt: skip
COMMAND: Final = re.compile(r"\b(?:genai-perf|aiperf)\b(.{0,6000})")
MODEL: Final = re.compile(r"(?:-m|--model(?:-names)?)[ =][\"']?([^\s\"'\\]{1,200})")
CONCURRENCY: Final = re.compile(r"--concurrency(?:-range)?[ =](\d{1,6})(?![\d:])")
RATE: Final = re.compile(r"--request-rate[ =](\d{1,6}(?:\.\d{1,6})?)(?![\d:.])")


def statistics_table(lines: Lines) -> Observed | None:
    """Return what a table of statistics says; None where there is none.

    Raises:
        UnreadableTextError: there are two, or a time is in no unit that is known here.
    """
    titles = [place for place, line in lines if _heads(line)]
    if not titles:
        return None
    check_single(titles)
    observed = Observed(what="genai-perf or AIPerf table", kind="benchmark")
    heads: list[str] = []
    counts: dict[str, tuple[float, int]] = {}
    for place, line in lines:
        go_on()
        label, *cells = cells_of(line)
        heads = cells if label in HEADS else heads
        said = LABEL.fullmatch(label)
        if said and heads:
            row = dict(zip(heads, cells, strict=False))
            keep_row(observed, said[1].lower(), said[2] or "", row, place)
            counts[said[1].lower()] = (value_of(row.get("avg", row.get("Value", ""))) or 0.0, place)
    done, (failed, place) = counts.get("request count", (0.0, 1))[0], counts.get("error request count", (0.0, 1))
    check_answered(failed, failed + done, place)
    _command(observed, lines)
    return observed


def _heads(line: str) -> bool:
    """Return whether a line is a head of statistics."""
    if not line.lstrip('│┃| \t"').startswith(HEADS):
        return False
    label, *cells = cells_of(line)
    return label in HEADS and len(COLUMNS.intersection(cells)) >= FEWEST


def keep_row(observed: Observed, label: str, unit: str, cells: Mapping[str, str], place: int) -> None:
    """Keep what a row says of one metric, by the heads of its columns.

    Raises:
        UnreadableTextError: a time is in no unit that is known here.
    """
    average = value_of(cells.get("avg", cells.get("Value", "")))
    if label in TIMES:
        if unit not in UNITS:
            raise UnreadableTextError(place, f"{label} is in {unit!r}", f"one of {', '.join(UNITS)}")
        for head, cell in cells.items():
            if head in STATISTICS:
                put(observed, f"{TIMES[label]}.{STATISTICS[head]}", value_of(cell), UNITS[unit], place)
    elif label in MEANS:
        state(observed, MEANS[label], round(average or 0), place)
    elif label in RATES:
        put(observed, RATES[label], average, line=place)
    elif label == "request count":
        state(observed, "num_prompts", round(average or 0), place)


def _command(observed: Observed, lines: Lines) -> None:
    """Keep what the command says, which a shell reads as one line."""
    whole = " ".join(line.strip().rstrip("\\") for _, line in lines[:60])
    command = COMMAND.search(whole)
    if command is None:
        return
    model, concurrency, rate = (flag.search(command[1]) for flag in (MODEL, CONCURRENCY, RATE))
    state(observed, "model", model[1] if model else None)
    keep_load(observed, int(concurrency[1]) if concurrency else None, float(rate[1]) if rate else None)

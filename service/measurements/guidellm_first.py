"""Tables that GuideLLM printed up to 0.3: a benchmark a row, named with its rate, under heads of two lines.

Sources:
    https://github.com/vllm-project/guidellm/issues/136, and its tag v0.2.1, `benchmark/output.py`
    (`print_benchmarks_info`, `print_benchmarks_stats`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from service.engine.patience import go_on
from service.measurements.cells import value_of
from service.measurements.guidellm import MODEL, OPEN, Head, refuse_second, spanned
from service.measurements.keeping import MS, Lines, check_answered, keep_load, put, state
from service.measurements.observed import Observed
from service.measurements.patterns import MOST_CHARACTERS

STATS, INFO = "Benchmarks Stats:", "Benchmarks Info:"
TITLES: Final = (STATS, INFO)
HEADS: Final = 2  # lines: group, name or statistic
STATISTICS: Final[Mapping[str, str]] = {"mean": "mean", "median": "p50", "p99": "p99"}
# Latencies of requests stand in seconds, whatever their head says: first tokens and those between add up to them.
TIMES: Final[Mapping[str, tuple[str, float]]] = {
    "TTFT (ms)": ("ttft_s", MS), "ITL (ms)": ("tpot_s", MS), "Req Latency (ms)": ("end_to_end_s", 1.0),
    "Req Latency (sec)": ("end_to_end_s", 1.0),
}  # fmt: skip
RATES: Final[Mapping[Head, str]] = {
    ("Request Stats", "Per Second"): "requests_per_s", ("Out Tok/sec", "mean"): "output_tokens_per_s",
}  # fmt: skip
COUNTS: Final[Mapping[Head, str]] = {
    ("Prompt Tok/Req", "Comp"): "input_tokens", ("Output Tok/Req", "Comp"): "output_tokens",
    ("Requests Made", "Comp"): "num_prompts",
}  # fmt: skip
NAME: Final = re.compile(r"([a-z]{4,20})(?:@(\d{1,6}(?:\.\d{1,4})?))?")
BACKEND: Final = re.compile(r"\bbackend_model='([^']{1,200})'")

Row = tuple[int, Mapping[Head, str]]


def console(lines: Lines) -> Observed | None:
    """Return what the tables say of one benchmark; None where there are none.

    Raises:
        UnreadableTextError: they are of several benchmarks, or too many requests failed.
    """
    if not any(line.strip() == STATS for _, line in lines):
        return None
    tables: dict[str, list[tuple[str, Row]]] = {title: [] for title in TITLES}
    for title, name, row in _rows(lines):
        tables[title].append((name, row))
    observed = Observed(what="GuideLLM report", kind="benchmark")
    if tables[STATS]:
        names = [name for name, _ in tables[STATS]]
        if len(names) > 1:
            refuse_second(tables[STATS][1][1][0], names)
        name, (place, stats) = tables[STATS][0]
        info = next((cells for other, (_, cells) in tables[INFO] if other == name), {})
        _keep(observed, {**info, **stats}, place)
        _load(observed, name, value_of(stats.get(("Request Stats", "Concurrency"), "")) or 0.0, place)
        _model(observed, lines)
    return observed


def _rows(lines: Lines) -> Iterator[tuple[str, str, Row]]:
    """Yield each row with the title of its table and the name of its benchmark."""
    title, heads = "", list[Sequence[str]]()
    for place, whole in lines:
        go_on()
        line = whole[:MOST_CHARACTERS].strip()
        if line in TITLES:
            title, heads = line, []
        elif "|" not in line and set(line) != {"="}:
            title = ""
        elif title and "|" in line and not line.startswith("-"):
            cells = line.split("|")
            if len(heads) < HEADS:
                heads.append(spanned(cells))
                continue
            named = dict(zip(zip(*heads, strict=False), (cell.strip() for cell in cells), strict=False))
            yield title, cells[0].strip(), (place, named)


def _keep(observed: Observed, cells: Mapping[Head, str], place: int) -> None:
    failed, done = (value_of(cells.get(("Requests Made", name), "")) or 0.0 for name in ("Err", "Comp"))
    check_answered(failed, failed + done, place)
    for head, cell in cells.items():
        value, (group, statistic) = value_of(cell), head
        if group in TIMES and statistic in STATISTICS:
            field, scale = TIMES[group]
            put(observed, f"{field}.{STATISTICS[statistic]}", value, scale, place)
        elif head in RATES:
            put(observed, RATES[head], value, line=place)
        elif head in COUNTS:
            state(observed, COUNTS[head], round(value or 0), place)


def _load(observed: Observed, name: str, running: float, place: int) -> None:
    """Keep the load: of an open loop the rate in its name, else how many ran at once."""
    said = NAME.fullmatch(name)
    rate = float(said[2]) if said and said[2] and said[1] in OPEN else None
    keep_load(observed, None if rate else running, rate, place)


def _model(observed: Observed, lines: Lines) -> None:
    """Keep the model that the command, or the worker's line, names."""
    whole = " ".join(line.strip().rstrip("\\") for _, line in lines[:200])
    said = MODEL.search(whole) or BACKEND.search(whole)
    if said:
        observed.state("model", said[1], 1)

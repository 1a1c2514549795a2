"""Tables that GuideLLM prints: a benchmark a row, under heads of three lines that span columns.

Sources:
    https://github.com/vllm-project/guidellm, `benchmark/outputs/console.py`, `utils/console.py`, and how it looks:
    https://github.com/vllm-project/guidellm/pull/617, https://github.com/llm-d/llm-d-benchmark/pull/1459.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from service.engine.patience import go_on
from service.measurements.cells import value_of
from service.measurements.keeping import MS, Lines, keep_load, put, state
from service.measurements.observed import Observed, UnreadableTextError
from service.measurements.patterns import MOST_CHARACTERS

TITLES: Final = ("Request Latency Statistics", "Server Throughput Statistics", "Request Token Statistics")
OWN: Final = re.compile(r"(?:Request (?:Latency|Token)|Server Throughput) Statistics \((?:Completed|All) Requests\)")
MOST_NAMED: Final = 12
HEADS: Final = 3  # lines: group, name, unit or statistic
STATISTICS: Final[Mapping[str, str]] = {"Mean": "mean", "Mdn": "p50", "p95": "p95"}
# GuideLLM's ITL is the mean between a request's tokens, TPOT by vLLM's definition; its TPOT holds the first one's time.
TIMES: Final[Mapping[tuple[str, str], tuple[str, float]]] = {
    ("TTFT", "ms"): ("ttft_s", MS), ("ITL", "ms"): ("tpot_s", MS), ("Request Latency", "Sec"): ("end_to_end_s", 1.0),
}  # fmt: skip
RATES: Final[Mapping[tuple[str, str, str], str]] = {
    ("Requests", "Per Sec", "Mean"): "requests_per_s", ("Output Tokens", "Per Sec", "Mean"): "output_tokens_per_s",
}  # fmt: skip
LENGTHS: Final[Mapping[tuple[str, str, str], str]] = {
    ("Input Tok", "Per Req", "Mdn"): "input_tokens", ("Output Tok", "Per Req", "Mdn"): "output_tokens",
}  # fmt: skip
OPEN: Final = ("constant", "poisson")
MODEL: Final = re.compile(r"\bguidellm\b.{0,2000}?--model[ =][\"']?([^\s\"'\\]{1,200})")

Head = tuple[str, ...]


def console(lines: Lines) -> Observed | None:
    """Return what GuideLLM's tables say; None where there are none.

    Raises:
        UnreadableTextError: they are of several benchmarks.
    """
    if not any(OWN.search(line[:MOST_CHARACTERS]) for _, line in lines):
        return None
    observed = Observed(what="GuideLLM report", kind="benchmark")
    strategy, numbers = "", dict[Head, tuple[float, int]]()
    for place, heads, cells in _rows(lines):
        strategy = cells[0]
        for head, cell in zip(heads, cells, strict=False):
            value = value_of(cell)
            if value is not None:
                numbers.setdefault(head, (value, place))
    for head, (value, place) in numbers.items():
        _keep(observed, head, value, place)
    _load(observed, strategy, numbers)
    _model(observed, lines)
    return observed


def _rows(lines: Lines) -> Iterator[tuple[int, Sequence[Head], Sequence[str]]]:
    """Yield the row of each table that is read, with the heads of its columns.

    Raises:
        UnreadableTextError: a table has a second row: it is of another benchmark.
    """
    heads: list[list[str]] = []
    is_read, had_row = False, False
    for place, whole in lines:
        go_on()
        line = whole[:MOST_CHARACTERS].strip()
        if not line.startswith("|"):
            is_read, had_row, heads = any(title in line for title in TITLES), False, []
        elif is_read and not line.startswith(("|=", "|-")):
            cells = line[1:].removesuffix("|").split("|")
            if len(heads) < HEADS:
                heads.append(spanned(cells))
                continue
            if had_row:
                refuse_second(place, _strategies(lines, place - 1))
            had_row = True
            yield place, tuple(zip(*heads, strict=False)), [cell.strip() for cell in cells]


def _strategies(lines: Lines, first: int) -> Iterator[str]:
    """Yield what each row of a table calls its benchmark, from the line of its first one on."""
    for place, line in lines:
        if place >= first and not line.strip().startswith("|"):
            return
        if place >= first and not line.strip().startswith(("|=", "|-")):
            yield line.strip()[1:].partition("|")[0].strip()


def refuse_second(place: int, names: Iterable[str]) -> None:
    """Refuse the second of several benchmarks, each of which is a measurement of its own.

    Raises:
        UnreadableTextError: always.
    """
    told = ", ".join(list(names)[:MOST_NAMED])
    sentence = f"a second benchmark begins here, of {told}: each is another load"
    raise UnreadableTextError(place, sentence, "the tables with the row of one benchmark, one at a time")


def spanned(cells: Sequence[str]) -> list[str]:
    """Return heads with those that span columns said of each: a cell without any width goes on with the last one."""
    heads: list[str] = []
    for cell in cells:
        heads.append(heads[-1] if not cell and heads else cell.strip())
    return heads


def _keep(observed: Observed, head: Head, value: float, place: int) -> None:
    group, name, statistic = head
    time = TIMES.get((group, name))
    if time is not None and statistic in STATISTICS:
        put(observed, f"{time[0]}.{STATISTICS[statistic]}", value, time[1], place)
    if (group, name, statistic) in RATES:
        put(observed, RATES[group, name, statistic], value, line=place)
    if (group, name, statistic) in LENGTHS:
        state(observed, LENGTHS[group, name, statistic], round(value), place)


def _load(observed: Observed, strategy: str, numbers: Mapping[Head, tuple[float, int]]) -> None:
    """Keep the load: of an open loop the rate that was met, else how many ran at once."""
    rate, place = numbers.get(("Requests", "Per Sec", "Mean"), (0.0, 1))
    running, _ = numbers.get(("Requests", "Concurrency", "Mean"), (0.0, 1))
    keep_load(observed, None if strategy in OPEN else running, rate, place)


def _model(observed: Observed, lines: Lines) -> None:
    """Keep the model that the command names."""
    said = MODEL.search(" ".join(line.strip().rstrip("\\") for _, line in lines[:60]))
    if said:
        observed.state("model", said[1], 1)

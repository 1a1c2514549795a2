"""Results of vLLM's benchmarks without a server, as JSON and as printed: `vllm bench throughput` and `... latency`.

The one sends all requests at once and tells their rate; the other sends one batch after the other and tells how long
each took. As JSON neither tells the model, nor how long requests were; the second not how many were a batch.

Source:
    vLLM 0.33 `benchmarks/throughput.py` and `benchmarks/latency.py` (`main`, `--output-json`).
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from service.catalog.measurement_rows import Setting
from service.measurements.arguments import whole_commands
from service.measurements.keeping import (
    LOADS,
    Lines,
    check_single,
    inside,
    number_in,
    put,
    state,
)
from service.measurements.observed import Doubt, Observed
from service.measurements.patterns import MOST_CHARACTERS, number

THROUGHPUT, LATENCY = "vllm bench throughput", "vllm bench latency"
FIGURE: Final = r"(\d{1,12}(?:\.\d{1,20})?)"
RATES: Final = re.compile(
    rf"\bThroughput: {FIGURE} requests/s, {FIGURE} (?:total )?tokens/s(?:, {FIGURE} output tokens/s)?"
)
TOTAL: Final = re.compile(rf"\bTotal num (prompt|output) tokens: +{FIGURE}")
MEAN: Final = re.compile(rf"\bAvg latency: {FIGURE} seconds")
QUANTILE: Final = re.compile(rf"\b(50|99)% percentile latency: {FIGURE} seconds")
COMMAND: Final = re.compile(
    r"(?:bench (?:throughput|latency)|benchmark_(?:throughput|latency)\.py)\b(.{0,4000})|Namespace\((.{0,6000})"
)
ALL, BATCH = "num_prompts", "batch_size"
LEAST_RATE: Final = 1.0  # below it two decimals of a rate are too few to divide by [requests/s]
FLAGS: Final[Mapping[str, re.Pattern[str]]] = {
    "model": re.compile(r"(?:--model[ =]|\bmodel=)'?([^\s\\',]{1,200})"),
    BATCH: re.compile(r"\bbatch[-_]size[ =](\d{1,6})\b"),
    ALL: re.compile(r"\bnum[-_]prompts[ =](\d{1,7})\b"),
    "input_tokens": re.compile(r"\binput[-_]len[ =](\d{1,7})\b"),
    "output_tokens": re.compile(r"\boutput[-_]len[ =](\d{1,7})\b"),
}
OF_ALL: Final = ("model", "input_tokens", "output_tokens")
LENGTHS: Final = ("input_tokens", "output_tokens")
AT_ONCE: Final = ("num_prompts", "concurrent_requests")


def is_throughput(document: Mapping[str, Any]) -> bool:
    """Return whether a document has the marks of the one."""
    return "requests_per_second" in document and "total_num_tokens" in document


def is_latency(document: Mapping[str, Any]) -> bool:
    """Return whether a document has the marks of the other."""
    return "avg_latency" in document and isinstance(document.get("latencies"), list)


def throughput(document: Mapping[str, Any]) -> Observed:
    """Return what a result says: its tokens are those of prompts and answers together, and tell neither length."""
    observed = Observed(what=THROUGHPUT, kind="benchmark")
    requests = number_in(document.get("num_requests"))
    _at_once(observed, round(requests), 1)
    put(observed, "requests_per_s", document.get("requests_per_second"))
    _doubt(observed)
    return observed


def latency(document: Mapping[str, Any]) -> Observed:
    """Return what a result says: of requests that begin and end together, one lasts as long as all of them."""
    observed = Observed(what=LATENCY, kind="benchmark")
    put(observed, "end_to_end_s.mean", document.get("avg_latency"))
    for percentage in ("50", "99"):
        put(observed, f"end_to_end_s.p{percentage}", inside(document, "percentiles", percentage))
    _doubt(observed)
    return observed


def _at_once(observed: Observed, value: Setting, line: int) -> None:
    """Keep how many requests there were, all of which are sent at once."""
    for field in AT_ONCE:
        state(observed, field, value, line)


def _doubt(observed: Observed) -> None:
    """Compare nothing as long as neither the text nor who pastes it says what decides about the figures."""
    for fields, what in ((LENGTHS, "how long requests were"), (LOADS, "how many requests there were")):
        if not any(name in observed.settings for name in fields):
            sentence = (
                f"{observed.what} does not tell {what}: nothing is compared before {' or '.join(fields)} is stated"
            )
            observed.doubts.append(Doubt(sentence=sentence, fields=fields, figures=tuple(observed.figures)))


def printed(lines: Lines) -> Observed | None:
    """Return what either printed; None where neither did.

    Raises:
        UnreadableTextError: there are two results.
    """
    for what, first, reader in ((THROUGHPUT, RATES, _rates), (LATENCY, MEAN, _times)):
        found = [(place, match) for place, line in lines if (match := first.search(line[:MOST_CHARACTERS]))]
        if found:
            check_single([place for place, _ in found])
            observed = Observed(what=what, kind="benchmark")
            reader(observed, found[0][1], found[0][0], lines)
            _doubt(observed)
            return observed
    return None


def _rates(observed: Observed, rates: re.Match[str], place: int, lines: Lines) -> None:
    """Keep the rates, and lengths as they were counted, of all requests or of those of a second; else as commanded."""
    requests, tokens, answered = (number(each or "0") for each in rates.groups())
    put(observed, "requests_per_s", requests, line=place)
    put(observed, "output_tokens_per_s", answered, line=place)
    said = _command(lines)
    totals = {each[1]: number(each[2]) for _, line in lines if (each := TOTAL.search(line[:MOST_CHARACTERS]))}
    if answered and requests >= LEAST_RATE and "output" in totals:
        said.setdefault(ALL, (round(totals["output"] * requests / answered), place))
    for name, kind, rate in (("input_tokens", "prompt", tokens - answered), ("output_tokens", "output", answered)):
        if ALL in said and kind in totals:
            said[name] = max(round(totals[kind] / int(said[ALL][0])), 1), place
        elif answered and requests >= LEAST_RATE:
            said[name] = max(round(rate / requests), 1), place
    _keep(observed, said)
    if ALL in said:
        _at_once(observed, *said[ALL])


def _times(observed: Observed, mean: re.Match[str], place: int, lines: Lines) -> None:
    put(observed, "end_to_end_s.mean", number(mean[1]), line=place)
    for at, line in lines:
        if quantile := QUANTILE.search(line[:MOST_CHARACTERS]):
            put(observed, f"end_to_end_s.p{quantile[1]}", number(quantile[2]), line=at)
    said = _command(lines)
    _keep(observed, said)
    if BATCH in said:
        _at_once(observed, *said[BATCH])


def _keep(observed: Observed, said: Mapping[str, tuple[Setting, int]]) -> None:
    for name in OF_ALL:
        if name in said:
            state(observed, name, *said[name])


def _command(lines: Lines) -> dict[str, tuple[Setting, int]]:
    """Return what the command says of the run, or its arguments as Python prints them, each with its line."""
    for place, line in whole_commands(lines):
        command = COMMAND.search(line[:MOST_CHARACTERS])
        if command is not None:
            told = command[1] or command[2] or ""
            said = {name: found[1] for name, flag in FLAGS.items() if (found := flag.search(told))}
            return {name: (value if name == "model" else int(value), place) for name, value in said.items()}
    return {}

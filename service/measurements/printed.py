"""Results of benchmarks as they are printed: `vllm bench serve` and SGLang's `bench_serving`, a figure a line.

Sources:
    vLLM 0.33 `benchmarks/serve.py` (`benchmark`); SGLang 0.5.23 `benchmark/serving.py` (`benchmark`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from service.measurements.arguments import whole_commands
from service.measurements.drafted import keep_printed
from service.measurements.held_back import is_limit_idle, running
from service.measurements.keeping import Lines, assume_at_once, check_answered, check_single, leave_out, number_in
from service.measurements.observed import Observed
from service.measurements.patterns import MOST_CHARACTERS, number

TITLE: Final = "Serving Benchmark Result"
UNTITLED: Final = "Successful requests:"  # what stands below it, and is often quoted without it
# As the first editions wrote it: the unit behind the figure.
UNIT_BEHIND: Final = re.compile(
    r"^(?P<label>(?:Mean|Median|P9[59]) (?:TTFT|TPOT|ITL)|(?:Request|Output token) throughput): +"
    r"(?P<value>\d[\d,]{0,18}(?:\.\d{1,9})?) (?P<unit>ms|requests/s|tokens/s)\s*$"
)
UNITS: Final[Mapping[str, str]] = {"ms": "ms", "requests/s": "req/s", "tokens/s": "tok/s"}
# The command above it, or its arguments as Python prints them.
COMMAND: Final = re.compile(r"(?:bench serve|bench_serving|benchmark_serving\.py)\b(.{0,4000})|Namespace\((.{0,6000})")
MODEL: Final = re.compile(r"--model(?:-path)?[ =]([^\s\\]{1,200})|\bmodel='([^']{1,200})'")
# What of it says the load, where the result does not.
FLAGS: Final[Mapping[str, re.Pattern[str]]] = {
    "Traffic request rate": re.compile(r"\brequest[-_]rate[ =]'?(\d{1,6}(?:\.\d{1,6})?|inf)\b"),
    "Max request concurrency": re.compile(r"\bmax[-_]concurrency[ =](\d{1,6})\b"),
    "Prompts": re.compile(r"\bnum[-_]prompts?[ =](\d{1,7})\b"),
}
# Behind a figure stand its unit, marks of emphasis, and what people remark; an arrow to another figure is no remark.
LINE: Final = re.compile(
    r"^\s*(?P<label>[A-Z][\w .()/-]{3,60}):\s+\*{0,3}"
    r"(?P<value>-?\d[\d,]{0,18}(?:\.\d{1,9})?|-?[a-z][\w-]{0,30}|None|not set)"
    r"(?:\s{0,3}(?:ms|tok/s|req/s|tokens/s|requests/s)\b)?\s*+\*{0,3}\s*+(?:[<←#(].*|\",?)?$"
)
UNDEFINED: Final = re.compile(r"nan|-?inf|-[\d,.]+")
# What containers and quotations write before a line: a name or a time of the runtime, and marks.
BEFORE: Final = re.compile(
    r"^(?:[\w.-]{1,60} *\| ?|(?:\[[\w/.-]{1,80}\] ?)?\d{4}-\d\d-\d\dT[\d:.,]{8,20}(?:Z|[+-][\d:]{4,5}) "
    r"(?:std(?:out|err) F )?|[>#│|+*-]{1,4} ?\*{0,3}|\s*\")"
)
LATENCY: Final = re.compile(r"(Mean|Median|P95|P99) (TTFT|TPOT|ITL|E2EL|E2E Latency) \(ms\)")
STATISTICS: Final[Mapping[str, str]] = {"Mean": "mean", "Median": "p50", "P95": "p95", "P99": "p99"}
FIELDS: Final[Mapping[str, str]] = {
    "TTFT": "ttft_s", "TPOT": "tpot_s", "ITL": "itl_s", "E2EL": "end_to_end_s", "E2E Latency": "end_to_end_s",
}  # fmt: skip
RATES: Final[Mapping[str, str]] = {
    "Request throughput (req/s)": "requests_per_s",
    "Output token throughput (tok/s)": "output_tokens_per_s",
}
CONCURRENCY: Final = ("Maximum request concurrency", "Max request concurrency", "Max reqeuest concurrency")
ARRIVALS: Final = ("Request rate configured (RPS)", "Traffic request rate")
MOST_RUNNING, MEAN_RUNNING = "Peak concurrent requests", "Concurrency"
DONE, FAILED = "Successful requests", "Failed requests"
PROMPTS, COMPLETIONS = "Total input tokens", "Total generated tokens"


def printed(lines: Lines) -> Observed | None:
    """Return what a printed result says; None where there is none.

    Raises:
        UnreadableTextError: there are two, or too many of its requests failed.
    """
    titles = [place for place, line in lines if TITLE in line]
    titles = titles or [place for place, line in lines if UNTITLED in line[:300]]
    if not titles:
        return None
    check_single(titles)
    observed = Observed(what="vllm bench serve", kind="benchmark")
    values: dict[str, tuple[str, int]] = {}
    said = _command(observed, lines)
    for place, line in lines:
        match = LINE.match(_unit_before(BEFORE.sub("", line[:300], count=1)))
        if match is not None and (place >= titles[0] or match["label"] in (*CONCURRENCY, *ARRIVALS)):
            values.setdefault(match["label"], (match["value"], place))
            _see(observed, match["label"], match["value"], place)
    if any(label in values for label in (*CONCURRENCY, *ARRIVALS)):
        said = {"Prompts": said["Prompts"]} if "Prompts" in said else {}
    _load(observed, {**said, **values})
    keep_printed(observed, values)
    return observed


def _unit_before(line: str) -> str:
    """Return a line with its unit where it stands today."""
    said = UNIT_BEHIND.match(line)
    return f"{said['label']} ({UNITS[said['unit']]}): {said['value']}" if said else line


def _command(observed: Observed, lines: Lines) -> dict[str, tuple[str, int]]:
    """Keep the model that the command names, and return what it says of the load."""
    for place, line in whole_commands(lines):
        command = COMMAND.search(line[:MOST_CHARACTERS])
        if command is None:
            continue
        told = command[1] or command[2] or ""
        model = MODEL.search(told)
        if model is not None:
            observed.state("model", model[1] or model[2], place)
        return {label: (said[1], place) for label, flag in FLAGS.items() if (said := flag.search(told))}
    return {}


def _see(observed: Observed, label: str, value: str, place: int) -> None:
    latency, rate = LATENCY.fullmatch(label), RATES.get(label)
    if (latency or rate) and UNDEFINED.fullmatch(value):
        leave_out(observed, label, value, place)
    if not value[0].isdigit() or number(value) <= 0:
        return
    if latency is not None:
        observed.see(f"{FIELDS[latency[2]]}.{STATISTICS[latency[1]]}", 1e-3 * number(value), place)
    elif rate is not None:
        observed.see(rate, number(value), place)


def _load(observed: Observed, values: Mapping[str, tuple[str, int]]) -> None:
    backend, place = values.get("Backend", ("", 1))
    if backend.startswith("sglang"):
        observed.what = "SGLang bench_serving"
        observed.state("engine", "sglang", place)
    done, failed = _counted(values, (DONE,)), _counted(values, (FAILED,))
    sent = _counted(values, ("Prompts",))
    if failed:
        check_answered(failed[0], failed[0] + (done[0] if done else 0.0), failed[1])
    elif done and sent:
        check_answered(sent[0] - done[0], sent[0], done[1])
    for label, field in ((PROMPTS, "input_tokens"), (COMPLETIONS, "output_tokens")):
        total = _counted(values, (label,))
        if done and total:
            observed.state(field, max(round(total[0] / done[0]), 1), total[1])
            observed.lengths_vary = total[0] % done[0] != 0  # of answers, which come last
    concurrency, arrivals = _counted(values, CONCURRENCY), _counted(values, ARRIVALS)
    if concurrency and not (arrivals and _is_idle(observed, concurrency[0], values)):
        observed.state("concurrent_requests", round(concurrency[0]), concurrency[1])
    elif arrivals:
        observed.state("request_rate_per_s", arrivals[0], arrivals[1])
    elif done and _are_at_once(values):
        observed.state("concurrent_requests", round(done[0]), done[1])
    if done:
        observed.state("num_prompts", round(done[0]), done[1])
        assume_at_once(observed, done[0])


def _is_idle(observed: Observed, limit: float, values: Mapping[str, tuple[str, int]]) -> bool:
    """Return whether the result says that its limit held no request back, so that its rate did."""
    prompts, most, mean = (_counted(values, (label,)) for label in (DONE, MOST_RUNNING, MEAN_RUNNING))
    tokens = number_in(observed.settings.get("output_tokens"))
    rate, ttft_s, tpot_s = (_mean(observed, name) for name in ("requests_per_s", "ttft_s.mean", "tpot_s.mean"))
    counted = mean[0] if mean else running(rate, ttft_s, tpot_s, tokens)
    return is_limit_idle(limit, prompts[0] if prompts else 0.0, most[0] if most else 0.0, counted)


def _mean(observed: Observed, name: str) -> float:
    return observed.figures[name].value if name in observed.figures else 0.0


def _are_at_once(values: Mapping[str, tuple[str, int]]) -> bool:
    """Return whether the result says that neither a rate nor a limit held requests back."""
    rates, limits = ([values[label][0] for label in labels if label in values] for labels in (ARRIVALS, CONCURRENCY))
    return rates == ["inf"] and bool(limits) and not limits[0][0].isdigit()


def _counted(values: Mapping[str, tuple[str, int]], labels: Sequence[str]) -> tuple[float, int] | None:
    """Return the number beside the first of these labels, and its line; None where none has one."""
    for label in labels:
        text, place = values.get(label, ("", 1))
        if text[:1].isdigit() and number(text) > 0:
            return number(text), place
    return None

"""Any answer in several formats, from its JSON, rows, lines and gauges; or one number of it."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from rapidfuzz import fuzz

from service.questions.answers import Answer, Row, flat
from service.questions.parts.writing import Format, Writing
from service.questions.refusals import Fault, RefusalError

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# Formats that machines read one number from: there an infeasible question is refused.
NUMBERS_ONLY = frozenset({"prometheus"})
MOST_PATH_SHOWN = 100
# What people call the value of a path.
PATH_CALLED: Mapping[str, str] = {
    **dict.fromkeys(("price", "usd", "usd_per_hour", "hourly_price", "cost"), "cost.usd_per_hour"),
    **dict.fromkeys(("usd_per_month", "monthly_cost", "cost.monthly"), "cost.usd_per_month"),
    **dict.fromkeys(("gpu_count", "num_gpus", "count", "n"), "gpus"),
    **dict.fromkeys(("pods", "num_replicas"), "replicas"),
    **dict.fromkeys(("tp", "tensor_parallel_size"), "layout.tensor_parallel_size"),
    **dict.fromkeys(("ttft", "ttft_s", "latency.ttft"), "latency.ttft_s.p95"),
    **dict.fromkeys(("tpot", "tpot_s", "latency.tpot"), "latency.tpot_s.p95"),
}
MOST_REASONS = 3  # of what would fit, in a line of a log
FITS = re.compile(r"([a-z_]+)=(\S+) fits")  # one field that would
MOST_PATHS_SHOWN = 20  # of a hundred that an answer may have


@dataclass(frozen=True, slots=True)
class Written:
    """An answer as it leaves the service."""

    text: str
    media_type: str


def written(answer: Answer[Any], how: Writing) -> Written:
    """Return the answer in the format asked for.

    Raises:
        RefusalError: one number was asked for and the question has no feasible answer, because a
            machine that reads 0 scales to zero; or the answer has no such number.
    """
    is_read = how.format in NUMBERS_ONLY or (answer.is_scaled_by and how.format == "json")
    if (how.field is not None or is_read) and not answer.is_feasible:
        raise _no_number(answer)
    if how.field is not None:
        return Written(_scalar(answer.document, how.field) + "\n", "text/plain")
    if how.format == "prometheus":
        return _prometheus(answer, how.workload)
    return WRITERS[how.format](answer)


def _no_number(answer: Answer[Any]) -> RefusalError:
    """Return the refusal of a question without an answer: what would fit, as its machine's log shows it."""
    told, shown = answer.why_none(), "text" if answer.is_scaled_by else "json"
    reasons = "".join(f"; {each}" for each in told[:MOST_REASONS])
    more = f"ask with format={shown} for {'the whole answer' if told else 'the reason'}"
    detail = f"the question has no feasible answer, so there is no number to read{reasons}; {more}"
    fits = (FITS.match(each) for each in told)
    faults = (Fault(fit[1], "nothing is feasible as it was asked", fit[2]) for fit in fits if fit)
    return RefusalError("infeasible", detail, *faults)


def _json(answer: Answer[Any]) -> Written:
    return Written(answer.json + "\n", "application/json")


def _yaml(answer: Answer[Any]) -> Written:
    return Written(yaml.safe_dump(answer.document, sort_keys=False, allow_unicode=True), "application/yaml")


def _csv(answer: Answer[Any]) -> Written:
    return Written(table(answer.asked_rows()), "text/csv")


def _text(answer: Answer[Any]) -> Written:
    lines = (*answer.lines(), answer.asked_line()) if answer.asked else answer.lines()
    return Written("\n".join(lines) + "\n", "text/plain")


def _prometheus(answer: Answer[Any], workload: str | None = None) -> Written:
    """Return gauges that name the question, so that two of them never collide."""
    shared = {"workload": workload or answer.digest, **answer.labels()}
    gauges: dict[str, GaugeMetricFamily] = {}
    for told_by, numbers in answer.groups():
        labels = {**shared, **told_by}
        for path, value in numbers:
            name = "sizer_" + path.replace(".", "_")
            gauge = gauges.setdefault(name, GaugeMetricFamily(name, f"{path} of the answer", labels=tuple(labels)))
            gauge.add_metric(tuple(labels.values()), value)
    text = generate_latest(_Gauges(gauges.values())).decode()
    return Written(text, "text/plain; version=0.0.4; charset=utf-8")


WRITERS: Mapping[Format, Callable[[Answer[Any]], Written]] = {
    "json": _json,
    "yaml": _yaml,
    "csv": _csv,
    "text": _text,
    "prometheus": _prometheus,
}


def table(rows: Sequence[Row], columns: Sequence[str] = ()) -> str:
    """Return rows as CSV under columns, else those of the first row; nothing where there are neither."""
    buffer = io.StringIO()
    if rows or columns:
        writer = csv.DictWriter(buffer, fieldnames=columns or list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return buffer.getvalue()


def _cell(value: object) -> object:
    """Return a cell that a spreadsheet does not run as a formula; a truth as JSON writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def _scalar(document: Row, path: str) -> str:
    """Return one scalar of the answer as text, by its dotted path."""
    node: Any = document
    parts = path.split(".")
    for depth, part in enumerate(parts):
        if isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, dict) and part in node:
            node = node[part]
        else:
            raise _nothing_here(path, document) if node is None else _no_such_field(path, node, parts[:depth])
    if node is None:
        raise _nothing_here(path, document)
    if node in ([], {}):
        raise _no_such_field(path, document, (), "the answer has an empty list at")
    if isinstance(node, dict | list):
        raise _no_such_field(path, node, parts)
    return str(node).lower() if isinstance(node, bool) else str(node)


def _no_such_field(
    path: str, node: object, at: Sequence[str], told: str = "the answer has no single value at"
) -> RefusalError:
    """Return the refusal of a path, with those that go on from where it still led to something."""
    detail = f"{told} {path[:MOST_PATH_SHOWN]!r}"
    return RefusalError("no-such-field", detail, Fault("field", detail, _near(path, node, at)))


def _near(path: str, node: object, at: Sequence[str]) -> str:
    """Return the paths that go on from a part of an answer, the nearest first: those that begin or end as asked."""
    if isinstance(node, list) and node:
        if not isinstance(node[0], dict | list):
            return ", ".join(".".join((*at, str(place))) for place in range(min(len(node), MOST_PATHS_SHOWN)))
        node, at = node[0], (*at, "0")
    taken = [".".join((*at, name)) for name in _paths(node)] if isinstance(node, dict) else []
    asked = path[:MOST_PATH_SHOWN]
    meant = PATH_CALLED.get(asked.lower().replace("-", "_"))

    def distance(name: str) -> tuple[bool, bool, bool, float]:
        ends = name.endswith(f".0.{path}")
        return name != meant, not name.startswith(path), not ends, -fuzz.ratio(asked, name)

    return ", ".join(sorted(taken, key=distance)[:MOST_PATHS_SHOWN]) or "the path of a value that is not null"


def _paths(node: Row) -> Iterator[str]:
    """Yield the paths of values, those of the first of each list included."""
    yield from (name for name, value in flat(node) if value is not None)
    for name, value in node.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from (f"{name}.0.{path}" for path, of_first in flat(value[0]) if of_first is not None)


def _nothing_here(path: str, document: Row) -> RefusalError:
    """Return the refusal of a path to nothing, with what the answer warns of: it says why, as for a missing price.

    Warnings of prices explain no other value, and others no price.
    """
    is_price = path.startswith("cost")
    told = [warning for warning in document.get("warnings") or () if ("price" in warning) == is_price]
    why = "".join(f"; {warning}" for warning in told)
    detail = f"the answer has null at {path[:MOST_PATH_SHOWN]!r}{why}"
    return RefusalError("no-such-field", detail, Fault("field", detail, _near(path, document, ())))


class _Gauges(Collector):
    """The numbers of one answer, as prometheus-client collects them."""

    def __init__(self, gauges: Iterable[GaugeMetricFamily]) -> None:
        self._gauges = tuple(gauges)

    def collect(self) -> Iterator[Metric]:
        """Yield one gauge for each name, of every group that has it."""
        yield from self._gauges

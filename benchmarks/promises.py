"""What the service promises, the tests that hold it to that, and the last figures: `make promises`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.promised import PROMISED, Promise
from benchmarks.results import RESULTS

SEEN_BEFORE, SEEN_NOW = "seen-a9aece5.json", "seen-now.json"
PAGE = Path("service/PROMISES.md")
HEAD = """# What the service promises

Written by `make promises`: each promise, the test that fails where it is broken (`make test`) or the benchmark that measures it, and its
last figures, of the machines that `make overload`, `make bench`, `make soak` and `make seen` ran on. `of_peak` is beside the peak right
before and after, by the same generator; `of_bare` is what a bare route takes of the processor for the same bytes, over what the service
takes. Seen: lines of the list of what once failed that hold today; each failed on the commit it was seen on.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *_promises(), *_overload(), *_growth(), *_soak(), *_seen()]).rstrip() + "\n"


def _promises() -> Iterator[str]:
    for section, promises in PROMISED.items():
        yield from (f"## {section}", "", "| promise | test | last figure |", "|---|---|---|")
        yield from (f"| {promise.words} | `{promise.test}` | {', '.join(_figures(promise))} |" for promise in promises)
        yield ""


def _figures(promise: Promise) -> Iterator[str]:
    """Yield the figures of a promise, as far as they were measured."""
    for address in promise.figures:
        file, row, *column = address.split(":")
        results = _results(file)
        if results is None:
            continue
        if file == SEEN_NOW:
            yield _lines_that_hold(results, row)
        elif row == "flat":
            yield _cell(results["flat"]["slices"][-1][column[0]])
        elif row in results:
            yield _cell(results[row][column[0]])
        else:
            yield next(_cell(each.get(column[0])) for each in results["rows"] if each["what"] == row)


def _lines_that_hold(results: Any, number: str) -> str:
    lines = [line["holds"] for name, line in results.items() if name.startswith(f"test_{number}_")]
    return f"seen: {sum(lines)} of {len(lines)}"


def _results(file: str) -> Any:
    path = RESULTS / file
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _seen() -> list[str]:
    before, now = _results(SEEN_BEFORE) or {}, _results(SEEN_NOW) or {}
    lines = [
        f"| {_said(name)} | {_outcome(before.get(name))} | {_outcome(now.get(name))} |"
        for name in sorted(now, key=_by_line)
    ]
    head = "The same probes over HTTP and the command line of either checkout: `make seen [CHECKOUT=DIR]`."
    return ["## What once failed", "", head, "", "| line, probe | a9aece5 | now |", "|---|---|---|", *lines, ""]


def _by_line(name: str) -> tuple[int, str]:
    return int(name.split("_")[1]), name


def _said(name: str) -> str:
    _, number, words = name.split("_", 2)
    return f"{number}: {words.replace('_s_', chr(39) + 's ').replace('_', ' ')}"


def _outcome(line: Any) -> str:
    if line is None:
        return "not asked"
    told = line["told"].removeprefix("AssertionError: ").replace("|", "/")
    return "holds" if line["holds"] else f"fails: {told}"


def _overload() -> list[str]:
    results = _results("overload.json")
    if results is None:
        return []
    names = (
        "what",
        "good_per_s",
        "of_peak",
        "cpu_us",
        "of_bare",
        "good_p50_ms",
        "good_p99_ms",
        "told_per_s",
        "told_p99_ms",
        "no_answer",
    )
    lines = ["## Load", "", f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    lines += [f"| {' | '.join(_cell(row.get(name)) for name in names)} |" for row in results["rows"]]
    memory = results["memory"]
    machine = results.get("machine")
    if machine:
        told = f"{machine['cores']} cores, shared with the generator; {machine['load_average']} processes wanted them before it began."
        lines += ["", told]
    return [*lines, "", f"Resident memory: {memory['before_mb']} MB before, {memory['after_mb']} MB after.", ""]


def _growth() -> list[str]:
    results = _results("growth.json")
    if results is None:
        return []
    small, large = results["rows"]
    lines = [
        f"| {name} | {small[name]:.3g} | {large[name]:.3g} | {results['times'][name]} | {promised} |"
        for name, promised in results["promised"].items()
    ]
    head = f"| processor time | {small['rows']} rows | {large['rows']} rows | times | promised at most |"
    return ["## Growth with the catalog", "", head, "|---|---|---|---|---|", *lines, ""]


def _soak() -> list[str]:
    results = _results("soak.json")
    if results is None:
        return []
    first, last = results["flat"]["slices"][0], results["flat"]["slices"][-1]
    lines = [f"| {name} | {_cell(first[name])} | {_cell(last[name])} |" for name in first]
    kills = results["kills"]
    told = f"{kills['seconds']:.0f} s: {kills['kills']} kills, {kills['writes']} confirmed writes, {kills['revisions']} revisions answered from."
    return [
        "## Soak",
        "",
        told,
        "",
        f"| {results['flat']['seconds']:.0f} s at half capacity | first tenth | last tenth |",
        "|---|---|---|",
        *lines,
        "",
    ]


def _cell(value: Any) -> str:
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - not a number


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""Lines that a runtime or a formatter wrapped into JSON: an object a line, one object alone, or a list of them.

Sources:
    Docker's json-file driver (`log`): docs.docker.com/engine/logging/drivers/json-file;
    Google Cloud (`textPayload`, `jsonPayload.message`): cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry;
    journald (`MESSAGE`): systemd.io/JOURNAL_EXPORT_FORMATS; CloudWatch (`message`); Python's JSON formatters (`msg`,
    `message`, `event`); Elasticsearch (`hits.hits[]._source.message`); Datadog (`data[].attributes.message`);
    Loki's query response (`data.result[].values`, pairs of nanoseconds and a line, by default the newest first):
    grafana.com/docs/loki/latest/reference/loki-http-api;
    newest first as well: Google Cloud's `gcloud logging read` (`--order`, default desc), logcli's `--output=jsonl`;
    files of container runtimes (`2016-10-06T00:17:09.669794202Z stdout P line`, where P is a part of a line and F its
    end): kubernetes/design-proposals-archive, node/kubelet-cri-logging.md.
"""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from service.engine.patience import go_on

KEYS: Final = ("log", "message", "msg", "textPayload", "MESSAGE", "event", "body", "line", "text")
INSIDE: Final = ("jsonPayload", "record", "attributes", "_source", "events", "entries", "logs", "hits", "data")
TIMES: Final = ("timestamp", "@timestamp", "time", "ts", "__REALTIME_TIMESTAMP")
DEEPEST: Final = 5
NANOSECONDS: Final = re.compile(r"[0-9]{1,20}")
WRITTEN: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (stdout|stderr) ([FP])(?: (.*))?")


def unwrapped(text: str) -> str:
    r"""Return the lines that were wrapped, each where it stood; the text itself where none was.

    >>> unwrapped('{"log": "Available KV cache memory: 8.11 GiB\\n", "stream": "stderr"}')
    'Available KV cache memory: 8.11 GiB'
    >>> unwrapped('{"mean_ttft_ms": 3.5}')
    '{"mean_ttft_ms": 3.5}'
    """
    text = _joined(text)
    if not text.lstrip().startswith(("{", "[")):
        return _each(text, text.splitlines()) if '{"' in text else text
    whole = _said(text)
    if whole is not None:
        return whole
    lines = text.splitlines()
    return _of_docker(lines) or _each(text, _lines_oldest_first(lines))


def _each(text: str, lines: Sequence[str]) -> str:
    r"""Return what each line wraps; the text to its last character, its end included, where none wraps anything.

    >>> _each('[{"mean_ttft_ms": 3.5}]\n', ['[{"mean_ttft_ms": 3.5}]'])
    '[{"mean_ttft_ms": 3.5}]\n'
    """
    said = [_line(line) for line in lines]
    return "\n".join(said) if said != text.splitlines() else text


def _of_docker(lines: Sequence[str]) -> str | None:
    r"""Return what Docker's json-file driver wrote, lines that it cut in parts of 16 KiB whole; None of anything else.

    Its `log` has the line's end, and a part that goes on has none; other drivers never write one.

    >>> _of_docker(['{"log": "Available KV "}', r'{"log": "cache memory: 8.11 GiB\n"}'])
    'Available KV cache memory: 8.11 GiB\n'
    """
    parts: dict[str, list[str]] = {}
    whole: list[str] = []
    try:
        entries = [json.loads(line) for line in lines if line.strip()]
    except (ValueError, RecursionError):
        return None
    if not all(isinstance(entry, dict) and isinstance(entry.get("log"), str) for entry in entries):
        return None
    if not any(entry["log"].endswith("\n") for entry in entries):
        return None
    for entry in entries:
        of_stream = parts.setdefault(str(entry.get("stream")), [])
        of_stream.append(entry["log"])
        if entry["log"].endswith("\n"):
            whole.append("".join(parts.pop(str(entry.get("stream")))))
    return "".join([*whole, *("".join(rest) for rest in parts.values())])


def _lines_oldest_first(lines: Sequence[str]) -> Sequence[str]:
    """Return lines in the order of their time, where each is an object that has one and they stand the newest first."""
    stated = [line for line in lines if line.strip()]
    try:
        times = [_time(json.loads(line)) for line in stated]
    except (ValueError, RecursionError):
        return lines
    return stated[::-1] if _are_falling(times) else lines


def _time(document: Any) -> tuple[int, str] | None:
    """Return when an entry was written, as what can be compared with others of its kind; None where it does not say.

    >>> _time({"timestamp": "2026-11-20T10:00:00.5Z"}) > _time({"timestamp": "2026-11-20T10:00:00Z"})
    True
    """
    if not isinstance(document, dict):
        return None
    for written in (document, *(own for key in INSIDE if isinstance(own := document.get(key), dict))):
        time = next((str(value) for key in TIMES if isinstance(value := written.get(key), str | int)), None)
        if time is not None:
            return (int(time), "") if NANOSECONDS.fullmatch(time) else (0, time.removesuffix("Z"))
    return None


def _are_falling(times: Sequence[tuple[int, str] | None]) -> bool:
    """Return whether all of them are known, none is later than the one before it, and the last is earlier."""
    known = [time for time in times if time is not None]
    if len(known) < len(times) or not known:
        return False
    return known[-1] < known[0] and all(later <= before for before, later in pairwise(known))


def _joined(text: str) -> str:
    r"""Return the lines that a container runtime wrote in parts, each where it ends; others as they are.

    >>> _joined("2016-10-06T00:17:09.6Z stdout P log content 1, \n2016-10-06T00:17:10.1Z stdout F log content 2")
    'log content 1, log content 2'
    """
    if WRITTEN.match(text.lstrip()) is None:
        return text
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        written = WRITTEN.fullmatch(line.strip())
        if written is None:
            lines.append(line)
            continue
        stream, end, part = written[1], written[2], line.lstrip()[written.start(3) :] if written[3] else ""
        parts.setdefault(stream, []).append(part)
        if end == "F":
            lines.append("".join(parts.pop(stream)))
    return "\n".join([*lines, *("".join(rest) for rest in parts.values())])


def _line(line: str) -> str:
    """Return what a line wraps, without its end; the line itself where it wraps nothing."""
    go_on()
    bare = line.strip()
    said = _said(bare) if bare.startswith("{") and bare.endswith("}") else None
    return line if said is None else said.replace("\n", " ")


def _said(text: str) -> str | None:
    try:
        return _message(json.loads(text), DEEPEST)
    except (ValueError, RecursionError):
        return None


def _message(document: Any, deepest: int) -> str | None:
    """Return the message of an object, or those of a list, a line each."""
    if isinstance(document, str):
        return document
    if isinstance(document, list) and deepest:
        document = document[::-1] if _are_falling([_time(each) for each in document]) else document
        lines = [line for each in document if (line := _message(each, deepest - 1)) is not None]
        return "\n".join(lines) if lines and len(lines) == len(document) else None
    if not isinstance(document, dict) or not deepest:
        return None
    if (queried := _queried(document)) is not None:
        return queried
    own = next((value for key in KEYS if isinstance(value := document.get(key), str)), None)
    if own is not None:
        return own.rstrip("\n")
    return next((said for key in INSIDE if (said := _message(document.get(key), deepest - 1)) is not None), None)


def _queried(document: dict[str, Any]) -> str | None:
    """Return the lines of Loki's response to a query, the oldest first; None of anything else."""
    data = document.get("data")
    streams = data.get("result") if isinstance(data, dict) and data.get("resultType") == "streams" else None
    if not isinstance(streams, list):
        return None
    values = [each.get("values") for each in streams if isinstance(each, dict)]
    of_all = [pair for each in values if isinstance(each, list) for pair in each if isinstance(pair, list)]
    pairs = [(int(pair[0]), str(pair[1])) for pair in of_all if len(pair) >= 2 and NANOSECONDS.fullmatch(str(pair[0]))]
    return "\n".join(line.rstrip("\n") for _, line in sorted(pairs, key=lambda pair: pair[0]))

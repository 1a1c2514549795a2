"""Lines that a runtime or a formatter wrapped into JSON: an object a line, one object alone, or a list of them.

Sources:
    Docker's json-file driver (`log`): docs.docker.com/engine/logging/drivers/json-file;
    Google Cloud (`textPayload`, `jsonPayload.message`): cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry;
    journald (`MESSAGE`): systemd.io/JOURNAL_EXPORT_FORMATS; CloudWatch (`message`); Python's JSON formatters (`msg`,
    `message`, `event`).
"""

import json
from typing import Any, Final

from service.engine.patience import go_on

KEYS: Final = ("log", "message", "msg", "textPayload", "MESSAGE", "event", "body", "line", "text")
INSIDE: Final = ("jsonPayload", "record", "attributes", "events", "entries", "logs")
DEEPEST: Final = 4


def unwrapped(text: str) -> str:
    r"""Return the lines that were wrapped, each where it stood; the text itself where none was.

    >>> unwrapped('{"log": "Available KV cache memory: 8.11 GiB\\n", "stream": "stderr"}')
    'Available KV cache memory: 8.11 GiB'
    >>> unwrapped('{"mean_ttft_ms": 3.5}')
    '{"mean_ttft_ms": 3.5}'
    """
    if not text.lstrip().startswith(("{", "[")):
        return "\n".join(_line(line) for line in text.splitlines()) if '{"' in text else text
    whole = _said(text)
    return whole if whole is not None else "\n".join(_line(line) for line in text.splitlines()) or text


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
        lines = [line for each in document if (line := _message(each, deepest - 1)) is not None]
        return "\n".join(lines) if lines and len(lines) == len(document) else None
    if not isinstance(document, dict) or not deepest:
        return None
    own = next((value for key in KEYS if isinstance(value := document.get(key), str)), None)
    if own is not None:
        return own.rstrip("\n")
    return next((said for key in INSIDE if (said := _message(document.get(key), deepest - 1)) is not None), None)

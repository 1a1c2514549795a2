"""Lines that a notebook holds: the code of its cells, and what they printed.

Source:
    nbformat 4 (`nbformat/v4/nbformat.v4.schema.json`): cells, their `source`, and `outputs` of streams and data.
"""

import json
from collections.abc import Iterator
from typing import Any

from service.engine.patience import go_on


def printed_in(text: str) -> str | None:
    r"""Return the lines of a notebook; None of any other text.

    >>> printed_in('{"nbformat": 4, "cells": [{"source": "", "outputs": [{"text": ["1 GiB\\n", "2 GiB\\n"]}]}]}')
    '1 GiB\n2 GiB\n'
    """
    if '"nbformat"' not in text:
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    cells = document.get("cells") if isinstance(document, dict) else None
    return "\n".join(part for part in _parts(cells) if part) if isinstance(cells, list) else None


def _parts(cells: list[Any]) -> Iterator[str]:
    for cell in cells:
        go_on()
        if not isinstance(cell, dict) or not isinstance(outputs := cell.get("outputs"), list):
            continue
        yield _joined(cell.get("source"))
        for output in outputs:
            if isinstance(output, dict):
                data = output.get("data")
                yield _joined(output.get("text") or (data.get("text/plain") if isinstance(data, dict) else None))


def _joined(lines: object) -> str:
    """Return what a notebook keeps as lines, or as one text."""
    return "".join(map(str, lines)) if isinstance(lines, list) else str(lines or "")

"""Reads JSON without losing what was stated twice."""

import json
from collections import Counter
from typing import Any


def read_json(text: str | bytes) -> tuple[Any, tuple[str, ...]]:
    """Return the value, and the names that some object in it states more than once: the last one would win.

    Raises:
        ValueError: it is not JSON.
    """
    twice: dict[str, None] = {}

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        stated = dict(pairs)
        if len(stated) < len(pairs):
            twice.update((name, None) for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        return stated

    return json.loads(text, object_pairs_hook=once), tuple(twice)

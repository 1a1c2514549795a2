"""A published config with some of its fields changed."""

from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.errors import EngineError
from service.engine.families import parse_architecture


def refused_field(catalog: Snapshot, model: str, changed: dict[str, Any]) -> str | None:
    """Return which field is refused where the language model's part of a config is changed."""
    config: dict[str, Any] = catalog.model_entries[model].config

    with pytest.raises(EngineError) as refusal:
        parse_architecture({**config, "text_config": {**config["text_config"], **changed}})

    return refusal.value.field

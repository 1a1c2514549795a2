"""Calibration compares the engine with what was measured as anybody would: it asks the engine's front door."""

import re
from pathlib import Path

import pytest

CALIBRATION = Path(__file__).resolve().parents[2] / "service" / "calibration"
BEHIND_THE_DOOR = re.compile(r"^\s*(?:from|import) service\.engine\.\w+", re.MULTILINE)


@pytest.mark.parametrize("path", sorted(CALIBRATION.rglob("*.py")), ids=lambda path: str(path.relative_to(CALIBRATION)))
def test_nothing_is_taken_from_behind_the_front_door(path: Path) -> None:
    assert BEHIND_THE_DOOR.findall(path.read_text(encoding="utf-8")) == []


def test_such_an_import_would_be_seen() -> None:
    assert BEHIND_THE_DOOR.search("import os\nfrom service.engine.memory.plan import memory_plan\n")
    assert not BEHIND_THE_DOOR.search("from service.engine import plan_replica\n")

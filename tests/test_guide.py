"""The guide for the next person: its recipes work as they stand, its table of rooms is the house."""

import re
from pathlib import Path
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot

SERVICE = Path(__file__).resolve().parents[1] / "service"
GUIDE = (SERVICE / "README.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### (Add an? [^\n]+)\n.*?^```python\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL))


def test_there_is_a_recipe_for_everything_that_is_added_often() -> None:
    assert list(RECIPES) == [
        "Add a layer variant", "Add a model family", "Add a GPU", "Add an engine version", "Add a question", "Add a format",
    ]  # fmt: skip


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_works_as_it_stands(name: str, catalog: Snapshot) -> None:
    assert "assert " in RECIPES[name]
    names: dict[str, Any] = {"catalog": catalog, "__name__": "recipe"}

    exec(compile(RECIPES[name], name, "exec"), names)  # noqa: S102 - what the guide tells to write


def test_every_room_stands_in_the_guide() -> None:
    table = GUIDE[GUIDE.index("## The rooms") : GUIDE.index("## The way")]
    rooms = {path.parent for path in SERVICE.rglob("__init__.py")}
    outer = {path for path in rooms if len(path.relative_to(SERVICE).parts) == 1}
    inner = {path for path in rooms if path.parent == SERVICE / "engine"}

    for path in (outer - {SERVICE / "engine"}) | inner:
        assert f"`{path.relative_to(SERVICE)}/`" in table, path
    for name in re.findall(r"`([a-z_/]+\.py)`", table):
        assert any(SERVICE.rglob(name)), name

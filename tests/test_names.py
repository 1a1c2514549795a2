"""Names say what they name: nothing in the service is called `it`, and no parameter `found`."""

import ast
from pathlib import Path

import pytest

SERVICE = Path(__file__).resolve().parents[1] / "service"
SAYING_NOTHING = {"it", "its", "found"}


def parameters(tree: ast.AST) -> list[str]:
    """Return the names of all parameters, of functions and of lambdas."""
    return [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]


@pytest.mark.parametrize("room", sorted(path.parent for path in SERVICE.rglob("__init__.py")), ids=str)
def test_every_parameter_has_a_name(room: Path) -> None:
    for path in sorted(room.glob("*.py")):
        assert SAYING_NOTHING.isdisjoint(parameters(ast.parse(path.read_text(encoding="utf-8")))), path


@pytest.mark.parametrize("room", sorted(path.parent for path in SERVICE.rglob("__init__.py")), ids=str)
def test_nothing_is_called_it(room: Path) -> None:
    for path in sorted(room.glob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        assert [node.lineno for node in nodes if isinstance(node, ast.Name) and node.id == "it"] == [], path


def test_such_a_name_would_be_seen() -> None:
    assert parameters(ast.parse("def rule(found, *, its): return sorted(found, key=lambda it: it.size)")) == [
        "found",
        "its",
        "it",
    ]

"""Names say what they name: no parameter of the service is called `it` or `found`."""

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


def test_such_a_name_would_be_seen() -> None:
    assert parameters(ast.parse("def rule(found, *, its): return sorted(found, key=lambda it: it.size)")) == [
        "found",
        "its",
        "it",
    ]

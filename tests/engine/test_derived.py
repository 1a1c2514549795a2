"""What follows from a fact is found once, is bounded, and leaves with the fact."""

import ast
import gc
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from service.engine import Layout, parse_architecture
from service.engine.derived import Derived, derived
from service.engine.formats.quantization import UNQUANTIZED
from service.engine.layers import Architecture
from service.engine.memory.parameters import num_parameters
from service.engine.memory.weights import rank_weights

SERVICE = Path(__file__).resolve().parents[2] / "service"
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_hidden_layers": 2,
    "intermediate_size": 1_024,
    "vocab_size": 64,
    "max_position_embeddings": 8_192,
}


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    value: int
    asked: list[int] = field(default_factory=list)
    derived: Derived = field(default_factory=Derived, init=False)


@derived(2)
def multiple(number: Number, factor: int, *, added: int = 0) -> int:
    """Return a multiple."""
    number.asked.append(factor)
    return number.value * factor + added


def test_a_rule_is_asked_once_for_equal_arguments() -> None:
    number = Number(3)

    assert [multiple(number, 2), multiple(number, 2), multiple(number, 2, added=1)] == [6, 6, 7]
    assert number.asked == [2, 2]


def test_each_owner_has_its_own() -> None:
    one, other = Number(3), Number(5)

    assert [multiple(one, 2), multiple(other, 2), multiple(one, 2)] == [6, 10, 6]
    assert (len(one.derived), len(other.derived)) == (1, 1)


def test_the_value_not_asked_for_the_longest_goes_alone() -> None:
    number = Number(3)
    for factor in (1, 2, 1, 3, 1, 2):
        multiple(number, factor)

    assert number.asked == [1, 2, 3, 2]
    assert len(number.derived) == 2


def test_a_rule_that_raises_is_asked_again() -> None:
    @derived(1)
    def refused(number: Number) -> int:
        number.asked.append(0)
        raise ValueError(number.value)

    number = Number(3)
    for _ in range(2):
        with pytest.raises(ValueError, match="3"):
            refused(number)

    assert number.asked == [0, 0]


def test_what_follows_from_a_model_leaves_with_it() -> None:
    model = parse_architecture({**CONFIG, "vocab_size": 4_711})
    rank_weights(model, layout=Layout(), quantization=UNQUANTIZED)
    num_parameters(model)
    assert len(model.derived) > 2

    del model
    gc.collect()

    left = [each for each in gc.get_objects() if isinstance(each, Architecture) and each.vocab_size == 4_711]
    assert left == []


def test_modules_keep_nothing_that_depends_on_an_argument() -> None:
    """Files of the release are read once; whatever depends on a model, a GPU or a question belongs to an object."""
    keeping = {
        f"{path.relative_to(SERVICE)}:{node.name}"
        for path in SERVICE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and ast.unparse(node.args) and _is_cached(node)
    }

    assert keeping == set()


def test_modules_hold_nothing_that_grows() -> None:
    """A dictionary or cache of a module's own, filled while questions are answered, belongs to nobody."""
    growing = {
        f"{path.relative_to(SERVICE)}:{ast.unparse(target)}"
        for path in SERVICE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_empty_store(node.value)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }

    assert growing == set()


STORES = ("dict", "list", "set", "OrderedDict", "defaultdict", "LRUCache", "TTLCache", "Kept", "WeakKeyDictionary")


def _is_empty_store(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        name = ast.unparse(value.func).split("[")[0].split(".")[-1]
        return name in STORES and (name not in ("dict", "list", "set") or not value.args + value.keywords)
    return (isinstance(value, ast.Dict) and not value.keys) or (isinstance(value, ast.List) and not value.elts)


def _is_cached(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(each).split("(")[0].split(".")[-1] in ("lru_cache", "cache") for each in node.decorator_list)

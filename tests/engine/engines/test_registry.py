"""An engine is one file: one that forgets a rule fails the type check, and nobody else compares engines' names."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from packaging.version import Version

from service.calibration.logs.engines import LOGS
from service.engine.engines.base import Engine, Spent
from service.engine.engines.flags.base import CommandLine
from service.engine.engines.registry import DEFAULT_ENGINE, ENGINES, engine_named
from service.engine.inputs import EngineName
from service.measurements.startup_logs import READERS

ROOT = Path(__file__).resolve().parents[3]
ENGINES_ROOM = ROOT / "service" / "engine" / "engines"
NAMES = frozenset(get_args(EngineName))
GIB = 1 << 30

PATHS = [path for path in sorted((ROOT / "service").rglob("*.py")) if ENGINES_ROOM not in path.parents]


def names_in(node: ast.AST | None) -> bool:
    """Say whether an expression is an engine's name, or a collection that holds one."""
    match node:
        case ast.Constant(value=value):
            return value in NAMES
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return any(names_in(element) for element in elements)
        case _:
            return False


def comparisons(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that choose by an engine's name: by comparison, match, or a table with names as keys."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                is_asked = any(names_in(each) for each in (left, *others))
            case ast.MatchValue(value=value):
                is_asked = names_in(value)
            case ast.Dict(keys=keys):
                is_asked = any(names_in(key) for key in keys)
            case _:
                continue
        if is_asked:
            yield node.lineno


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nobody_outside_compares_an_engine_s_name(path: Path) -> None:
    assert list(comparisons(ast.parse(path.read_text(encoding="utf-8")))) == []


def test_such_a_comparison_would_be_seen() -> None:
    asked = """
is_vllm = engine == "vllm"
has_own = engine in ("sglang", "tensorrt-llm")
title = {"sglang": "SGLang"}[engine]
match engine:
    case "vllm" | "sglang": pass
    case _: pass
default: EngineName = "vllm"
rules = rules_for("vllm")
"""
    assert sorted(set(comparisons(ast.parse(asked)))) == [2, 3, 4, 6]


def test_every_name_of_a_question_is_an_engine() -> None:
    assert set(ENGINES) == NAMES
    assert {reader.engine for reader in READERS} == NAMES
    assert set(LOGS) == NAMES
    assert all(engine_named(name).name == name for name in ENGINES)
    assert DEFAULT_ENGINE in ENGINES


@pytest.mark.parametrize(("owed", "written"), [(Engine, "vllm.py"), (CommandLine, "flags/vllm.py")])
def test_an_engine_that_forgets_any_rule_fails_the_type_check_by_the_rule_s_name(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, owed: type[Engine | CommandLine], written: str
) -> None:
    rules = sorted(owed.__abstractmethods__)
    bodies = ast.parse((ENGINES_ROOM / written).read_text(encoding="utf-8")).body
    whole = next(node for node in bodies if isinstance(node, ast.ClassDef))
    module = tmp_path / "forgetful.py"
    lines = [ast.unparse([node for node in bodies if node is not whole])]  # type: ignore[arg-type]
    for rule in rules:
        kept = [node for node in whole.body if rule not in stated_by(node)]
        copy = ast.ClassDef(name=f"Without_{rule}", bases=whole.bases, keywords=[], body=kept, decorator_list=[])
        lines.append(f"{ast.unparse(copy)}\n\nWithout_{rule}()")
    module.write_text("\n\n".join(lines), encoding="utf-8")

    cache = tmp_path_factory.getbasetemp() / "mypy"  # what both read of the library is checked once
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(cache), str(module)],
        check=False, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)},
    )  # fmt: skip

    expected = [
        f'Cannot instantiate abstract class "Without_{rule}" with abstract attribute "{rule}"' for rule in rules
    ]
    assert len(rules) > 8
    assert all(sentence in done.stdout for sentence in expected), done.stdout


def stated_by(node: ast.stmt) -> set[str]:
    """Return the names that a statement of a class gives a value."""
    match node:
        case ast.FunctionDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


SPENT = Spent(
    total_bytes=80 * GIB, weight_bytes=16 * GIB, activation_bytes=4 * GIB, graph_bytes=2 * GIB, non_torch_bytes=GIB
)


def test_each_engine_takes_its_share_of_something_else() -> None:
    # vLLM 0.33 gpu_worker.py; SGLang model_runner_kv_cache_mixin.py; TensorRT-LLM, "Memory Usage of TensorRT-LLM".
    left = {
        (name, counts_graphs): engine.cache_bytes(SPENT, 0.75, counts_graphs=counts_graphs) / GIB
        for name, engine in ENGINES.items()
        for counts_graphs in (False, True)
    }

    assert left["vllm", False] == 0.75 * 80 - 16 - 4 - 1
    assert left["vllm", True] == 0.75 * 80 - 16 - 4 - 1 - 2
    assert left["sglang", False] == 0.75 * (80 - 1) - 16
    assert left["tensorrt-llm", True] == 0.75 * (80 - 16 - 4 - 2 - 1)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("share", [0.9, 1.0])
def test_no_pool_is_larger_than_what_is_left(name: EngineName, share: float) -> None:
    full = Spent(
        total_bytes=80 * GIB, weight_bytes=70 * GIB, activation_bytes=6 * GIB, graph_bytes=8 * GIB, non_torch_bytes=GIB
    )

    for spent in (SPENT, full):
        assert engine_named(name).cache_bytes(spent, share, counts_graphs=False) <= spent.left_bytes


def test_whose_rules_plan_a_version_is_said_where_they_are_not_its_own() -> None:
    assert engine_named("vllm").planned_as(Version("0.33.1")) is None
    assert engine_named("vllm").planned_as(Version("0.10.2")) is None
    assert engine_named("vllm").planned_as(Version("0.6.3")) == "vLLM 0.8"
    assert engine_named("vllm").planned_as(Version("0.34")) == "vLLM 0.33"
    assert engine_named("sglang").planned_as(Version("0.4.6")) == "SGLang 0.5.23"
    assert engine_named("tensorrt-llm").planned_as(Version("1.0")) == "vLLM 0.33"


def test_the_kernels_of_sglang_s_experts_in_mxfp4_were_measured_with_vllm_on_hopper_alone() -> None:
    """SGLang 0.5.10 `server_args.py` picks triton_kernels for gpt-oss, but not on Blackwell."""
    sglang = engine_named("sglang")

    assert sglang.kernels_like("mxfp4", "hopper") == "vllm"
    assert {sglang.kernels_like(*each) for each in (("mxfp4", "blackwell"), ("fp8-block", "hopper"))} == {"sglang"}
    assert {name: engine_named(name).kernels_like("mxfp4", "hopper") for name in ("vllm", "tensorrt-llm")} == {
        "vllm": "vllm",
        "tensorrt-llm": "tensorrt-llm",
    }

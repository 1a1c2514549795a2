"""Tests mirror the source: who looks for the test of a module of the engine finds it under the module's name."""

import ast
import json
from pathlib import Path

import pytest

from service.catalog.seed_files import seed_entries
from service.engine.families.registry import REGISTRY
from tests.engine.families.test_built import BUILT

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "service" / "engine"
# Still reached through other modules' tests alone; the list only gets shorter.
NOT_YET = {
    "answers/levers.py", "answers/gpu_steps.py", "engines/base.py", "engines/sglang.py", "engines/tensorrt_llm.py",
    "engines/vllm.py", "families/parts/mtp.py", "families/parts/family.py", "families/parts/intern_vit.py",
    "fleet/aims.py", "fleet/deployments.py", "fleet/estimates.py", "fleet/margin.py", "fleet/space.py",
    "fleet/variants.py", "formats/hashed.py", "patience.py", "time/decoding.py", "time/joining.py",
    "time/carrier.py",
}  # fmt: skip


def has_functions(path: Path) -> bool:
    """Return whether a module does anything; values alone need no test."""
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def modules() -> list[str]:
    """Return the engine's modules with functions, but for families: those are held by published configs."""
    paths = [path for path in sorted(ENGINE.rglob("*.py")) if path.name != "__init__.py" and has_functions(path)]
    names = [str(path.relative_to(ENGINE)) for path in paths]
    return [name for name in names if Path(name).parent != Path("families") or name == "families/registry.py"]


def test_a_module_s_test_has_its_name() -> None:
    missing = {
        name
        for name in modules()
        if not (ROOT / "tests/engine" / Path(name).with_name(f"test_{Path(name).name}")).is_file()
    }

    assert missing - NOT_YET == set(), "write tests/engine/.../test_<module>.py"


@pytest.mark.parametrize("name", sorted(NOT_YET))
def test_the_list_names_what_is_missing_and_nothing_else(name: str) -> None:
    assert not (ROOT / "tests/engine" / Path(name).with_name(f"test_{Path(name).name}")).is_file()


def test_published_configs_hold_every_family() -> None:
    published = {
        name
        for path in (ROOT / "tests/engine/families").glob("*.json")
        for name in json.loads(path.read_text(encoding="utf-8"))["config"].get("architectures", ())
    }
    published |= {name for config, *_ in BUILT.values() for name in config["architectures"]}
    published |= {name for model in seed_entries()[0] for name in model.config.get("architectures", ())}
    own = {path.stem.removeprefix("test_") for path in (ROOT / "tests/engine/families").glob("test_*.py")}
    unheld = [
        name for name, classes in classes_by_module().items() if name not in own and published.isdisjoint(classes)
    ]

    assert unheld == []


def classes_by_module() -> dict[str, set[str]]:
    """Return the classes that each family's file speaks for."""
    held: dict[str, set[str]] = {}
    for name in REGISTRY.families:
        for path in sorted((ENGINE / "families").glob("[a-z]*.py")):
            if f'"{name}"' in path.read_text(encoding="utf-8"):
                held.setdefault(path.stem, set()).add(name)
    return held

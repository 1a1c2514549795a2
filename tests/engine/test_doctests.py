"""Examples in docstrings are run: a formula of the engine shows a figure that somebody published."""

import ast
import doctest
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import service
from service.engine import layers

ROOT = Path(__file__).resolve().parents[2]
# Modules of layers without a formula of their own to show.
WITHOUT_EXAMPLES = {"architecture", "recurrent", "shared_blocks"}
# A line of a docstring that states a formula.
FORMULA = re.compile(r"\S\s=\s.*(\sx\s|/|\+|\^|min\(|max\(|ceil|floor|sqrt)|^\s+\S.*(\sx\s|\s/\s|sqrt)")
# Formulas for which nobody printed a figure, or whose figure stands with the part that was published.
UNPUBLISHED = {
    "_kv_read_s": "a slope of our own step times",
    "_with_readers": "the hub prints totals of whole models, to which they belong",
    "size": "its count of replicas is shown at Demand.replicas, its memory at plan_replica",
    "profiled": "no log prints what a tower's layer holds",
    "workspace_elements": "no log prints it: it is inside the peak shown at activation_bytes",
    "columned_bytes": "its figures, of the engine's own planner, stand in tests/engine/memory/test_packing.py",
    "by_size_bytes": "so do its own",
    "blocks_by_growing": "so do its own",
    "in_flight_tokens": "vLLM names the bound and prints no figure of it",
    "carried_in_memory": "the smaller of two numbers, each shown at requests_held and plan_kv_cache",
    "carried": "Little's law is shown at users_of",
    "seen": "Little's law is shown at users_of",
    "pace_s": "an estimate of our own simulation",
    "own_share": "its figures stand in tests/performance/test_roofline.py",
    "with_tokens": "its figures stand in tests/engine/time/test_batching.py",
    "decoding_of_stream": "a bound of our own simulation's beginning",
    "throughput": "an estimate of our own simulation",
    "read_rate": "the queue's law is shown at _busy_share",
    "drawn": "the definition of a distribution; its quantile is shown at longest_request",
    "warm_up_length": "the paper prints the rule and no small series",
    "standard_error": "the paper prints the rule and no small series",
    "open_loop": "the definition of a distribution",
    "_decode": "a lower bound of our own tables",
    "tables_of": "the library's own value of each point stands beside it in tests/performance/test_library.py",
    "loaded_bytes": "the log of one start prints it within its weights: tests/engine/memory/test_activation.py",
}


def modules_below(package: ModuleType) -> list[str]:
    folder = Path(package.__path__[0])
    names = (path.relative_to(folder).with_suffix("").parts for path in sorted(folder.rglob("[a-z]*.py")))
    return [".".join((package.__name__, *parts)) for parts in names]


def with_examples(package: ModuleType) -> list[str]:
    """Return the modules whose text has examples: none of the others needs to be imported."""
    return [
        name for name in modules_below(package) if ">>> " in (ROOT / f"{name.replace('.', '/')}.py").read_text("utf-8")
    ]


def examples(module: str) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder().find(import_module(module)) if test.examples]


@pytest.mark.parametrize("module", with_examples(service))
def test_examples_hold(module: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    for test in examples(module):
        runner.run(test, out=report.append)

    assert runner.summarize(verbose=False).failed == 0, "".join(report)


@pytest.mark.parametrize("module", modules_below(layers))
def test_every_variant_shows_a_figure(module: str) -> None:
    assert examples(module) or module.rsplit(".", 1)[-1] in WITHOUT_EXAMPLES


def formulas() -> Iterator[tuple[str, str]]:
    """Yield every function of the engine and its step times whose docstring states a formula, with the docstring."""
    for room in ("engine", "performance"):
        for path in sorted((ROOT / "service" / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                said = (ast.get_docstring(node) or "") if isinstance(node, ast.FunctionDef) else ""
                _, *rest = said.split("Args:")[0].split("\n")
                if isinstance(node, ast.FunctionDef) and any(FORMULA.search(line) for line in rest):
                    yield node.name, said


def test_every_formula_shows_a_figure_or_is_known_to_have_none() -> None:
    shown = {name: ">>> " in said for name, said in formulas()}

    assert len(shown) > 40
    assert {name for name, is_shown in shown.items() if not is_shown} == set(UNPUBLISHED)

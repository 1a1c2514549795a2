"""Examples in docstrings are run: a formula of the engine shows a figure that somebody published."""

import doctest
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import service
from service.engine import layers

ROOT = Path(__file__).resolve().parents[2]
# Modules of layers without a formula of their own to show.
WITHOUT_EXAMPLES = {"architecture", "recurrent", "shared_blocks"}


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

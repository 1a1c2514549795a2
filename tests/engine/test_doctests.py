"""Examples in docstrings are run: a formula of the engine shows a figure that somebody published."""

import doctest
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

import pytest

import service
from service.engine import layers

# Modules of layers without a formula of their own to show.
WITHOUT_EXAMPLES = {"architecture", "recurrent", "shared_blocks"}


def modules_below(package: ModuleType) -> list[str]:
    return [module.name for module in walk_packages(package.__path__, f"{package.__name__}.")]


def examples(module: str) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder().find(import_module(module)) if test.examples]


@pytest.mark.parametrize("module", [name for name in modules_below(service) if examples(name)])
def test_examples_hold(module: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    for test in examples(module):
        runner.run(test, out=report.append)

    assert runner.summarize(verbose=False).failed == 0, "".join(report)


@pytest.mark.parametrize("module", modules_below(layers))
def test_every_variant_shows_a_figure(module: str) -> None:
    assert examples(module) or module.rsplit(".", 1)[-1] in WITHOUT_EXAMPLES

"""Worked examples in docstrings are right."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import service.engine

MODULES = [info.name for info in pkgutil.walk_packages(service.engine.__path__, "service.engine.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0


def test_some_module_has_examples() -> None:
    assert sum(doctest.testmod(import_module(name)).attempted for name in MODULES) >= 5

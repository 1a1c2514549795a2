"""Examples in docstrings of how names are read are run."""

import doctest
from types import ModuleType

import pytest

from service.catalog.names import addresses, formats, unsized, words
from service.questions import neighbours


@pytest.mark.parametrize("module", [addresses, formats, unsized, words, neighbours])
def test_examples_hold(module: ModuleType) -> None:
    result = doctest.testmod(module)

    assert (result.failed, result.attempted > 0) == (0, True)

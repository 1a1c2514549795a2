"""What the tests of questions share: sources without step times, so that answers rest on memory alone."""

import pytest

from service.catalog.snapshot import Snapshot
from service.questions.sources import PastedModels, Sources


@pytest.fixture(scope="session")
def sources(catalog: Snapshot) -> Sources:
    return Sources(catalog=catalog, timers=None, pasted_models=PastedModels())

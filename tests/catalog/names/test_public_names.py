"""Names that the public uses for models and GPUs are understood, or refused with the right neighbour first."""

from pathlib import Path

import pytest
import yaml

from service.catalog.errors import NotInCatalogError
from service.catalog.names.readings import own_format
from service.catalog.snapshot import Snapshot

HERE = Path(__file__).parent
REFUSED = "refused"
MISSED = "missed"
LEAST_UNDERSTOOD = 0.95  # of names of what engines serve


def listed(*files: str) -> list[tuple[str, str]]:
    """Return every name of lists with what it means."""
    groups = (yaml.safe_load((HERE / file).read_text(encoding="utf-8")) for file in files)
    return [meant for each in groups for names in each.values() for meant in names.items()]


@pytest.mark.parametrize(("name", "meant"), listed("models.yaml", "asked_models.yaml"))
def test_a_public_name_of_a_model_is_understood(catalog: Snapshot, name: str, meant: str) -> None:
    if meant.startswith((REFUSED, MISSED)):
        with pytest.raises(NotInCatalogError) as refusal:
            catalog.called_models.read(name)
        assert refusal.value.suggestions[:1] == tuple(meant.split(", ")[1:]) or meant == REFUSED
        return

    reading = catalog.called_models.read(name)

    own = own_format(catalog.model_entries[reading.model_id])
    assert f"{reading.model_id} {reading.weight_format or own}".startswith(meant)


@pytest.mark.parametrize(("name", "meant"), listed("gpus.yaml", "served_gpus.yaml", "asked_gpus.yaml"))
def test_a_public_name_of_a_gpu_is_understood(catalog: Snapshot, name: str, meant: str) -> None:
    if meant.startswith((REFUSED, MISSED)):
        with pytest.raises(NotInCatalogError) as refusal:
            catalog.called_gpus.read(name)
        assert refusal.value.suggestions[:1] == tuple(meant.split(", ")[1:]) or meant == REFUSED
        return

    reading = catalog.called_gpus.read(name)

    many = f" x{reading.gpu_count}" if (reading.gpu_count or 1) > 1 else ""
    assert reading.gpu_id + many == meant


@pytest.mark.parametrize(("file", "least"), [("asked_models.yaml", 350), ("asked_gpus.yaml", 150)])
def test_nearly_every_name_of_what_is_served_is_understood(file: str, least: int) -> None:
    names = [meant for _, meant in listed(file)]
    served = [meant for meant in names if not meant.startswith(REFUSED)]
    missed = [meant for meant in served if meant.startswith(MISSED)]

    assert len(names) >= least
    assert 1 - len(missed) / len(served) >= LEAST_UNDERSTOOD

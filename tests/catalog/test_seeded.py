"""The examples of formulas compute with what the service answers with."""

import pytest

from service.catalog.seeded import seeded_gpu, seeded_model
from service.catalog.snapshot import Snapshot


@pytest.mark.parametrize("name", ["gemma-2-9b", "gemma-2-9b-it"])
def test_a_model_is_the_catalog_s_own(name: str, catalog: Snapshot) -> None:
    seeded, served = seeded_model(name), catalog.model(name)

    assert (seeded.id, seeded.config_json) == (served.id, served.config_json)


def test_a_gpu_is_the_catalog_s_own(catalog: Snapshot) -> None:
    assert seeded_gpu("h100") == catalog.gpu("h100-sxm-80gb")


def test_what_is_not_seeded_is_named() -> None:
    with pytest.raises(KeyError, match="nope"):
        seeded_model("nope")
    with pytest.raises(KeyError, match="nope"):
        seeded_gpu("nope")

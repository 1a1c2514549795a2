"""Instance types by their providers' schemes, and what the schemes leave alone."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.names.schemes import spelled
from service.catalog.snapshot import Snapshot


@pytest.mark.parametrize("name", ["h100", "2x h100", "p5.48xlarge", "llama-3.1-8b", "8gpu-128vcpu-1600gb", "", "gpu-"])
def test_a_name_of_no_scheme_says_nothing(name: str) -> None:
    assert spelled(name) is None


def test_a_scheme_with_a_gpu_that_nobody_has_is_refused(catalog: Snapshot) -> None:
    with pytest.raises(NotInCatalogError):
        catalog.called_gpus.read("gx3d-160x1792x8h900")


def test_every_gpu_of_a_scheme_is_counted(catalog: Snapshot) -> None:
    assert catalog.called_gpus.read("2x gx3d-160x1792x8h100").gpu_count == 16

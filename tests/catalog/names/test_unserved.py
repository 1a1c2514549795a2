"""Accelerators that no engine here runs on are refused with the reason, and never a card that is served."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.names.unserved import UNSERVED, unserved
from service.catalog.snapshot import Snapshot


def test_no_gpu_of_the_catalog_is_unserved(catalog: Snapshot) -> None:
    names = {name.lower() for name in catalog.called_gpus.exact} | set(catalog.called_gpus.instances)

    assert [name for name in sorted(names) if unserved(name)] == []


def test_every_neighbour_is_an_entry(catalog: Snapshot) -> None:
    assert {gpu_id for each in UNSERVED for gpu_id in each.nearest} <= set(catalog.gpu_entries)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("mi300", "several GPUs"),
        ("A100X", "no entry"),
        ("Orin (nvgpu)", "several memories"),
        ("Tesla P40", "compute capability"),
        ("dgx_station_gb300", "no entry"),
        ("xeon6", "only GPUs of"),
        ("ironwood", "only GPUs of"),
        ("mac", "only GPUs of"),
        ("Mac Pro", "only GPUs of"),
        ("GB200_NVL4", "no entry"),
        ("Standard_NC12s_v2", "compute capability"),
        ("Standard_NV6", "compute capability"),
        ("tpu-v5e-8", "only GPUs of"),
        ("Standard_NV6ads_A10_v5", "a part of a GPU"),
        ("NVIDIA-GeForce-RTX-4070-Laptop-GPU", "laptop's GPU is another chip"),
        ("RTX 2070 Max-Q", "laptop's GPU is another chip"),
    ],
)
def test_the_refusal_says_why(catalog: Snapshot, name: str, why: str) -> None:
    with pytest.raises(NotInCatalogError, match=why):
        catalog.called_gpus.read(name)


def test_the_ultra_servers_of_trainium_are_known_as_the_other_types_are() -> None:
    ultra = unserved("trn2u.48xlarge")

    assert ultra is not None
    assert ultra == unserved("trn2.48xlarge")

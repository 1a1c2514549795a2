"""Instance types by their providers' schemes, and what the schemes leave alone."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.names.schemes import spelled
from service.catalog.snapshot import Snapshot


@pytest.mark.parametrize("name", ["h100", "2x h100", "p5.48xlarge", "llama-3.1-8b", "8gpu-128vcpu-1600gb", "", "gpu-"])
def test_a_name_of_no_scheme_says_nothing(name: str) -> None:
    assert spelled(name) is None


@pytest.mark.parametrize(
    ("name", "gpu", "count"),
    [
        # ovhcloud.com/en/public-cloud/prices: GPUs of each
        ("h100-1520", "h100-pcie-80gb", 4),
        ("a100-360", "a100-pcie-80gb", 2),
        ("l4-180", "l4", 2),
        ("l40s-360", "l40s", 4),
        ("a10-45", "a10", 1),
        ("t1-90", "v100-pcie-16gb", 2),
        ("t1-le-180", "v100-pcie-16gb", 4),
        ("t2-le-90", "v100s-pcie-32gb", 2),
        ("rtx5000-84", "quadro-rtx-5000", 3),
        # dstackai/gpuhunt, src/gpuhunt/providers/vultr.py: the details of Vultr's plans
        ("vcg-a16-6c-64g-16vram", "a16", 1),
        ("vcg-a40-96c-480g-192vram", "a40", 4),
        ("vcg-a100-12c-120g-80vram", "a100-pcie-80gb", 1),
        ("vcg-l40s-16c-180g-48vram", "l40s", 1),
        ("vcg-h100-216c-1914gb-640vram", "h100-sxm-80gb", 8),
        ("vcg-b200-248c-2826g-1536vram", "b200-sxm-180gb", 8),
        ("vbm-112c-2048gb-8-h100-gpu", "h100-sxm-80gb", 8),
        ("vbm-256c-2048gb-8-mi300x-gpu", "mi300x", 8),
        # skypilot-org/skypilot-catalog, catalogs/v8: Nebius with its preset, Mithril, JarvisLabs, Yotta, Verda
        ("gpu-b200-sxm_8gpu-160vcpu-1792gb", "b200-sxm-180gb", 8),
        ("gpu-h200-sxm_1gpu-16vcpu-200gb", "h200-sxm-141gb", 1),
        ("gpu-l40s-d_4gpu-192vcpu-1152gb", "l40s", 4),
        ("ccs-h200.sxm.8x", "h200-sxm-141gb", 8),
        ("h100-80gb.sxm.8x", "h100-sxm-80gb", 8),
        ("1x_RTXPRO6000_28V_160G", "rtx-pro-6000-server", 1),
        ("8x_H200_224V_2400G", "h200-sxm-141gb", 8),
        ("8x112v952g_NVIDIA_GeForce_RTX_5090_32G_SECURE", "rtx-5090", 8),
        ("8H100.80S.176V_SPOT", "h100-sxm-80gb", 8),
        # AI-Hypercomputer/xpk, core/system_characteristics.py: chips of a VM
        ("b200-8", "b200-sxm-180gb", 8),
        ("gb200-4-nolssd", "gb200-nvl72", 4),
        ("h100-mega-80gb-8", "h100-sxm-80gb", 8),
        ("a100-40gb-8", "a100-sxm-40gb", 8),
        ("l4-2", "l4", 2),
        # crusoecloud's examples of clusters; docs.oracle.com, GPU shapes of Kubernetes Engine
        ("gb200-186gb-nvl-ib.4x", "gb200-nvl72", 4),
        ("VM.GPU.A100.80G.2", "a100-sxm-80gb", 2),
        ("VM.GPU.A100.B40G.4", "a100-sxm-40gb", 4),
        # docs.digitalocean.com/products/droplets, multi-node
        ("gpu-mi300x8-1536gb-fabric-contracted", "mi300x", 8),
        ("gpu-mi325x8-2048gb-fabric-contracted", "mi325x", 8),
        ("gpu-h200x8-1128gb-contracted", "h200-sxm-141gb", 8),
        # hetzner.com/dedicated-rootserver/matrix-gpu
        ("GEX44", "rtx-4000-sff-ada", 1),
        ("gex131", "rtx-pro-6000-max-q", 1),
    ],
)
def test_a_type_that_is_composed_is_counted(catalog: Snapshot, name: str, gpu: str, count: int) -> None:
    reading = catalog.called_gpus.read(name)

    assert (reading.gpu_id, reading.gpu_count) == (gpu, count)


@pytest.mark.parametrize(
    "name", ["vcg-a100-3c-30g-20vram", "vbm-64c-2048gb-8-l40-gpu", "h100-400", "l4-le-90", "t2-100"]
)
def test_a_share_of_a_gpu_and_a_size_that_nobody_sells_are_no_count(catalog: Snapshot, name: str) -> None:
    with pytest.raises(NotInCatalogError):
        catalog.called_gpus.read(name)


def test_a_scheme_with_a_gpu_that_nobody_has_is_refused(catalog: Snapshot) -> None:
    with pytest.raises(NotInCatalogError):
        catalog.called_gpus.read("gx3d-160x1792x8h900")


def test_every_gpu_of_a_scheme_is_counted(catalog: Snapshot) -> None:
    assert catalog.called_gpus.read("2x gx3d-160x1792x8h100").gpu_count == 16

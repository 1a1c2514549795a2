"""Instance types that providers rent out, and what is in them: offers of the catalog, and some without a price here.

Sources (types, GPUs and counts, as the providers' own pages list them):
    AWS: docs.aws.amazon.com/ec2/latest/instancetypes/ac.html; GB300 of `p6e-gb300` and `p6e-gb300r` as NVIDIA's recipes
        for clusters (AICR) and collectors of its prices count them on a node
    Azure: learn.microsoft.com/en-us/azure/virtual-machines/sizes/overview (ND and NC series)
    Google Cloud: cloud.google.com/compute/docs/gpus; those without local SSDs as GKE's autoscaler lists them
        (kubernetes/autoscaler, machine families)
    Oracle: docs.oracle.com/en-us/iaas/Content/Compute/References/computeshapes.htm; those without a cluster network
        (`-NC`) as its scripts for HPC count their GPUs
    DigitalOcean: docs.digitalocean.com/products/droplets/details/pricing (GPU droplets)
    CoreWeave: docs.coreweave.com/docs/products/instances/gpu-instances
    RunPod: docs.runpod.io/references/gpu-types (pools of one kind of GPU)
    Lambda: github.com/LambdaLabs/docsy-lambda-docs, content/en/cloud/faq/available-configurations.md, and what its API
        calls them ("2x A100 (40 GB PCIe)", "8x A100 (40 GB SXM4)")
    Alibaba Cloud: alibabacloud.com/help/en/ecs/user-guide (GPU-accelerated compute-optimized instance families); gn8v
        by its memory, bandwidth and NVLink, which are H20's alone, as Compute Nest calls ebmgn8v
    Tencent Cloud: cloud.tencent.com/document/product/560 (GPU instance types)
    Hetzner: hetzner.com/dedicated-rootserver/matrix-gpu
    Scaleway: scaleway.com/en/docs/gpu/reference-content/choosing-gpu-instance-type
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Final

from service.catalog.entries import OfferEntry
from service.catalog.names.words import plain


@dataclass(frozen=True, slots=True)
class Instance:
    """What is in an instance type."""

    gpu: str
    gpu_count: int
    instance_type: str


UNPRICED: Final[tuple[Instance, ...]] = tuple(
    Instance(gpu, count, name)
    for gpu, kinds in {
        "h200-sxm-141gb": {
            "HOPPER_141": 1, "p5e.48xlarge": 8, "gpu-h200x1-141gb": 1, "gpu-h200x8-1128gb": 8, "gd-8xh200ib-i128": 8,
            "BM.GPU.H200-NC.8": 8, "a3-ultragpu-8g-nolssd": 8,
        },
        "gb200-nvl72": {
            "p6e-gb200.36xlarge": 4, "a4x-highgpu-4g": 4, "a4x-highgpu-4g-nolssd": 4,
            "Standard_ND128isr_NDR_GB200_v6": 4,
        },
        "gb300-nvl72": {
            "a4x-maxgpu-4g-metal": 4, "Standard_ND128isr_GB300_v6": 4, "p6e-gb300.36xlarge": 4,
            "p6e-gb300r.36xlarge": 4,
        },
        "b200-sxm-180gb": {"a4-highgpu-8g": 8, "a4-highgpu-8g-nolssd": 8, "BLACKWELL_180": 1},
        "rtx-3070": {"GPU-3070-S": 1},
        "rtx-4000-sff-ada": {"GEX44": 1},
        "rtx-6000-ada": {"GEX130": 1},
        "rtx-pro-6000-max-q": {"GEX131": 1},
        "l40s": {"BM.GPU.L40S-NC.4": 4},
        "rtx-4090": {"ADA_24": 1},
        "rtx-5090": {"ADA_32_PRO": 1},
        "rtx-pro-6000-server": {
            "BLACKWELL_96": 1, "g7e.4xlarge": 1, "g7e.8xlarge": 1, "g7e.12xlarge": 2, "g7e.24xlarge": 4,
            "g4-standard-96": 2, "g4-standard-192": 4, "BM.GPU.RTXPRO.8": 8,
            "Standard_NC144ds_xl_RTXPRO6000BSE_v6": 1, "Standard_NC144lds_xl_RTXPRO6000BSE_v6": 1,
            "Standard_NC288ds_xl_RTXPRO6000BSE_v6": 2, "Standard_NC288lds_xl_RTXPRO6000BSE_v6": 2,
        },
        "h100-sxm-80gb": {
            "a3-highgpu-1g": 1, "a3-highgpu-2g": 2, "a3-highgpu-4g": 4, "a3-edgegpu-8g": 8, "gpu-h100x1-80gb": 1,
            "gpu-h100x8-640gb": 8, "gd-8xh100ib-i128": 8,
            "BM.GPU.H100-NC.8": 8, "a3-highgpu-1g-nolssd": 1, "a3-highgpu-2g-nolssd": 2, "a3-highgpu-4g-nolssd": 4,
            "a3-highgpu-8g-nolssd": 8, "a3-megagpu-8g-nolssd": 8, "a3-edgegpu-8g-nolssd": 8,
        },
        "h100-nvl-94gb": {"Standard_NCC40ads_H100_v5": 1},
        "a100-pcie-40gb": {"gpu_1x_a100": 1, "gpu_2x_a100": 2, "gpu_4x_a100": 4},
        "a100-sxm-40gb": {
            "a2-highgpu-2g": 2, "a2-highgpu-4g": 4, "a2-megagpu-16g": 16, "gpu_8x_a100": 8, "DGX A100 320GB": 8,
            "BM.GPU.B4.8": 8,
            "GT4.4XLARGE96": 1, "GT4.8XLARGE192": 2, "GT4.20XLARGE474": 4, "GT4.41XLARGE948": 8,
        },
        "a100-sxm-80gb": {
            "a2-ultragpu-2g": 2, "a2-ultragpu-4g": 4, "a2-ultragpu-8g": 8, "DGX A100 640GB": 8,
            "ecs.gn7e-c16g1.4xlarge": 1, "ecs.gn7e-c16g1.8xlarge": 2, "ecs.gn7e-c16g1.16xlarge": 4,
            "ecs.gn7e-c16g1.32xlarge": 8,
        },
        "l4": {
            "g2-standard-8": 1, "g2-standard-12": 1, "g2-standard-16": 1, "g2-standard-24": 2, "g2-standard-32": 1,
            "g2-standard-96": 8, "gr6.4xlarge": 1, "gr6.8xlarge": 1,
        },
        "mi300x": {"Standard_ND96isr_MI300X_v5": 8, "Standard_ND96is_MI300X_v5": 8, "BM.GPU.MI300X.8": 8},
        "h20-sxm-96gb": {
            "ecs.gn8v.4xlarge": 1, "ecs.gn8v.6xlarge": 1, "ecs.gn8v-2x.8xlarge": 2, "ecs.gn8v-2x.12xlarge": 2,
            "ecs.gn8v-4x.8xlarge": 4, "ecs.gn8v-4x.24xlarge": 4, "ecs.gn8v-8x.16xlarge": 8, "ecs.gn8v-8x.48xlarge": 8,
            "ecs.gn8v-tee.4xlarge": 1, "ecs.gn8v-tee.6xlarge": 1, "ecs.gn8v-tee-8x.16xlarge": 8,
            "ecs.gn8v-tee-8x.48xlarge": 8, "ecs.ebmgn8v.48xlarge": 8,
        },
        "l20": {
            "ecs.gn8is.2xlarge": 1, "ecs.gn8is.4xlarge": 1, "ecs.gn8is-2x.8xlarge": 2, "ecs.gn8is-4x.16xlarge": 4,
            "ecs.gn8is-8x.32xlarge": 8,
        },
        "a30": {
            "ecs.gn7s-c8g1.2xlarge": 1, "ecs.gn7s-c16g1.4xlarge": 1, "ecs.gn7s-c32g1.8xlarge": 1,
            "ecs.gn7s-c32g1.16xlarge": 2, "ecs.gn7s-c32g1.32xlarge": 4, "ecs.gn7s-c48g1.12xlarge": 1,
            "ecs.gn7s-c56g1.14xlarge": 1,
        },
        "v100-sxm2-32gb": {
            "p3dn.24xlarge": 8, "Standard_ND40rs_v2": 8, "ecs.gn6e-c12g1.3xlarge": 1, "ecs.gn6e-c12g1.12xlarge": 4,
            "GN10Xp.2XLARGE40": 1, "GN10Xp.5XLARGE80": 2, "GN10Xp.10XLARGE160": 4, "GN10Xp.20XLARGE320": 8,
            "GN10X.2XLARGE40": 1, "GN10X.4XLARGE80": 2, "GN10X.9XLARGE160": 4, "GN10X.18XLARGE320": 8,
        },
        "a10": {
            "Standard_NV36ads_A10_v5": 1, "Standard_NV36adms_A10_v5": 1, "Standard_NV72ads_A10_v5": 2,
            "Standard_NC8ads_A10_v4": 1, "Standard_NC16ads_A10_v4": 1, "Standard_NC32ads_A10_v4": 2,
            "ecs.gn7i-c8g1.2xlarge": 1, "ecs.gn7i-c16g1.4xlarge": 1, "ecs.gn7i-c32g1.8xlarge": 1,
            "ecs.gn7i-c32g1.16xlarge": 2, "ecs.gn7i-c32g1.32xlarge": 4, "ecs.gn7i-c48g1.12xlarge": 1,
            "ecs.gn7i-c56g1.14xlarge": 1, "ecs.gn7i-2x.8xlarge": 2, "ecs.gn7i-4x.8xlarge": 4,
            "ecs.gn7i-4x.16xlarge": 4, "ecs.gn7i-8x.16xlarge": 8, "ecs.gn7i-8x.32xlarge": 8, "PNV4.7XLARGE116": 1,
            "PNV4.14XLARGE232": 2, "PNV4.28XLARGE466": 4, "PNV4.56XLARGE932": 8,
        },
        "quadro-rtx-6000": {"gpu_1x_rtx6000": 1},
        "v100-pcie-16gb": {
            "Standard_NC6s_v3": 1, "Standard_NC12s_v3": 2, "Standard_NC24s_v3": 4, "Standard_NC24rs_v3": 4,
        },
        "v100-sxm2-16gb": {
            "VM.GPU3.1": 1, "VM.GPU3.2": 2, "VM.GPU3.4": 4, "BM.GPU3.8": 8, "ecs.gn6v-c8g1.2xlarge": 1,
            "ecs.gn6v-c8g1.8xlarge": 4, "ecs.gn6v-c8g1.16xlarge": 8, "gpu_8x_v100_n": 8,
        },
        "t4": {
            "Standard_NC8as_T4_v3": 1, "Standard_NC16as_T4_v3": 1, "g5g.xlarge": 1, "g5g.2xlarge": 1, "g5g.4xlarge": 1,
            "g5g.8xlarge": 1, "g5g.16xlarge": 2, "g5g.metal": 2, "ecs.gn6i-c4g1.xlarge": 1, "ecs.gn6i-c8g1.2xlarge": 1,
            "ecs.gn6i-c16g1.4xlarge": 1, "ecs.gn6i-c24g1.6xlarge": 1, "ecs.gn6i-c24g1.12xlarge": 2,
            "ecs.gn6i-c24g1.24xlarge": 4, "ecs.gn6i-c40g1.10xlarge": 1, "GN7.2XLARGE32": 1, "GN7.5XLARGE80": 1,
            "GN7.8XLARGE128": 1, "GN7.10XLARGE160": 2, "GN7.20XLARGE320": 4, "GI3X.8XLARGE64": 1,
            "GI3X.22XLARGE226": 2, "GI3X.45XLARGE452": 4,
        },
    }.items()
    for name, count in kinds.items()
)  # fmt: skip
MANAGED: Final = ("ml.",)  # the same machines under a managed service's own prefix


def instances(offers: Mapping[str, OfferEntry], gpus: Container[str]) -> Mapping[str, Instance]:
    """Return every instance type by its name in lower case; a type that is offered comes before one that is not.

    A name that two providers give to different machines names neither.
    """
    rented = [Instance(offer.gpu, offer.gpu_count, offer.instance_type) for offer in offers.values()]
    known: dict[str, Instance | None] = {}
    for each in (*rented, *(unpriced for unpriced in UNPRICED if unpriced.gpu in gpus)):
        for key in _spellings(each.instance_type):
            before = known.setdefault(key, each)
            if before is not None and (before.gpu, before.gpu_count) != (each.gpu, each.gpu_count):
                known[key] = None
    return {key: each for key, each in known.items() if each is not None}


def _spellings(instance_type: str) -> tuple[str, ...]:
    """Return how an instance type is written: as it is, and without its provider's prefix."""
    name = plain(instance_type)
    return tuple(dict.fromkeys((name, name.removeprefix("standard_").removeprefix("ecs."))))


def instance_key(name: str) -> str:
    """Return a name as instance types are looked up."""
    key = plain(name)
    for prefix in MANAGED:
        key = key.removeprefix(prefix)
    return key

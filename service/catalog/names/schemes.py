"""How providers compose the names of their instance types: what stands for the GPU, and how many of them.

A type of such a scheme is understood although no offer of it is listed. Sources, in the order of the table: AWS
(docs.aws.amazon.com/eks, UltraServers: 18 instances of 4 are `x72`), Crusoe
(docs.crusoecloud.com/compute/virtual-machines/overview), Scaleway (scaleway.com/en/docs/gpu; PCIe cards unless they say
SXM), Hyperstack (docs.hyperstack.cloud/docs/virtual-machines/flavors), IBM (cloud.ibm.com/docs/vpc?topic=vpc-profiles),
Verda (docs.verda.com, instance types), DigitalOcean (docs.digitalocean.com/products/droplets), CoreWeave
(docs.coreweave.com/docs/products/instances), OVHcloud (ovhcloud.com/en/public-cloud/gpu; PCIe cards, and the figure is
the RAM, by which the GPUs are counted), Vultr (its plans as github.com/dstackai/gpuhunt, providers/vultr.py, lists
them; the last figure is the memory of all GPUs), Nebius (docs.nebius.com/compute/virtual-machines/types), then Nebius
with its preset, Mithril, JarvisLabs and Yotta (all as github.com/skypilot-org/skypilot-catalog lists them), GKE's
device types (github.com/AI-Hypercomputer/xpk, `h100-mega-80gb-8`), Akamai (techdocs.akamai.com/cloud-computing),
Hathora (hathora.dev/docs, node shapes), CoreWeave (`b200-8x`), Oracle (docs.oracle.com, compute shapes), Google Cloud
(docs.cloud.google.com/compute/docs/gpus, N1 machines and what is attached), Hugging Face
(huggingface.co/docs/hub/spaces-gpus, hardware flavors).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """One provider's way; the named groups are `gpu`, `n` (how many, one where absent) and `memory`."""

    pattern: re.Pattern[str]
    parts: Mapping[str, str] = field(default_factory=dict)  # what the provider means by a bare name
    count: int = 1  # where the name states none


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelled:
    """What a type says: the GPU in its provider's words, and how many."""

    gpu: str
    count: int


# OVHcloud's RAM of an instance by GPU, in gigabytes; `t1` and `t2` are its own words.
GIGABYTES_PER_GPU: Final = {
    "h100": 380, "a100": 180, "l40s": 90, "l4": 90, "a10": 45, "t1": 45, "t2": 45, "rtx5000": 28,
}  # fmt: skip
# Vultr's figure is the memory of all GPUs; one that is not a multiple of a whole one's is a share.
GIGABYTES_OF_VULTR: Final = {"a16": 16, "a40": 48, "a100": 80, "l40s": 48, "h100": 80, "b200": 192, "mi355x": 288}
PCIE: Final = {"a100": "a100-pcie-80gb", "h100": "h100-pcie-80gb", "v100": "v100-pcie-16gb"}
OVH: Final = {**PCIE, "t1": "v100-pcie-16gb", "t2": "v100s-pcie-32gb", "rtx5000": "quadro-rtx-5000"}
VULTR: Final = {"a100": "a100-pcie-80gb", "h100": "h100-sxm-80gb"}
SCHEMES: Final = (
    Scheme(pattern=re.compile(r"(?:ml\.)?u-p6e-(?P<gpu>gb[0-9]{3})x(?P<n>[0-9]{2})")),
    Scheme(
        pattern=re.compile(
            r"(?P<gpu>[a-z][a-z0-9]+-[0-9]+gb(?:-sxm|-pcie)?)(?:-nvl)?(?:-(?:ib|roce))?\.(?P<n>[0-9]{1,2})x"
        )
    ),
    Scheme(
        pattern=re.compile(r"(?P<gpu>[a-z]+[0-9]+s?(?:-sxm5?)?)-(?P<n>[0-9])-[0-9]{2,3}g"),
        parts={"h100": "h100-pcie-80gb"},
    ),
    Scheme(pattern=re.compile(r"n[0-9]-(?P<gpu>[a-z][a-z0-9-]*?)x(?P<n>[0-9]{1,2})(?:-nvlink|-k)*"), parts=PCIE),
    Scheme(
        pattern=re.compile(r"gx[0-9][a-z]?-[0-9]+x[0-9]+x(?P<n>[0-9]{1,2})(?P<gpu>[a-z][a-z0-9]*)"),
        parts={"v100": "v100-pcie-16gb", "a100": "a100-sxm-80gb"},
    ),
    Scheme(
        pattern=re.compile(
            r"(?P<n>[0-9]{1,2})(?P<gpu>[a-z][a-z0-9]*)(?:\.(?P<memory>[0-9]{2,3})s)?\.[0-9]+v(?:_spot)?"
        ),
        parts={"a100": "a100-sxm-80gb"},
    ),
    Scheme(
        pattern=re.compile(r"gpu-(?P<gpu>[a-z0-9]+?)x(?P<n>[0-9]{1,2})-[0-9]+gb(?:-fabric)?(?:-contracted)?"),
        parts={"mi300": "mi300x", "mi325": "mi325x", "mi350": "mi350x"},
    ),
    Scheme(
        pattern=re.compile(r"gd-(?P<n>[0-9]{1,2})x(?P<gpu>[a-z0-9]+?)(?:ib|ibe)?(?:-i[0-9]+)?"),
        parts={"a100": "a100-sxm-80gb"},
    ),
    *(
        Scheme(pattern=re.compile(rf"(?P<gpu>{gpu})-(?:(?<=t.-)le-)?{gigabytes * count}"), parts=OVH, count=count)
        for gpu, gigabytes in GIGABYTES_PER_GPU.items()
        for count in ((1, 2, 3) if gpu == "rtx5000" else (1, 2, 4))
    ),
    *(
        Scheme(
            pattern=re.compile(rf"vcg-(?P<gpu>{gpu})-[0-9]+c-[0-9]+gb?-{gigabytes * count}vram"),
            parts=VULTR,
            count=count,
        )
        for gpu, gigabytes in GIGABYTES_OF_VULTR.items()
        for count in (1, 2, 4, 8, 16)
    ),
    Scheme(pattern=re.compile(r"vbm-[0-9]+c-[0-9]+gb-(?P<n>8)-(?P<gpu>h100|b200|mi3[0-9]{2}x)-gpu"), parts=VULTR),
    Scheme(pattern=re.compile(r"gpu-(?P<gpu>[a-z]+[0-9]+s?)-(?P<n>[0-9]{1,2})-[0-9]{1,3}-[0-9]{1,4}")),
    Scheme(
        pattern=re.compile(r"(?P<gpu>[a-z]+[0-9]+[a-z]?)-(?P<n>[0-9]{1,2})x"), parts={"rtxp6000": "rtx-pro-6000-server"}
    ),
    Scheme(
        pattern=re.compile(r"(?:bm|vm)\.gpu\.(?P<gpu>[a-z]+[0-9]+[a-z]?)-v[0-9]\.(?P<n>[0-9]{1,2})"),
        parts={"a100": "a100-sxm-80gb"},
    ),
    Scheme(pattern=re.compile(r"vm\.gpu\.(?P<gpu>a100)\.b?(?P<memory>[48]0)g\.(?P<n>[1248])")),
    Scheme(pattern=re.compile(r"gpu-(?P<gpu>(?:[bh][0-9]+|l40s|rtx6000)(?:-sxm|-pcie)?)-[a-d]")),
    Scheme(
        pattern=re.compile(
            r"gpu-(?P<gpu>(?:[bh][0-9]+|l40s)(?:-sxm|-pcie)?)(?:-[a-d])?[_.](?P<n>[0-9])gpu-[0-9]+vcpu-[0-9]+gb"
        )
    ),
    Scheme(
        pattern=re.compile(
            r"(?:[a-z]{2,4}-)?(?P<gpu>[a-z]+[0-9]+[a-z]?(?:-[0-9]+gb)?\.(?:sxm|pcie))\.(?P<n>[0-9]{1,2})x"
        )
    ),
    Scheme(pattern=re.compile(r"(?P<n>[0-9]{1,2})x_(?P<gpu>[a-z0-9-]+)_[0-9]+v_[0-9]+g")),
    Scheme(pattern=re.compile(r"(?P<n>[0-9]{1,2})x[0-9]+v[0-9]+g_(?P<gpu>[a-z0-9_]+?)_(?:secure|community)")),
    Scheme(
        pattern=re.compile(r"(?:gpu-)?(?P<gpu>[a-z]{1,2}[0-9]{1,3}(?:-mega)?(?:-[0-9]+gb)?)-(?P<n>[1248])(?:-nolssd)?")
    ),
    Scheme(pattern=re.compile(r"g2-gpu-(?P<gpu>rtx4000a)(?P<n>[1-8])-[a-z]+"), parts={"rtx4000a": "rtx-4000-ada"}),
    Scheme(pattern=re.compile(r"g1-gpu-(?P<gpu>rtx6000)-(?P<n>[1-4])"), parts={"rtx6000": "quadro-rtx-6000"}),
    Scheme(
        pattern=re.compile(r"(?P<gpu>t4|a10g|a100)-(?:small|medium|large)(?:x(?P<n>[1-8]))?"),
        parts={"a100": "a100-sxm-80gb"},
    ),
    Scheme(
        pattern=re.compile(
            r"n1-(?:standard|highmem|highcpu)-[0-9]{1,2} ?\+ ?(?:(?P<n>[1-8]) ?x ?)?"
            r"(?:nvidia-)?(?:tesla-)?(?P<gpu>[a-z0-9]+)"
        ),
        parts={"v100": "v100-sxm2-16gb"},
    ),
    Scheme(pattern=re.compile(r"gpu[.-](?P<n>[0-9]{1,2})x(?P<gpu>[a-z0-9]+)(?:\.(?P<memory>[0-9]+gb))?")),
)


def spelled(name: str) -> Spelled | None:
    """Return what an instance type says by its provider's scheme; None: it is of none.

    >>> spelled("gx3d-160x1792x8h100")
    Spelled(gpu='h100', count=8)
    >>> spelled("1A100.40S.22V")
    Spelled(gpu='a100 40gb', count=1)
    """
    for scheme in SCHEMES:
        said = scheme.pattern.fullmatch(name.lower().strip())
        if said:
            groups = said.groupdict()
            memory = groups.get("memory")
            bare = groups["gpu"].replace("_", "-")
            gpu = f"{bare} {memory.rstrip('gb')}gb" if memory else scheme.parts.get(bare, bare)
            return Spelled(gpu=gpu, count=int(groups.get("n") or scheme.count))
    return None

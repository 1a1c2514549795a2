"""What drivers, schedulers and clouds write around the name of a GPU: prefixes of labels, numbers of buses, boards.

Sources:
    Labels: github.com/NVIDIA/k8s-device-plugin (GPU feature discovery), docs.coreweave.com (`gpu.nvidia.com/class`,
        `/model`), cloud.google.com/kubernetes-engine
        (`gke-accelerator`), karpenter.sh (`instance-gpu-name`), akash.network (`capabilities.gpu.vendor`).
    Numbers of AMD's devices: github.com/ROCm/gpu-operator, docs (`amd.com/gpu.device-id`), and pci-ids.ucw.cz, which
        has NVIDIA's too (KubeVirt's `pciVendorSelector`, Proxmox, `vfio-pci ids=`).
    Cards of Gaudi (`HL-225`, `HL-325L`): docs.habana.ai.
"""

import re
from collections.abc import Mapping
from typing import Final

TIMES: Final = "\u00d7"
LABEL: Final = re.compile(
    r"^(?:akash\.network/capabilities\.gpu\.vendor\.(?:nvidia|amd|intel)\.model\.|"
    r"(?:[a-z0-9-]{1,63}\.){1,6}[a-z]{2,20}/(?:[a-z0-9-]{1,63}[./]){0,4}?(?:gpu[.-]?(?:product(?:-name)?|name|model|class|type|flavor)|"
    r"instance-gpu-name|instance-type|gke-accelerator|accelerator|class|model|device-id)\s*[=:]\s*|"
    r"(?:nvidia|amd)\.com/[a-z.-]+\s*[=:]\s*(?=[a-z])|(?:gres/gpu|gpu)\s*[=:]\s*(?=[a-z]))"
)
OF_AKASH: Final = re.compile(r"\.(?:ram|interface)\.")
DRIVER: Final = re.compile(
    "^(?:a|an|the|my) (?=.)|^(?:nvidia|amd(?: instinct)?) (?=[0-9]+ ?x ?[a-z])|^gpu \\d+:\\s*|"
    "\\s*\\((?:uuid:[^)]*|gfx[0-9a-f]+|(?:cc|sm|compute capability)[ _]?[0-9.]+[a-z]?|[0-9]+ ?w|"
    "nvlink|hl-[0-9]{3}[a-z]*)\\)|"
    "(?<=[a-z0-9]) hl-[0-9]{3}[a-z]*$|\\s+(?:developer kit|dev ?kit)$|"
    "\\s+[0-9]+xcpus?$|\\((?:r|tm|c)\\)|[\u00ae\u2122\u00a9]"
)
# As `lspci` writes it: class, maker, chip, and the card in the last brackets; with `-nn` its numbers behind them.
# Some leave the class out.
BUS: Final = re.compile(
    r".*(?:(?:controller|accelerators?|co-processor|corporation)\b|devices, inc\.).*\[(?![0-9a-f]{4}:)([^\[\]]+)\]"
    r"(?: \[[0-9a-f]{4}:[0-9a-f]{4}\])?(?: \(rev [0-9a-f]+\))?"
)
DEVICE: Final = re.compile(
    r"(?:(?:beta\.)?amd\.com/gpu\.device-id\s*[=:]\s*|1002:|0x)([0-9a-f]{4})|\[?10de:([0-9a-f]{4})\]?"
)
DEVICES: Final[Mapping[str, str]] = {
    "740f": "mi210", "7408": "mi250x", "74a1": "mi300x", "74a9": "mi300x", "74b5": "mi300x", "74bd": "mi300x",
    "74a5": "mi325x", "74b9": "mi325x", "75a0": "mi350x", "75b0": "mi350x", "75a3": "mi355x", "75b3": "mi355x",
}  # fmt: skip
DEVICES_OF_NVIDIA: Final[Mapping[str, str]] = {
    "1db1": "v100 sxm2 16gb", "1db4": "v100 pcie 16gb", "1db5": "v100 sxm2 32gb", "1db6": "v100 pcie 32gb",
    "1df6": "v100s", "1eb8": "t4", "20b0": "a100 sxm 40gb", "20b1": "a100 pcie 40gb", "20f1": "a100 pcie 40gb",
    "20b2": "a100 sxm 80gb", "20b5": "a100 pcie 80gb", "20b7": "a30", "20f3": "a800 sxm 80gb",
    "20f5": "a800 pcie 80gb", "2203": "rtx 3090 ti", "2204": "rtx 3090", "2235": "a40", "2236": "a10", "2237": "a10g",
    "2322": "h800 pcie", "2324": "h800", "2330": "h100 sxm", "2331": "h100 pcie", "2335": "h200", "2684": "rtx 4090",
    "26b1": "rtx 6000 ada", "26b5": "l40", "26b9": "l40s", "27b8": "l4",
}  # fmt: skip


def bare_name(key: str) -> str:
    """Return a name in lower case without what stands around it.

    >>> bare_name("nvidia.com/gpu.product=nvidia-h200"), bare_name("amd.com/gpu.device-id=74b5")
    ('nvidia-h200', 'mi300x')
    >>> bare_name("akash.network/capabilities.gpu.vendor.nvidia.model.h100.ram.80gi.interface.sxm")
    'h100 80gi sxm'
    """
    device = DEVICE.fullmatch(key)
    if device and device[1] in DEVICES:
        return DEVICES[device[1]]
    if device and device[2] in DEVICES_OF_NVIDIA:
        return DEVICES_OF_NVIDIA[device[2]]
    on_bus = BUS.fullmatch(key)
    named = LABEL.sub("", DRIVER.sub("", (on_bus[1] if on_bus else key).replace(TIMES, "x")))
    return (OF_AKASH.sub(" ", named) if key.startswith("akash.") else named).strip()

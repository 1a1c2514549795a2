"""Accelerators that people name and no engine of this catalog runs on: why, and what comes nearest.

Sources:
    Compute capability below 7.0: vLLM's requirements, docs/getting_started/installation/gpu.cuda.inc.md ("compute
        capability 7.0 or higher"); capabilities: developer.nvidia.com/cuda-legacy-gpus.
    Cards of AMD: vLLM, docs/getting_started/installation/gpu.rocm.inc.md (MI200, MI300 and MI350 series, Radeon RX 7900
        and 9000 series, Ryzen AI Max).
    Laptops: TechPowerUp's database, where `RTX 4070 Mobile` and its like are chips and memories of other desktop cards.
    Shares of a GPU in Azure's NC RTX PRO 6000 BSE v6 series: learn.microsoft.com/azure/virtual-machines/sizes; in
        Google's G4: cloud.google.com/compute/docs/gpus (an eighth, a quarter, a half).
    MI300A: ROCm's system optimization guide for it (96 GiB of 128 GiB allocatable by default).
"""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """A kind of accelerator by its names."""

    pattern: re.Pattern[str]
    why: str
    nearest: tuple[str, ...] = ()


TOO_OLD: Final = "its compute capability is below 7.0, for which no engine here has kernels"
OTHER_MAKER: Final = "only GPUs of NVIDIA, AMD and Intel and Gaudi are sized here"
NOT_IN_ROCM: Final = "no engine here is built for this generation of AMD"
NOT_GAUDI: Final = "the first Gaudi has no entry here"
NO_TENSOR_CORES: Final = "it has no tensor cores, and no entry here"
A_SHARE: Final = "it has a quarter or a half of that GPU, and no engine here is sized on a share; size the whole"
OF_A_PREVIEW: Final = "it was of a preview, and Azure names other sizes since; name the GPU"
NO_ENTRY: Final = "it has no entry here, as its data sheet, or the memory that its driver shows, is not at hand"
AN_ARCHITECTURE: Final = "it is an architecture; several GPUs have it"
A_SERIES: Final = "several GPUs bear the name, with other memories"
A_BOARD: Final = "it is what a driver calls a board of several memories"
SHARES_WITH_CPU: Final = "it shares 128 GiB with its own CPU: a process gets 96 of them, or what its driver is set to"
A_LAPTOP: Final = "a laptop's GPU is another chip than the desktop card of its name, and has no entry here"
NO_CARD: Final = "it is what drivers and schedulers call any card"
A_POOL: Final = "it is a pool of several kinds of GPU"
A_PART: Final = "the type holds a part of a GPU, and what a slice leaves is not known; size the whole"

SEVERAL: Final = "names several types of GPU, and one is asked; gpus of /recommend and of /compare takes a list"
BETWEEN: Final = re.compile(r" ?[,;+|&] ?| (?:and|or) ")
MOST_SEVERAL: Final = 10


def _named(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:.*[^a-z0-9])?(?:{pattern})(?:[^a-z0-9].*)?")


ON_THE_MOVE: Final = r"[ -](?:laptop|mobile|notebook).*"
OF_NUMBERS: Final = rf"(?: ?-?ti)?(?:[ -]super)?(?:m|(?:[ -]with)?[ -]max-?q.*|{ON_THE_MOVE})"
UNSERVED: Final = (
    Unserved(
        pattern=_named(rf"(?:rtx ?-?)?(?:[23]0[5-8]0|40[5-7]0){OF_NUMBERS}"),
        why=A_LAPTOP,
        nearest=("rtx-4080-laptop", "rtx-4090-laptop"),
    ),
    Unserved(
        pattern=_named(rf"(?:rtx ?-?)?50[5-7]0{OF_NUMBERS}"),
        why=A_LAPTOP,
        nearest=("rtx-5080-laptop", "rtx-5090-laptop"),
    ),
    Unserved(
        pattern=_named(rf"rtx ?-?(?:a[0-9]{{4}}|[1-6][05]00[ -]ada(?:[ -]generation)?){ON_THE_MOVE}"),
        why=A_LAPTOP,
        nearest=("rtx-4090-laptop", "rtx-4080-laptop"),
    ),
    Unserved(
        pattern=_named(rf"rtx ?-?pro[ -][1-6][05]00(?:[ -]blackwell)?(?:[ -]generation)?{ON_THE_MOVE}"),
        why=A_LAPTOP,
        nearest=("rtx-5090-laptop", "rtx-5080-laptop"),
    ),
    Unserved(
        pattern=_named(r"p100|(?:vm|bm)\.gpu2\.[12]|render-s"),
        why=TOO_OLD,
        nearest=("v100-pcie-16gb", "v100-sxm2-16gb"),
    ),
    Unserved(pattern=_named(r"standard_nc(?:6|12|24r?)s_v2"), why=TOO_OLD, nearest=("v100-pcie-16gb",)),
    Unserved(pattern=_named(r"standard_n[cv](?:6|12|24r?)(?:_promo)?"), why=TOO_OLD, nearest=("t4",)),
    Unserved(pattern=_named(r"standard_nv(?:12|24|48)s_v3"), why=TOO_OLD, nearest=("t4",)),
    Unserved(pattern=_named(r"gb200[ -]?nvl4"), why=NO_ENTRY, nearest=("gb200-nvl72",)),
    Unserved(pattern=_named(r"p40"), why=TOO_OLD, nearest=("quadro-rtx-6000", "t4")),
    Unserved(pattern=_named(r"k[248]0m?|m40|m60|p4|p2\.(?:8|16)?xlarge"), why=TOO_OLD, nearest=("t4",)),
    Unserved(pattern=_named(r"gtx ?-?(?:9[5-8]0|10[5-8]0)(?: ?-?ti)?"), why=TOO_OLD, nearest=("rtx-2080-ti",)),
    Unserved(pattern=_named(r"titan[ -]?xp?"), why=TOO_OLD, nearest=("titan-rtx",)),
    Unserved(
        pattern=_named(r"(?:quadro )?(?:m[2456]000|p(?:1000|2000|2200|4000|5000|6000))"),
        why=TOO_OLD,
        nearest=("quadro-rtx-6000",),
    ),
    Unserved(
        pattern=_named(r"gtx ?-?16[56]0(?: ?-?(?:ti|super))?|t(?:400|600|1000|1200)"),
        why=NO_TENSOR_CORES,
        nearest=("rtx-2060", "t4"),
    ),
    Unserved(pattern=_named(r"l2"), why=NO_ENTRY, nearest=("l4", "l20")),
    Unserved(pattern=_named(r"arc ?(?:\(tm\) )?pro b50"), why=NO_ENTRY, nearest=("arc-pro-b60",)),
    Unserved(pattern=_named(r"cmp [0-9]+hx"), why=NO_ENTRY, nearest=("a100-pcie-40gb",)),
    Unserved(
        pattern=_named(
            r"nvidia[ -]graphics[ -]device|amd radeon(?:\(tm\))? graphics|dgx display|(?:nvidia|amd)\.com/gpu"
        ),
        why=NO_CARD,
    ),
    Unserved(pattern=_named(r"a(?:30|100)x"), why=NO_ENTRY, nearest=("a100-pcie-80gb", "a30")),
    Unserved(pattern=_named(r"mi300"), why=A_SERIES, nearest=("mi300x", "mi325x")),
    Unserved(pattern=_named(r"pg506-[0-9]+"), why=NO_ENTRY, nearest=("a100-pcie-40gb", "a30")),
    Unserved(pattern=_named(r"orin \(nvgpu\)"), why=A_BOARD, nearest=("jetson-agx-orin",)),
    Unserved(pattern=_named(r"b100"), why=NO_ENTRY, nearest=("b200-sxm-180gb",)),
    Unserved(
        pattern=_named(r"rubin(?: cpx)?|vr[23]00|r[12]00"), why=NO_ENTRY, nearest=("gb300-nvl72", "b300-sxm-288gb")
    ),
    Unserved(pattern=_named(r"mi4[0-9]{2}x?"), why=NO_ENTRY, nearest=("mi355x",)),
    Unserved(pattern=_named(r"mi300a"), why=SHARES_WITH_CPU, nearest=("mi300x",)),
    Unserved(pattern=_named(r"mi308[ah]|mi308x"), why=NO_ENTRY, nearest=("mi300x",)),
    Unserved(pattern=_named(r"orin(?: |-)?(?:nx|nano)"), why=NO_ENTRY, nearest=("jetson-agx-orin",)),
    Unserved(
        pattern=_named(
            r"(?:arc )?(?:a[357][1-8]0m?|b5[78]0)|gpu max [0-9]+|gpu flex [0-9]+|max 1[15][05]0|flex 1[47]0"
        ),
        why=NO_ENTRY,
        nearest=("arc-pro-b70", "arc-pro-b60"),
    ),
    Unserved(pattern=_named(r"gfx942"), why=AN_ARCHITECTURE, nearest=("mi300x", "mi325x")),
    Unserved(pattern=_named(r"gfx950"), why=AN_ARCHITECTURE, nearest=("mi355x", "mi350x")),
    Unserved(pattern=_named(r"gfx90a"), why=AN_ARCHITECTURE, nearest=("mi250x", "mi210")),
    Unserved(pattern=_named(r"gfx1100"), why=AN_ARCHITECTURE, nearest=("rx-7900-xtx", "radeon-pro-w7900")),
    Unserved(pattern=_named(r"gfx120[01]"), why=AN_ARCHITECTURE, nearest=("rx-9070-xt", "r9700")),
    Unserved(pattern=_named(r"sm_?-?80"), why=AN_ARCHITECTURE, nearest=("a100-sxm-80gb", "a30")),
    Unserved(pattern=_named(r"sm_?-?89"), why=AN_ARCHITECTURE, nearest=("l40s", "l4", "rtx-4090")),
    Unserved(pattern=_named(r"sm_?-?90a?"), why=AN_ARCHITECTURE, nearest=("h100-sxm-80gb", "h200-sxm-141gb")),
    Unserved(pattern=_named(r"sm_?-?100a?"), why=AN_ARCHITECTURE, nearest=("b200-sxm-180gb", "gb200-nvl72")),
    Unserved(pattern=_named(r"sm_?-?120a?"), why=AN_ARCHITECTURE, nearest=("rtx-pro-6000-server", "rtx-5090")),
    Unserved(
        pattern=_named(
            r"radeon vii|rx ?-?(?:5[5-7]|6[4-9]|7[67])[0-9]0(?: ?-?(?:xtx?|m|s))?|rx ?-?7800 ?-?xt|v710|"
            r"gfx10[0-9]{2}|gfx110[1-3]"
        ),
        why=NOT_IN_ROCM,
        nearest=("rx-7900-xt", "radeon-pro-w7900"),
    ),
    Unserved(pattern=_named(r"dl1\.24xlarge|gaudi-?1|hl-205"), why=NOT_GAUDI, nearest=("gaudi-2",)),
    Unserved(pattern=_named(r"mi(?:50|60|100)|gfx90[068]"), why=NOT_IN_ROCM, nearest=("mi210",)),
    Unserved(
        pattern=_named(r"v[56]20|standard_nv(?:4|8|16|32)as_v4|g4ad\.[0-9]*xlarge"),
        why=NOT_IN_ROCM,
        nearest=("radeon-pro-w7900",),
    ),
    Unserved(pattern=_named(r"standard_nv(?:6|12|18)ad[m]?s_a10_v5"), why=A_PART, nearest=("a10",)),
    Unserved(pattern=_named(r"gr?6f\.[0-9]*x?large"), why=A_PART, nearest=("l4",)),
    Unserved(pattern=re.compile(r"g4-standard-(?:6|12|24)"), why=A_PART, nearest=("rtx-pro-6000-server",)),
    Unserved(pattern=_named(r"g7\.[0-9]*xlarge|rtx[ -]pro[ -]4500.*server.*"), why=NO_ENTRY, nearest=("rtx-pro-4500",)),
    Unserved(
        pattern=_named(r"dgx[ -]station[ -](?:for )?a100.*"), why=A_SERIES, nearest=("a100-sxm-80gb", "a100-sxm-40gb")
    ),
    Unserved(
        pattern=_named(r"dgx[ -]station.*|gb300.*(?:desktop|station).*"),
        why=NO_ENTRY,
        nearest=("gb300-nvl72", "b300-sxm-288gb"),
    ),
    Unserved(pattern=_named(r"h20z"), why=NO_ENTRY, nearest=("h20-sxm-141gb", "h200-sxm-141gb")),
    Unserved(pattern=_named(r"(?:rtx )?5090[ -]?d[ -]?v2"), why=NO_ENTRY, nearest=("rtx-5090-d", "rtx-5090")),
    Unserved(pattern=_named(r"hl-?225d|gaudi ?-?2d"), why=NO_ENTRY, nearest=("gaudi-2",)),
    Unserved(pattern=_named(r"r9600d?"), why=NO_ENTRY, nearest=("r9700",)),
    Unserved(
        pattern=re.compile(r"(?:standard_)?nc(?:24|36|72)l?ds_xl_rtxpro6000bse_v6"),
        why=A_SHARE,
        nearest=("rtx-pro-6000-server",),
    ),
    Unserved(
        pattern=re.compile(r"(?:standard_)?nc(?:16|32|64|128|256|320)[lm]?ds_xl_rtxpro6000bse_v6"),
        why=OF_A_PREVIEW,
        nearest=("rtx-pro-6000-server",),
    ),
    Unserved(pattern=_named(r"mi350p"), why=NO_ENTRY, nearest=("mi350x",)),
    Unserved(pattern=_named(r"(?:pro )?b65"), why=NO_ENTRY, nearest=("arc-pro-b70", "arc-pro-b60")),
    Unserved(pattern=_named(r"crescent[ -]island"), why=NO_ENTRY, nearest=("arc-pro-b70",)),
    Unserved(pattern=_named(r"ampere_(?:16|24|48|80)|ada_(?:48|80)_pro"), why=A_POOL),
    Unserved(
        pattern=_named(
            r"tpu|trn[1-3][nu]?|inf[12]|dl2q|trainium[0-9]?|inferentia[0-9]?|ct[0-9][a-z]*-[a-z]+-[0-9]+t|tpu[0-9].*"
        ),
        why=OTHER_MAKER,
    ),
    Unserved(pattern=_named(r"tpu[ -]?v[0-9][a-z]?|v[2-6][ep]-[0-9]+|trillium|ironwood"), why=OTHER_MAKER),
    Unserved(
        pattern=_named(r"apple|m[1-5] ?-?(?:max|pro|ultra)|mac(?: ?-?(?:studio|mini|book|pro))?"), why=OTHER_MAKER
    ),
    Unserved(
        pattern=_named(
            r"ascend|910[abc]?|310p|atlas|mlu[0-9]+|kunlun|hygon|mtt|groq|cerebras|sambanova|sn[34]0l|tenstorrent|"
            r"graphcore|ipu|wse-?[0-9]|n[13][05]0[ds]?|p(?:150|300)[abc]?|blackhole|wormhole|furiosa|rngd|"
            r"rbln.*|rebellions|atom-max|kunlunxin|p800|metax|[cn]5[05]0|iluvatar|bi-?v1[05]0|biren|br10[046]|enflame|sophgo|"
            r"moore threads|"
            r"maia[ -]?[0-9]+|mtia|qualcomm|cloud ai 100|ai100|(?:intel )?xeon.*|(?:amd )?epyc.*|cpu"
        ),
        why=OTHER_MAKER,
    ),
)


def unserved(key: str) -> Unserved | None:
    """Return what a name in lower case means, if nothing here runs on it.

    >>> unserved("tesla p100-pcie-16gb").nearest[0]
    'v100-pcie-16gb'
    """
    return next((each for each in UNSERVED if each.pattern.fullmatch(key)), None)


def several(key: str) -> tuple[str, ...]:
    """Return the names in a list of them, in lower case; none where it is no list.

    >>> several("h100, l4"), several("h100")
    (('h100', 'l4'), ())
    """
    parts = tuple(filter(None, BETWEEN.split(key)))
    return parts[:MOST_SEVERAL] if len(parts) > 1 else ()

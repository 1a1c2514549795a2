"""Accelerators that people name and no engine of this catalog runs on: why, and what comes nearest.

Sources:
    Compute capability below 7.0: vLLM's requirements, docs/getting_started/installation/gpu.cuda.inc.md ("compute
        capability 7.0 or higher"); capabilities: developer.nvidia.com/cuda-legacy-gpus.
    Cards of AMD: vLLM, docs/getting_started/installation/gpu.rocm.inc.md (MI200, MI300 and MI350 series, Radeon RX 7900
        and 9000 series, Ryzen AI Max).
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
A_PART: Final = "the type holds a part of a GPU, and what a slice leaves is not known; size the whole"


def _named(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:.*[^a-z0-9])?(?:{pattern})(?:[^a-z0-9].*)?")


UNSERVED: Final = (
    Unserved(pattern=_named(r"p100|(?:vm|bm)\.gpu2\.[12]"), why=TOO_OLD, nearest=("v100-pcie-16gb", "v100-sxm2-16gb")),
    Unserved(pattern=_named(r"p40"), why=TOO_OLD, nearest=("quadro-rtx-6000", "t4")),
    Unserved(pattern=_named(r"k[248]0m?|m40|m60|p4|p2\.(?:8|16)?xlarge"), why=TOO_OLD, nearest=("t4",)),
    Unserved(pattern=_named(r"gtx ?-?(?:9[5-8]0|10[5-8]0)(?: ?-?ti)?"), why=TOO_OLD, nearest=("rtx-2080-ti",)),
    Unserved(pattern=_named(r"titan[ -]?xp?"), why=TOO_OLD, nearest=("titan-rtx",)),
    Unserved(pattern=_named(r"dl1\.24xlarge|gaudi-?1|hl-205"), why=NOT_GAUDI, nearest=("gaudi-2",)),
    Unserved(pattern=_named(r"mi(?:50|60|100)"), why=NOT_IN_ROCM, nearest=("mi210",)),
    Unserved(pattern=_named(r"v[56]20|g4ad\.[0-9]*xlarge"), why=NOT_IN_ROCM, nearest=("radeon-pro-w7900",)),
    Unserved(pattern=_named(r"standard_nv(?:6|12|18)ad[m]?s_a10_v5"), why=A_PART, nearest=("a10",)),
    Unserved(pattern=_named(r"g6f\.[0-9]*x?large"), why=A_PART, nearest=("l4",)),
    Unserved(
        pattern=_named(r"tpu|trn[1-3]n?|inf[12]|dl2q|trainium[0-9]?|inferentia[0-9]?|ct[0-9]l?p?-hightpu-[0-9]+t"),
        why=OTHER_MAKER,
    ),
    Unserved(pattern=_named(r"tpu[ -]?v[0-9][a-z]?|v[2-6][ep]-[0-9]+"), why=OTHER_MAKER),
    Unserved(pattern=_named(r"apple|m[1-5] ?-?(?:max|pro|ultra)|mac ?-?(?:studio|mini|book)"), why=OTHER_MAKER),
    Unserved(
        pattern=_named(r"ascend|910[abc]?|310p|atlas|mlu[0-9]+|kunlun|hygon|mtt|groq|cerebras|sambanova|tenstorrent"),
        why=OTHER_MAKER,
    ),
)


def unserved(key: str) -> Unserved | None:
    """Return what a name in lower case means, if nothing here runs on it.

    >>> unserved("tesla p100-pcie-16gb").nearest[0]
    'v100-pcie-16gb'
    """
    return next((each for each in UNSERVED if each.pattern.fullmatch(key)), None)

"""Takes the name of a GPU apart: its words without its maker's, and the memory it states."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# What every maker's cards share.
MAKERS = (
    "nvidia amd intel geforce tesla instinct radeon graphics generation gpu gpus card series edition accelerator "
    "ai tensor core habana blackwell hopper ampere lovelace corporation inc r tm"
)
NOISE: Final = frozenset(MAKERS.split())
# What is said of a card whose name is complete without it.
MODULES = "sxm sxm2 sxm3 sxm4 sxm5 sxm6 nvlink nvl8 oam ac vf hgx hbm3 hbm3e gddr6 gddr6x gddr7 baremetal"
FURTHER: Final = frozenset(MODULES.split())
SAME_WORDS: Final[Mapping[str, str]] = {
    "wk": "workstation", "ws": "workstation", "we": "workstation", "se": "server", "maxq": "max-q", "mq": "max-q",
    "m": "mobile", "notebook": "mobile",
    "mi325": "mi325x", "mi350": "mi350x", "mi355": "mi355x",  # as AMD's driver writes them: `AMD_Instinct_MI325_OAM`
}  # fmt: skip
MEMORY: Final = re.compile(r"(?<![a-z0-9.])([0-9]{1,6}) ?(gib|gi|gb|g|mib|mb)(?![a-z0-9])")
BARE_PRO: Final = re.compile(r"^(?:nvidia )?pro ?(?=[2456][05]00(?![0-9]))")  # as price lists write `RTX PRO 6000`
WORD: Final = re.compile(r"[a-z0-9]+(?:\.[0-9]+)?")
JOINED: Final = re.compile(
    r"(rtx|gtx|gddr|(?:rtx)?pro)([0-9]+)([a-z]*)|([0-9]{4})(ti|super|ada|d|mq|m|se|we|ws)|(gaudi)([0-9])|"
    r"([abhpv][0-9]{2,3})(nvl|sxm[0-9]?|pcie)|(rtx)(a[0-9]{4})"
)


@dataclass(frozen=True, slots=True)
class Said:
    """A name as words, and the memory it states."""

    words: frozenset[str]
    memory: tuple[int, str] | None  # a figure and the first letter of its unit


def said_of(text: str) -> Said:
    """Return the words of a name without its maker's, and the memory it states."""
    text = BARE_PRO.sub("rtx pro ", text.replace("max-q", "maxq").replace("-", " ").replace("_", " "))
    memory = MEMORY.search(text)
    rest = MEMORY.sub(" ", text)
    words = (word for each in WORD.findall(rest) for word in _apart(each))
    return Said(
        words=frozenset(SAME_WORDS.get(word, word) for word in words if word not in NOISE),
        memory=(int(memory[1]), memory[2][0]) if memory else None,
    )


def _apart(word: str) -> tuple[str, ...]:
    """Return the words that a name writes as one: `rtx4090ti` is `rtx`, `4090`, `ti`."""
    parts = JOINED.fullmatch(word)
    words = [part for part in parts.groups() if part] if parts else [word]
    return ("rtx", "pro", *words[1:]) if words[0] == "rtxpro" else tuple(words)

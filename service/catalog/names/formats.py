"""The words by which names of repositories, and people, call a weight format.

Sources:
    Repositories of Qwen (`-AWQ`, `-GPTQ-Int4`, `-FP8`), RedHatAI (`-FP8-dynamic`, `-quantized.w4a16`), nvidia (`-FP8`,
    `-FP4`, `-NVFP4`), amd (`-Quark-AWQ-MXFP4`, `-MXFP4-ASQ`), Intel (`-W4A16-AutoRound`), unsloth (`-bnb-4bit`,
    `-GGUF`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from service.catalog.names.recipes import Recipe, recipe_of
from service.catalog.names.words import plain
from service.engine.inputs import WeightFormat

# What says how many bits there are.
STATED: Final[Mapping[str, WeightFormat]] = {
    "fp8": "fp8", "f8": "fp8", "w8a8-fp8": "fp8", "e4m3": "fp8", "fp8e4m3": "fp8",
    "int8": "int8", "w8a8": "int8", "w8a16": "int8", "8bit": "int8", "8bits": "int8",
    "int4": "int4", "w4a16": "int4", "w4": "int4", "4bit": "int4", "4bits": "int4", "nf4": "int4",
    "mxfp4": "mxfp4", "nvfp4": "nvfp4", "nvfp4a16": "nvfp4",
    "bf16": "bf16", "bfloat16": "bf16", "16bit": "bf16", "fp16": "fp16", "float16": "fp16", "f16": "fp16",
}  # fmt: skip
# Of these the ones that say how many bits, and not of what: `NVFP4-W4A16` is NVFP4.
BITS_ALONE: Final = frozenset({"w4a16", "w4", "4bit", "4bits", "w8a8", "w8a16", "8bit", "8bits"})
SAME_BITS: Final[Mapping[WeightFormat, tuple[WeightFormat, ...]]] = {"int4": ("nvfp4", "mxfp4"), "int8": ("fp8",)}
# What says how they were found; four bits unless the name says otherwise.
METHODS: Final[Mapping[str, WeightFormat]] = {
    "awq": "int4", "gptq": "int4", "gptqmodel": "int4", "autoround": "int4", "bnb": "int4", "bitsandbytes": "int4",
    "autoawq": "int4", "autogptq": "int4",
}  # fmt: skip
HALF: Final = frozenset({"bf16", "fp16"})
# What stands beside a format without changing what is stored of most weights.
OF_RECIPES = (
    "quantized dynamic block static tensor channel per quark ct compressed tensors modelopt qat g32 g64 g128 "
    "gs32 gs64 gs128 group32 group64 group128 rtn ptpc imatrix "
    "sym asym inc unsloth fast kv lmhead marlin calib nvidia ptq quant asq auto round mtp floatmtp quarot rot mindie"
)
BESIDE: Final = frozenset(OF_RECIPES.split())
# Files that other programs read.
FOREIGN: Final[Mapping[str, str]] = {
    "gguf": "GGUF, which llama.cpp reads",
    "ggml": "GGML, which llama.cpp read",
    "mlx": "MLX, which Apple's machines read",
    "exl2": "EXL2, which ExLlama reads",
    "exl3": "EXL3, which ExLlama reads",
    "onnx": "ONNX, which ONNX Runtime reads",
    "openvino": "OpenVINO, which OpenVINO reads",
    "litert": "LiteRT, which phones read",
    "coreml": "Core ML, which Apple's machines read",
    "uqff": "UQFF, which mistral.rs reads",
    "paddle": "Paddle's own format, which FastDeploy reads",
    "mlc": "MLC's own format, which MLC LLM reads",
}
FILES_OF: Final = {"mlx-community": FOREIGN["mlx"], "onnx-community": FOREIGN["onnx"]}  # whatever their names say
LLAMA_CPP: Final = re.compile(
    r"(?:^|[^a-z0-9])(?:ud[-_])?i?q[2-8](?:[_-](?:[01]|k|k[_-][slm]|k[_-]xl|xs|xxs|nl|s|m))(?=$|[^a-z0-9])|"
    r":[a-z0-9._-]*-qat$|"  # Ollama's tag of weights that were trained for Q4_0
    r"-apex-(?:mtp-)?(?:i-)?(?:quality|balanced|compact|mini|nano)$"  # its mixes of types, as LocalAI lists them
)
# Trained for few bits, and published in 16: `google/gemma-3-27b-it-qat-q4_0-unquantized`.
UNQUANTIZED: Final = re.compile(r"(?:[-_]qat)?(?:[-_](?:q[2-8]_[0-9k]|(?:int|fp|nvfp|mxfp)[48]))?[-_]unquantized")
OF_ACTIVATIONS: Final = re.compile(r"-w-([a-z]+[48])-a-[a-z]+(?:4|8|16)(?![a-z0-9])")  # as amd writes both
# A conversion's own edition, behind its format: `-NVFP4-v2`, `-MXFP4-Preview`, `-AWQ-FP16Mix`.
OWN_EDITION: Final = re.compile(r"v[1-9]|preview|(?:bf|fp|int)[0-9]{1,2}mix")
MIXED: Final = re.compile(r"int8mix")  # how many of the weights have these bits no name tells
# Others do not say what they mean by it; inclusionAI's is told in SGLang's cookbook (pull request 38527).
FOUR_BIT_FLOATS: Final = "fp4"
FOUR_BITS_OF: Final[Mapping[str, WeightFormat]] = {"nvidia": "nvfp4", "inclusionai": "mxfp4"}


@dataclass(frozen=True, slots=True)
class Stated:
    """What a name says of a format, and the words it leaves."""

    rest: tuple[str, ...]
    weight_format: WeightFormat | None = None
    recipe: Recipe | None = None  # of few bits, where it says whose
    foreign: str | None = None  # whose files they are, when the engine cannot load them
    contradicts: tuple[str, ...] = ()  # formats, when it says several


def foreign_files(name: str) -> str | None:
    """Return whose files a name says they are by the way llama.cpp names its types, as `q4_k_m`."""
    return FOREIGN["gguf"] if LLAMA_CPP.search(plain(name)) else None


def stated_format(words: tuple[str, ...], publisher: str = "") -> Stated:
    """Return the format that the words of a name say, and the words that say something else.

    >>> said = stated_format(("qwen", "3", "8b", "gptq", "int8"))
    >>> said.rest, said.weight_format, said.recipe, said.contradicts
    (('qwen', '3', '8b'), 'int8', 'gptq', ())
    """
    foreign = next((FOREIGN[word] for word in words if word in FOREIGN), None)
    words = _without_kept_head(words)
    named = {FOUR_BIT_FLOATS: FOUR_BITS_OF[publisher]} if publisher in FOUR_BITS_OF else {}
    bits = _bits_of(words)
    floats = tuple(named.values()) if FOUR_BIT_FLOATS in words else ()
    methods = tuple(dict.fromkeys(METHODS[word] for word in words if word in METHODS))
    said = bits or floats or methods
    mixed = tuple(word for word in words if MIXED.fullmatch(word)) if said else ()
    known = {*mixed, *STATED, *METHODS, *named, *FOREIGN} | (BESIDE if said or foreign else set())
    return Stated(
        rest=tuple(word for word in words if word not in known),
        weight_format=said[0] if len(said) == 1 and not mixed else None,
        recipe=recipe_of(words, publisher, said[0]) if len(said) == 1 and not mixed else None,
        foreign=foreign,
        contradicts=(*said, *mixed) if len(said) + len(mixed) > 1 else (),
    )


def _bits_of(words: tuple[str, ...]) -> tuple[WeightFormat, ...]:
    """Return the formats that words state; those that say bits alone give way to one that says of what.

    Beside how few bits were found, 16 are those of the rest: `AWQ-BF16-INT4`, as cyankiwi writes.
    """
    said = dict.fromkeys((STATED[word], word in BITS_ALONE) for word in words if word in STATED)
    told = {weight_format for weight_format, is_bare in said if not is_bare}
    given = dict.fromkeys(
        each for each, is_bare in said if not (is_bare and told.intersection(SAME_BITS.get(each, ())))
    )
    is_found = not METHODS.keys().isdisjoint(words)
    few = tuple(each for each in given if each not in HALF)
    return few if few and is_found else tuple(given)


def as_published(repo: str) -> str:
    """Return a repository's name without formats of no weights: those they were trained for, and of activations.

    >>> as_published("gemma-3-27b-it-qat-q4_0-unquantized"), as_published("gemma-3-27b-it-qat")
    ('gemma-3-27b-it', 'gemma-3-27b-it-qat')
    >>> as_published("gpt-oss-120b-w-mxfp4-a-fp8")
    'gpt-oss-120b-mxfp4'
    """
    return OF_ACTIVATIONS.sub(r"-\1", UNQUANTIZED.sub("", repo))


def without_own_edition(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words without what a conversion calls its own edition: it stands behind the format.

    >>> without_own_edition(("deepseek", "r1", "0528", "nvfp4", "v2"))
    ('deepseek', 'r1', '0528', 'nvfp4')
    """
    left = words
    while left and OWN_EDITION.fullmatch(left[-1]):
        left = left[:-1]
    is_behind = bool(left) and (left[-1] in STATED or left[-1] in METHODS or left[-1] == FOUR_BIT_FLOATS)
    return left if is_behind else words


def _without_kept_head(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words without those that say which matrix kept its format, as `-BF16-LMHead`."""
    kept = {place - 1 for place, word in enumerate(words) if word == "lmhead" and place}
    return tuple(word for place, word in enumerate(words) if place not in kept)


def without_types(repo: str) -> str:
    """Return a repository's name without the types of llama.cpp's files."""
    before = (repo.partition("gguf")[0].rstrip("-_.:"), repo.rpartition("-")[0], repo.rpartition(":")[0])
    return (before[0] if "gguf" in repo else max(before[1:], key=len)) or repo

"""Which model and GPU of the catalog a source means by the name it gives."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from service.calibration.logs.rows import UnstatedError
from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot
from service.engine import GIB, Gpu, ModelFacts

# Fine-tunes and conversions, and models of exactly their shape: vocabulary and layers agree, so that caches and
# activations do; their logged weights stand in for ours.
SAME_SHAPE: Final[Mapping[str, str]] = {
    "DeepSeek-R1-0528-Qwen3-8B": "qwen3-8b",
    "Devstral-Small-2-24B-AWQ": "devstral-small-2-24b-instruct-2512",
    "GLM-5.2": "glm-5.2",
    "Kimi-K2-Thinking": "kimi-k2-instruct",
    "Llama-3_3-Nemotron-Super-49B-v1_5": "llama-3.3-nemotron-super-49b-v1",
    "Meta-Llama-3.1-405B-Instruct-FP8": "llama-3.1-405b-instruct",
    "Meta-Llama-3-70B": "llama-3.1-70b-instruct",
    "Mistral-7B-Instruct-v0.2-GPTQ": "mistral-7b-instruct-v0.3",
    "Qwen2.5-Coder-0.5B-Instruct": "qwen2.5-0.5b",
    "Qwen2.5-Math-1.5B": "qwen2.5-1.5b",
    "Qwen3-14B": "qwen3-14b",
    "Qwen3-4B-Base": "qwen3-4b",
    "Qwen3-8B": "qwen3-8b",
    "Qwen3.8-27B-Unc": "qwen3.8-27b",
    "gemma-4-26B-AWQ": "gemma-4-26b-a4b-it",
    "gemma-4-31B-AWQ": "gemma-4-31b-it",
    "gemma-4-31B-it-AWQ-4bit": "gemma-4-31b-it",
    "llava-v1.6-mistral-7b-hf": "mistral-7b-v0.1",
    "meta-llama-3.1-8b-instruct-unsloth-bnb-4bit": "llama-3.1-8b-instruct",
    "qwen2.5-3b-instruct-unsloth-bnb-4bit": "qwen2.5-3b-instruct",
    "qwen2.5-vl-7b-instruct-unsloth-bnb-4bit": "qwen2.5-vl-7b-instruct",
}
# What others append to a model's name when they convert its weights.
CONVERSION: Final = re.compile(
    r"[-_. ](fp8|nvfp4|mxfp4|awq|gptq|int4|int8|w4a16|w8a8|quantized|bnb|autoround)\b.*$", re.IGNORECASE
)
MACHINE: Final = re.compile(
    r"\b[a-z][0-9]+-[a-z]+gpu-[0-9]+g\b"
)  # an instance type beside the GPU: its words name none
PRINTED_GIB: Final = 0.01  # by which two figures of one memory in hundredths can differ, as each is rounded
LINES: Final = ("rtx", "radeon", "rx", "tesla")
SERVED_SUFFIXES: Final = ("-v2", "-FP8", "-FP4", "-NVFP4", "-MXFP4")
# GPUs that sources name without their form factor.
SHORT_NAMES: Final = (
    "h200", "h100", "b200", "a100", "l40s", "l4", "t4", "rtx 5090", "rtx 3090", "rtx 4090", "a800",
)  # fmt: skip


def model_of_checkpoint(name: str, catalog: Snapshot) -> tuple[ModelFacts, bool]:
    """Return the model, and whether it is the checkpoint itself, not a fine-tune or conversion of its shape."""
    short = name.rsplit("/", maxsplit=1)[-1]
    converted = CONVERSION.sub("", short)
    own = (name, short, short.lower().removesuffix("-fp8"))
    model, known_as = _first_known(
        (*own, SAME_SHAPE.get(short, name), converted, SAME_SHAPE.get(converted, name), name), catalog
    )
    return model, known_as in own and short not in SAME_SHAPE


def served_model(name: str, catalog: Snapshot) -> ModelFacts:
    """Return the model that a serving run names, in whatever format it ran."""
    short = name.rsplit("/", maxsplit=1)[-1]
    bare = short
    for suffix in SERVED_SUFFIXES:
        bare = bare.removesuffix(suffix)
    converted = CONVERSION.sub("", short).replace("Meta-", "")
    others = (bare, bare.replace("Meta-", ""), SAME_SHAPE.get(short, name), converted)
    return _first_known((name, short, *others, name), catalog)[0]


def _first_known(candidates: Iterable[str], catalog: Snapshot) -> tuple[ModelFacts, str]:
    """Return the model of the first name that the catalog knows, with the name.

    Raises:
        NotInCatalogError: it knows none; the error is about the last.
    """
    *others, last = candidates
    for name in others:
        try:
            return catalog.model(name), name
        except NotInCatalogError:
            continue
    return catalog.model(last), last


def gpu_of_words(text: str, stated_gib: float | None, catalog: Snapshot) -> Gpu:
    """Return the GPU that a text names, with the memory that was logged; by that memory alone where nothing else tells.

    Raises:
        UnstatedError: neither tells which.
    """
    said = set(re.split(r"[\s(),/-]+", MACHINE.sub(" ", text.lower())))
    gpu = _named(said, catalog) or _shortly_named(said, catalog)
    if gpu is None and stated_gib is None:
        raise UnstatedError("the GPU is not stated or not in the catalog")
    if gpu is None:
        gpu = _of_memory(stated_gib or 0, catalog)
    sized = _of_stated_size(gpu, said, catalog)
    return sized if stated_gib is None else replace(sized, memory_bytes=int(stated_gib * GIB))


def _of_memory(stated_gib: float, catalog: Snapshot) -> Gpu:
    """Return the GPU of a memory printed in hundredths: of those that all round to it, the one most offered."""
    away = {gpu.id: round(abs(gpu.memory_bytes / GIB - stated_gib), 2) for gpu in catalog.gpus.values()}
    offered = Counter(offer.gpu for offer in catalog.offers)
    alike = [gpu_id for gpu_id in away if away[gpu_id] <= PRINTED_GIB] or [min(away, key=lambda gpu_id: away[gpu_id])]
    return catalog.gpu(min(alike, key=lambda gpu_id: (-offered[gpu_id], away[gpu_id], gpu_id)))


def _named(said: set[str], catalog: Snapshot) -> Gpu | None:
    """Return the GPU whose id has most of the words that were said, and fewest others."""
    words = {gpu.id: set(gpu.id.split("-")) for gpu in catalog.gpus.values()}
    named = [gpu for gpu in catalog.gpus.values() if set(gpu.id.split("-")[:2]) <= said]
    return min(named, key=lambda gpu: (-len(words[gpu.id] & said), len(words[gpu.id] - said), gpu.id), default=None)


def _shortly_named(said: set[str], catalog: Snapshot) -> Gpu | None:
    short = next((name for name in SHORT_NAMES if set(name.split()) <= said), None)
    return None if short is None else catalog.gpu(short.replace(" ", "-"))


def _of_stated_size(gpu: Gpu, said: set[str], catalog: Snapshot) -> Gpu:
    """Return the part of the same family whose memory size was said, such as `40gb`."""
    words = gpu.id.split("-")
    sizes = {word for word in said if word.endswith("gb") and word[:-2].isdigit()}
    if not sizes or sizes & set(words):
        return gpu
    # A line of cards is no family: RTX A4000 and RTX 4060 Ti share a word.
    own = words[: 2 if words[0] in LINES else 1]
    others = [other for other in catalog.gpus.values() if other.id.split("-")[: len(own)] == own]
    family = [other for other in others if sizes & set(other.id.split("-"))]
    return max(family, key=lambda other: other.memory_bandwidth_bytes_per_s, default=gpu)


def served_gpu(name: str, catalog: Snapshot) -> Gpu:
    """Return the GPU that a serving run names, by as many of its first words as the catalog knows.

    Raises:
        UnstatedError: the catalog knows none.
    """
    bare = name.lower().split(" (")[0]
    for brand in ("nvidia ", "amd ", "intel ", "instinct ", "geforce "):
        bare = bare.removeprefix(brand)
    words = bare.split()
    for count in range(len(words), 0, -1):
        try:
            return catalog.gpu("-".join(words[:count]))
        except NotInCatalogError:
            continue
    raise UnstatedError(f"the GPU {name!r} is not in the catalog")

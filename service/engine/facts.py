"""A model as the catalog or a pasted config states it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from service.engine.arithmetic import ceil_div
from service.engine.derived import Derived, derived
from service.engine.formats.quantization import Quantization
from service.engine.inputs import DeclaredCacheDtype, Layout, Valued, WeightFormat, content_key
from service.engine.layers import Architecture

# Of an element, without scales: parameters are all that is known. [bits]
BITS: Final[Mapping[WeightFormat, int]] = {
    "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4, "mxfp4": 4, "nvfp4": 4,
}  # fmt: skip

NO_TOWERS: Final = "it changes nothing: the model has no towers for images or sound"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint(Valued):
    """One published weight format of a model."""

    weight_format: WeightFormat
    quantization: Quantization
    hf_id: str | None
    is_default: bool
    kv_cache_dtype: DeclaredCacheDtype | None  # what the checkpoint itself declares
    source: str | None
    is_assumed: bool = False  # a repository was named, and how it stores its weights is not known
    cautions: tuple[str, ...] = ()  # what a reader must know of how it was read
    architecture: Architecture | None = field(default=None, repr=False)  # where its config differs from the model's
    config_json: str = field(default="", repr=False)  # and that config
    key: str = field(init=False, repr=False)
    derived: Derived = field(default_factory=Derived, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derive the key from everything stated."""
        content = (self.weight_format, self.quantization, self.hf_id, self.is_default, self.kv_cache_dtype, self.source)
        object.__setattr__(self, "key", content_key("checkpoint", (*content, self.cautions, self.config_json)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelFacts(Valued):
    """A model as the catalog or a pasted config states it; exactly one checkpoint is the default."""

    id: str
    architecture: Architecture = field(repr=False)  # 30 kB as text
    checkpoints: tuple[Checkpoint, ...]
    source: str | None
    config_json: str = field(default="", repr=False)  # the published config, for step timers that read it
    weight_bytes: int | None = None  # stated by the caller where the config cannot tell
    num_parameters: int | None = None  # so, too, and counted in whatever format is asked
    is_text_only: bool = False  # loaded without towers for images and sound
    key: str = field(init=False, repr=False)
    derived: Derived = field(default_factory=Derived, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derive the key from the config and everything stated beside it."""
        checkpoints = tuple(checkpoint.key for checkpoint in self.checkpoints)
        config = self.config_json or self.architecture  # the one is parsed from the other
        content = (self.id, self.source, config, self.weight_bytes, self.num_parameters, self.is_text_only, checkpoints)
        object.__setattr__(self, "key", content_key("model", content))


def format_of(architecture: Architecture, quantization: Quantization) -> WeightFormat:
    """Return the format that most of a checkpoint is in: its experts', where they are stored otherwise than the rest.

    DeepSeek-V4-Flash states fp8 in blocks, and its experts have four bits (config.json, `expert_dtype`).
    """
    if quantization.expert_scheme == "nvfp4":
        return "nvfp4"
    if quantization.is_fp8_in_blocks and quantization.expert_scheme is None:
        whole = (part.matrices(architecture.hidden_size, Layout(), "") for part in architecture.feed_forwards)
        if any(matrix.scheme == "mxfp4" for matrices in whole for matrix in matrices):
            return "mxfp4"
    return quantization.weight_format or ("fp16" if architecture.dtype == "float16" else "bf16")


def stated_weight_bytes(model: ModelFacts, checkpoint: Checkpoint) -> int:
    """Return the caller's figure of all weights: as stated, or parameters in the checkpoint's format. [bytes]."""
    if model.weight_bytes is not None:
        return model.weight_bytes
    return ceil_div((model.num_parameters or 0) * BITS[checkpoint.weight_format], 8)


def as_stored(model: ModelFacts, checkpoint: Checkpoint) -> ModelFacts:
    """Return a model as a checkpoint of its own config states it; the model itself where the config is the same."""
    return model if checkpoint.architecture is None else _restated(model, checkpoint)


@derived(8)
def _restated(model: ModelFacts, checkpoint: Checkpoint) -> ModelFacts:
    architecture = checkpoint.architecture or model.architecture
    stored = replace(model, architecture=architecture, config_json=checkpoint.config_json, is_text_only=False)
    return text_only(stored) if model.is_text_only else stored


def text_alone_source(model: ModelFacts) -> str | None:
    """Return what is told of a model that is sent text alone: that it changes nothing, where it has no towers."""
    return None if text_only(model).is_text_only else NO_TOWERS


def text_only(model: ModelFacts) -> ModelFacts:
    """Return a model as it is loaded to be sent text alone: without towers for images and sound."""
    architecture = model.architecture
    if architecture.encoder is None and not architecture.sees_images_both_ways:
        return model
    return _without_towers(model)


@derived(1)
def _without_towers(model: ModelFacts) -> ModelFacts:
    alone = replace(model.architecture, encoder=None, sees_images_both_ways=False)
    return replace(model, architecture=alone, is_text_only=True)

"""A model as the catalog or a pasted config states it."""

from dataclasses import dataclass, replace
from functools import lru_cache

from service.engine.formats.quantization import Quantization
from service.engine.inputs import KvCacheDtype, WeightFormat
from service.engine.layers import Architecture


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """One published weight format of a model."""

    weight_format: WeightFormat
    quantization: Quantization
    hf_id: str | None
    is_default: bool
    kv_cache_dtype: KvCacheDtype | None  # what the checkpoint itself declares
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelFacts:
    """A model as the catalog or a pasted config states it; exactly one checkpoint is the default."""

    id: str
    architecture: Architecture
    checkpoints: tuple[Checkpoint, ...]
    source: str | None
    config_json: str = ""  # the published config, for step timers that read it
    weight_bytes: int | None = None  # stated by the caller where the config cannot tell


@lru_cache(maxsize=1024)
def text_only(model: ModelFacts) -> ModelFacts:
    """Return a model as it is loaded to be sent text alone: without towers for images and sound."""
    architecture = model.architecture
    if architecture.encoder is None and not architecture.sees_images_both_ways:
        return model
    return replace(model, architecture=replace(architecture, encoder=None, sees_images_both_ways=False))

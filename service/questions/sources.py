"""What questions look things up in: one catalog, the step timers, and the configs that callers pasted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from operator import attrgetter
from threading import Condition

from cachetools import LRUCache, cachedmethod

from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot
from service.engine.arithmetic import ceil_div
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.families import parse_architecture, stated_quantization
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import Gpu, WeightFormat
from service.engine.time.steps import StepTimers
from service.questions.refusals import not_in_catalog

PASTED_ID = "pasted-config"
PASTED_SOURCE = "model_config of the request"
BITS: Mapping[WeightFormat, int] = {"bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4, "mxfp4": 4, "nvfp4": 4}
MOST_PASTED = 256
MOST_PASTED_BYTES = 16 << 20  # of configs as text
MOST_KEPT_CONFIG = 32 << 10  # of one of them [characters]
MOST_KEPT_FIELD = 8 << 10


class PastedModels:
    """Models read from pasted configs, kept, so that what is learnt about a model is learnt once."""

    def __init__(self, most: int = MOST_PASTED, most_bytes: int = MOST_PASTED_BYTES) -> None:
        """Start without any; at most `most` are kept, of `most_bytes` in all."""
        share = most_bytes // most
        self.kept: LRUCache[tuple[object, ...], ModelFacts] = LRUCache(
            most_bytes, getsizeof=lambda facts: max(share, len(facts.config_json))
        )
        self.waiting = Condition()

    def model(self, config: Mapping[str, object], weight_bytes: int | None, num_parameters: int | None) -> ModelFacts:
        """Return what the engine computes with, for a config that is not in the catalog.

        Raises:
            EngineError: the config lacks a field, or has a layer kind without a rule.
        """
        return self._model(json.dumps(config, sort_keys=True), weight_bytes, num_parameters)

    @cachedmethod(
        attrgetter("kept"),
        key=lambda _self, config_json, *stated: (sha256(config_json.encode()).digest(), *stated),
        condition=attrgetter("waiting"),
    )
    def _model(self, config_json: str, weight_bytes: int | None, num_parameters: int | None) -> ModelFacts:
        config = json.loads(config_json)
        architecture = parse_architecture(config)
        quantization = parse_quantization(stated_quantization(config))
        weight_format = quantization.weight_format or ("fp16" if architecture.dtype == "float16" else "bf16")
        checkpoint = Checkpoint(
            weight_format=weight_format,
            quantization=quantization,
            hf_id=None,
            is_default=True,
            kv_cache_dtype=quantization.kv_cache_dtype,
            source=PASTED_SOURCE,
        )
        return ModelFacts(
            id=PASTED_ID,
            architecture=architecture,
            checkpoints=(checkpoint,),
            source=PASTED_SOURCE,
            config_json=_to_keep(config, config_json),
            weight_bytes=_stated_weight_bytes(weight_bytes, num_parameters, weight_format),
        )


def _to_keep(config: Mapping[str, object], config_json: str) -> str:
    """Return the config as it is kept with what is learnt about the model: without what is long, beside its digest.

    Step timers read it, and no long field: published ones are lists of a value a layer, or of quantized modules.
    """
    if len(config_json) <= MOST_KEPT_CONFIG:
        return config_json
    short = {name: value for name, value in config.items() if len(json.dumps(value)) <= MOST_KEPT_FIELD}
    digest = sha256(config_json.encode()).hexdigest()
    kept = json.dumps({**short, "sha256": digest}, sort_keys=True)
    return kept if len(kept) <= MOST_KEPT_CONFIG else json.dumps({"sha256": digest})


def _stated_weight_bytes(
    weight_bytes: int | None, num_parameters: int | None, weight_format: WeightFormat
) -> int | None:
    """Return the caller's weights: as stated, or parameters x bits / 8."""
    if weight_bytes is not None or num_parameters is None:
        return weight_bytes
    return ceil_div(num_parameters * BITS[weight_format], 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What one question is answered from; a question sees one catalog from start to end."""

    catalog: Snapshot
    timers: StepTimers | None  # None: memory alone
    pasted_models: PastedModels

    def gpu(self, name: str, *, field: str) -> Gpu:
        """Return a GPU of the catalog.

        Raises:
            RefusalError: it has no such GPU; the field that was asked is at fault.
        """
        try:
            return self.catalog.gpu(name)
        except NotInCatalogError as error:
            raise not_in_catalog(error, field) from error

    def model(self, name: str, *, field: str) -> ModelFacts:
        """Return a model of the catalog.

        Raises:
            RefusalError: it has no such model; the field that was asked is at fault.
            EngineError: the model is known and its structure has no rule yet.
        """
        try:
            return self.catalog.model(name)
        except NotInCatalogError as error:
            raise not_in_catalog(error, field) from error

"""What questions look things up in: one catalog, the step timers, and the configs that callers pasted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from hashlib import sha256
from operator import attrgetter
from threading import Condition
from typing import Protocol

from cachetools import LRUCache, cachedmethod

from service.catalog.errors import NotInCatalogError
from service.catalog.names.facts import facts_as_named
from service.catalog.names.gpus import GpuReading
from service.catalog.names.instances import instance_key
from service.catalog.names.readings import ModelReading
from service.catalog.snapshot import Snapshot
from service.engine.engines.measured_here import Measured
from service.engine.engines.rules import EngineRules, as_measured
from service.engine.errors import EngineError
from service.engine.facts import Checkpoint, ModelFacts, format_of
from service.engine.families import cautions_of_quantization, parse_architecture, stated_quantization
from service.engine.fleet.questions import Offer
from service.engine.fleet.results import Assumption
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import Gpu, WeightFormat
from service.engine.time.steps import StepTimers
from service.questions.alike import AlikeAnswers
from service.questions.places import placed
from service.questions.refusals import Fault, RefusalError, not_in_catalog

UNHEEDED = "decides nothing here"
PASTED_ID = "pasted-config"
PASTED_SOURCE = "model_config of the request"
MOST_PASTED = 256
MOST_PASTED_BYTES = 64 << 20  # of configs, and of what follows from them
BYTES_PER_LAYER = 3 << 10  # of a model, its matrices and what is found out about them, measured
MOST_KEPT_CONFIG = 32 << 10  # of one of them [characters]
MOST_KEPT_FIELD = 8 << 10


class Corrections(Protocol):
    """Says what stored measurements change."""

    def of(self, sources: "Sources", rules: EngineRules, model_id: str) -> tuple[Measured, ...]:
        """Return what callers measured of a model under an engine's rules."""
        ...


class PastedModels:
    """Models read from pasted configs, kept, so that what is learnt about a model is learnt once."""

    def __init__(self, most: int = MOST_PASTED, most_bytes: int = MOST_PASTED_BYTES) -> None:
        """Start without any; at most `most` are kept, of `most_bytes` in all."""
        share = most_bytes // most
        self.kept: LRUCache[tuple[object, ...], ModelFacts] = LRUCache(
            most_bytes, getsizeof=lambda facts: max(share, _kept_bytes(facts))
        )
        self.waiting = Condition()

    def model(self, config: Mapping[str, object], weight_bytes: int | None, num_parameters: int | None) -> ModelFacts:
        """Return what the engine computes with, for a config that is not in the catalog.

        Raises:
            EngineError: the config lacks a field, or has a layer kind without a rule.
        """
        try:
            return self._model(json.dumps(config, sort_keys=True), weight_bytes, num_parameters)
        except EngineError as refusal:
            raise placed(refusal, config) from None

    @cachedmethod(
        attrgetter("kept"),
        key=lambda _self, config_json, *stated: (sha256(config_json.encode()).digest(), *stated),
        condition=attrgetter("waiting"),
    )
    def _model(self, config_json: str, weight_bytes: int | None, num_parameters: int | None) -> ModelFacts:
        config = json.loads(config_json)
        architecture = parse_architecture(config)
        quantization = parse_quantization(stated_quantization(config))
        checkpoint = Checkpoint(
            weight_format=format_of(architecture, quantization),
            quantization=quantization,
            hf_id=None,
            is_default=True,
            kv_cache_dtype=quantization.kv_cache_dtype,
            source=PASTED_SOURCE,
            cautions=cautions_of_quantization(config),
        )
        return ModelFacts(
            id=PASTED_ID,
            architecture=architecture,
            checkpoints=(checkpoint,),
            source=PASTED_SOURCE,
            config_json=_to_keep(config, config_json),
            weight_bytes=weight_bytes,
            num_parameters=num_parameters,
        )


def _kept_bytes(facts: ModelFacts) -> int:
    """Return about what a model takes, with what was found out about it. [bytes]."""
    return len(facts.config_json) + BYTES_PER_LAYER * len(facts.architecture.layers)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What one question is answered from; a question sees one catalog from start to end."""

    catalog: Snapshot
    timers: StepTimers | None  # None: memory alone
    pasted_models: PastedModels
    corrections: Corrections | None = None  # None: stored measurements say nothing
    today: date = field(default_factory=lambda: datetime.now(UTC).date())  # the day on which prices are stale or not
    readings: list[Assumption] = field(default_factory=list)  # names that were understood other than literally
    alike: AlikeAnswers = field(default_factory=AlikeAnswers)  # that were computed for other loads
    asked_about: list[ModelFacts] = field(default_factory=list)  # models that were looked up

    def gpu(self, name: str, *, field: str) -> Gpu:
        """Return a GPU of the catalog, whatever it is called.

        Raises:
            RefusalError: it has no such GPU; the field that was asked is at fault.
        """
        reading = self.gpu_reading(name, field=field)
        counted = "" if reading.gpu_count is None else f"; the count of {reading.gpu_count} {UNHEEDED}"
        self._note(field, reading.gpu_id, name, reading.how + counted)
        return self.catalog.gpus[reading.gpu_id]

    def rented_gpu(self, name: str, *, field: str, has_own_price: bool) -> Gpu:
        """Return a GPU to rent, called by itself or by an instance type, which is rented whole.

        Args:
            name: what it is called.
            field: the field at fault.
            has_own_price: whether the caller states what a GPU costs.

        Raises:
            RefusalError: it has no such GPU; the field that was asked is at fault.
        """
        reading = self.gpu_reading(name, field=field)
        if reading.instance_type is None:
            return self.gpu(name, field=field)
        is_listed = any(offer.instance_type == reading.instance_type for offer in self.catalog.offers)
        price = "at its own price" if is_listed else "whose price is not known here"
        paid = f"{'at the price stated' if has_own_price else price}, rented whole"
        count = (reading.gpu_count or 1) // self._held_by_one(reading)
        counted = f"; the count of {count} {UNHEEDED}" if count > 1 else ""
        self._note(field, reading.gpu_id, name, f"{reading.how}; {paid}{counted}")
        return self.catalog.gpus[reading.gpu_id]

    def counted_gpu(self, name: str, *, field: str) -> tuple[Gpu, int | None]:
        """Return a GPU of the catalog, and how many of them the name counts.

        Raises:
            RefusalError: it has no such GPU; the field that was asked is at fault.
        """
        reading = self.gpu_reading(name, field=field)
        self._note(field, reading.gpu_id, name, reading.how)
        return self.catalog.gpus[reading.gpu_id], reading.gpu_count

    def gpu_reading(self, name: str, *, field: str) -> GpuReading:
        """Return which GPU is meant, and how many.

        Raises:
            RefusalError: the catalog has no such GPU.
        """
        try:
            return self.catalog.called_gpus.read(name)
        except NotInCatalogError as error:
            raise not_in_catalog(error, field) from error

    def offers_of(self, *names: str) -> tuple[Offer, ...]:
        """Return what may be rented: every offer, and of GPUs called by instance types alone those of these types."""
        by_gpu = self.instances_of(*names)
        if not by_gpu:
            return self.catalog.offers
        types = {gpu: {instance_type for instance_type, _ in instances} for gpu, instances in by_gpu.items()}
        return tuple(
            offer for offer in self.catalog.offers if offer.gpu not in types or offer.instance_type in types[offer.gpu]
        )

    def instances_of(self, *names: str) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """Return the instance types, and how many GPUs each holds, of every GPU that is called by such alone."""
        readings = [self.gpu_reading(name, field="gpu") for name in names]
        by_itself = {reading.gpu_id for reading in readings if reading.instance_type is None}
        held: dict[str, tuple[tuple[str, int], ...]] = {}
        for each in readings:
            if each.instance_type is not None and each.gpu_id not in by_itself:
                held[each.gpu_id] = (*held.get(each.gpu_id, ()), (each.instance_type, self._held_by_one(each)))
        return held

    def _held_by_one(self, reading: GpuReading) -> int:
        """Return how many GPUs one instance of a type holds, however many instances a name counts."""
        instance = self.catalog.called_gpus.instances.get(instance_key(reading.instance_type or ""))
        return reading.gpu_count or 1 if instance is None else instance.gpu_count

    def model(self, name: str, *, field: str, weight_formats: tuple[WeightFormat, ...] = ()) -> ModelFacts:
        """Return a model of the catalog, whatever it is called; a name that says a format is loaded in it.

        Raises:
            RefusalError: it has no such model, or the name says another format than those stated beside it.
            EngineError: the model is known and its structure has no rule yet.
        """
        try:
            reading = self.catalog.called_models.read(name)
        except NotInCatalogError as error:
            raise not_in_catalog(error, field) from error
        _check_format(reading, weight_formats, field)
        self._note(field, reading.model_id, name, reading.how)
        return self._asked_about(facts_as_named(self.catalog, reading))

    def pasted_model(
        self, config: Mapping[str, object], weight_bytes: int | None, num_parameters: int | None
    ) -> ModelFacts:
        """Return a model whose config came with the question, with its weights where the config cannot tell them.

        Raises:
            EngineError: the config lacks a field, or has a layer kind without a rule.
        """
        return self._asked_about(self.pasted_models.model(config, weight_bytes, num_parameters))

    def _asked_about(self, model: ModelFacts) -> ModelFacts:
        self.asked_about.append(model)
        return model

    def as_measured(self, rules: EngineRules, model_id: str) -> EngineRules:
        """Return an engine's rules with what callers measured of a model under them."""
        if self.corrections is None or model_id not in self.catalog.measurements:
            return rules
        return as_measured(rules, self.corrections.of(self, rules, model_id))

    def _note(self, field: str, value: str, name: str, how: str) -> None:
        if how:
            self.readings.append(Assumption(name=field, value=value, origin="read as", source=f"{name!r}: {how}"))


def _check_format(reading: ModelReading, weight_formats: tuple[WeightFormat, ...], field: str) -> None:
    """Raise where a format is stated beside a name that says another one."""
    said = reading.weight_format
    if said is None or set(weight_formats) <= {said}:
        return
    detail = f"the name says {said}, and {', '.join(weight_formats)} is stated beside it"
    accepted = f"{reading.model_id} with any weight_format, or a name without one"
    raise RefusalError("invalid-request", detail, Fault(field, detail, accepted))

"""The immutable in-memory catalog that answers are computed from; no question touches the database."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rapidfuzz import fuzz, process

from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry
from service.catalog.errors import InvalidCatalogError, NotInCatalogError
from service.catalog.store import CatalogEntries
from service.engine.errors import EngineError
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.families import parse_architecture
from service.engine.fleet.questions import Offer
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import Gpu

MAX_SUGGESTIONS: Final = 3
SUGGESTION_SCORE: Final = 55  # below it a suggestion confuses more than it helps [per cent]
# Direct one-way rates assumed where a catalog entry states no fabric: PCIe 4.0 x16 and 100 Gb/s Ethernet.
PCIE_BYTES_PER_S: Final = 32e9
ETHERNET_BYTES_PER_S: Final = 12.5e9
PEAKS: Final = {
    "fp32": "peak_fp32_flop_per_s",
    "bf16": "peak_bf16_flop_per_s",
    "fp16": "peak_fp16_flop_per_s",
    "fp8": "peak_fp8_flop_per_s",
    "int8": "peak_int8_op_per_s",
    "fp4": "peak_fp4_flop_per_s",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """The whole catalog at one revision, ready to compute with."""

    revision: int
    entries: CatalogEntries
    model_entries: Mapping[str, ModelEntry]
    gpu_entries: Mapping[str, GpuEntry]
    offer_entries: Mapping[str, OfferEntry]
    offers: tuple[Offer, ...]
    gpus: Mapping[str, Gpu]
    _models: Mapping[str, ModelFacts | EngineError]
    _model_names: Mapping[str, str]
    _gpu_names: Mapping[str, str]

    def model_id(self, name: str) -> str:
        """Return the id behind a model's id, hub id or alias, in any case.

        Raises:
            NotInCatalogError: no model has the name; close ones are suggested.
        """
        return _found("model", name, self._model_names)

    def model(self, name: str) -> ModelFacts:
        """Return a model to compute with.

        Raises:
            NotInCatalogError: no model has the name.
            EngineError: the model is known and its structure has no rule yet.
        """
        facts = self._models[self.model_id(name)]
        if isinstance(facts, EngineError):
            raise facts
        return facts

    def gpu(self, name: str) -> Gpu:
        """Return a GPU to compute with.

        Raises:
            NotInCatalogError: no GPU has the name; close ones are suggested.
        """
        return self.gpus[_found("gpu", name, self._gpu_names)]

    def refusal(self, model_id: str) -> str | None:
        """Return why a model of the catalog cannot be sized; None when it can."""
        facts = self._models[model_id]
        return facts.detail if isinstance(facts, EngineError) else None


def build_snapshot(entries: CatalogEntries) -> Snapshot:
    """Return the snapshot of a catalog, validated whole.

    Raises:
        InvalidCatalogError: two entries claim one name, or an offer names an unknown GPU.
    """
    gpus = {entry.id: _gpu(entry) for entry in entries.gpus}
    for offer in entries.offers:
        if offer.gpu not in gpus:
            raise InvalidCatalogError(f"offer {offer.id!r} names the unknown GPU {offer.gpu!r}")
    return Snapshot(
        revision=entries.revision,
        entries=entries,
        model_entries={entry.id: entry for entry in entries.models},
        gpu_entries={entry.id: entry for entry in entries.gpus},
        offer_entries={entry.id: entry for entry in entries.offers},
        offers=tuple(_offer(entry) for entry in entries.offers),
        gpus=gpus,
        _models={entry.id: model_facts(entry) for entry in entries.models},
        _model_names=_names(
            "model", {entry.id: (*entry.aliases, *([entry.hf_id] if entry.hf_id else [])) for entry in entries.models}
        ),
        _gpu_names=_names("gpu", {entry.id: (*entry.aliases, entry.name) for entry in entries.gpus}),
    )


def model_facts(entry: ModelEntry) -> ModelFacts | EngineError:
    """Return what the engine computes with, or its refusal of the model.

    A checkpoint with a quantization that has no rule is left out, unless it is the model's own.
    """
    try:
        architecture = parse_architecture(entry.config)
        checkpoints = [it for it in (_checkpoint(entry, index) for index in range(len(entry.checkpoints))) if it]
    except EngineError as refusal:
        return refusal
    return ModelFacts(
        id=entry.id,
        architecture=architecture,
        checkpoints=tuple(checkpoints),
        source=entry.source.url,
        config_json=json.dumps(entry.config, sort_keys=True),
    )


def _checkpoint(entry: ModelEntry, index: int) -> Checkpoint | None:
    stated = entry.checkpoints[index]
    try:
        quantization = parse_quantization(stated.quantization_config)
    except EngineError:
        if stated.is_default:
            raise
        return None
    return Checkpoint(
        weight_format=stated.weight_format,
        quantization=quantization,
        hf_id=stated.hf_id,
        is_default=stated.is_default,
        kv_cache_dtype=stated.kv_cache_dtype or quantization.kv_cache_dtype,
        source=stated.source.url,
    )


def _gpu(entry: GpuEntry) -> Gpu:
    def figure(name: str, default: float = 0.0) -> float:
        stated = entry.figures.get(name)
        return default if stated is None else float(stated.value)

    # What a process can see is a little less than the driver reports; the engine's budget is a share of it.
    usable = entry.figures.get("usable_memory_bytes", entry.figures["memory_bytes"])
    return Gpu(
        id=entry.id,
        name=entry.name,
        vendor=entry.vendor,
        architecture=entry.architecture,
        compute_capability=entry.compute_capability,
        memory_bytes=int(usable.value),
        memory_bandwidth_bytes_per_s=figure("memory_bandwidth_bytes_per_s"),
        peak_flop_per_s={key: figure(name) for key, name in PEAKS.items() if name in entry.figures},
        gpus_per_node=entry.gpus_per_node,
        scale_up_domain_gpus=entry.scale_up_domain_gpus,
        scale_up_bytes_per_s=figure("scale_up_bytes_per_s", PCIE_BYTES_PER_S),
        scale_out_bytes_per_s=figure("scale_out_bytes_per_s", ETHERNET_BYTES_PER_S),
        source=usable.source.url,
    )


def _offer(entry: OfferEntry) -> Offer:
    return Offer(
        id=entry.id,
        provider=entry.provider,
        instance_type=entry.instance_type,
        region=entry.region,
        gpu=entry.gpu,
        gpu_count=entry.gpu_count,
        usd_per_hour=entry.usd_per_hour,
        as_of=entry.as_of.isoformat(),
    )


def _names(kind: str, spelled: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return every name in lower case with the id it stands for; ids come first.

    Raises:
        InvalidCatalogError: one name stands for two entries.
    """
    names = {entry_id: entry_id for entry_id in spelled}
    for entry_id, others in spelled.items():
        for name in others:
            owner = names.setdefault(name.lower(), entry_id)
            if owner != entry_id:
                raise InvalidCatalogError(f"the {kind} name {name!r} stands for both {owner!r} and {entry_id!r}")
    return names


def _found(kind: str, name: str, names: Mapping[str, str]) -> str:
    entry_id = names.get(name.strip().lower())
    if entry_id is None:
        raise NotInCatalogError(kind, name[:100], suggestions(name[:100], names))
    return entry_id


def suggestions(name: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids whose names come closest to a misspelt one."""
    close = process.extract(name.lower(), names.keys(), scorer=fuzz.WRatio, limit=12, score_cutoff=SUGGESTION_SCORE)
    ids = dict.fromkeys(names[match] for match, _, _ in close)
    return tuple(ids)[:MAX_SUGGESTIONS]

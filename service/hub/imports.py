"""From what a hub publishes to a catalog entry."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from pydantic import ValidationError

from service.catalog.entries import Checkpoint, ModelEntry
from service.catalog.errors import ConflictError
from service.catalog.faults import told
from service.engine.facts import format_of
from service.engine.families import cautions_of_quantization, parse_architecture
from service.engine.formats.quantization import Quantization, parse_quantization
from service.engine.layers import Architecture
from service.engine.memory.parameters import num_parameters
from service.hub.client import PublishedModel
from service.hub.errors import UnusableHubAnswerError

QUANTIZATION_FIELDS: Final = ("quantization_config", "compression_config", "hf_quant_config")
PACKED_FORMATS: Final = ("int4", "mxfp4", "nvfp4")  # one stored element holds several parameters
TOLERATED_FRACTION: Final = 0.05  # draft layers that files hold and the engine does not load


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedModel:
    """An entry to keep, and what its reader should know."""

    entry: ModelEntry
    warnings: tuple[str, ...]


def imported_model(
    published: PublishedModel, known: Sequence[ModelEntry], wanted_id: str | None, today: date
) -> ImportedModel:
    """Return the entry of a published model; a model imported again keeps its aliases and other checkpoints.

    Raises:
        EngineError: the config lacks a field, or names a structure without a rule.
        ConflictError: the id belongs to another model.
        UnusableHubAnswerError: the published files do not fit the catalog.
    """
    architecture = parse_architecture(published.config)
    quantization = parse_quantization(published.quantization)
    before = _before(published.hf_id, known, wanted_id)
    try:
        entry = _entry(published, architecture, quantization, before, wanted_id, today)
    except ValidationError as error:
        raise UnusableHubAnswerError(f"the catalog cannot hold {told(error)[0]}") from error
    cautions = cautions_of_quantization(published.config)
    return ImportedModel(entry=entry, warnings=(*cautions, *_warnings(published, architecture, quantization)))


def _before(hf_id: str, known: Sequence[ModelEntry], wanted_id: str | None) -> ModelEntry | None:
    """Return the entry that an import replaces."""
    same = next((each for each in known if (each.hf_id or "").lower() == hf_id.lower()), None)
    entry_id = wanted_id or (same.id if same else _default_id(hf_id))
    before = next((entry for entry in known if entry.id == entry_id), None)
    if before is not None and before is not same:
        detail = f"the id {entry_id!r} belongs to {before.hf_id or before.name!r}; state another id"
        raise ConflictError(detail, "id", "an id that no model has")
    return before


def _default_id(hf_id: str) -> str:
    return hf_id.rsplit("/", 1)[-1].lower()


def _entry(
    published: PublishedModel,
    architecture: Architecture,
    quantization: Quantization,
    before: ModelEntry | None,
    wanted_id: str | None,
    today: date,
) -> ModelEntry:
    hf_id, counts = published.hf_id, published.counts
    source = {"url": published.config_url, "checked_on": today}
    own_format = format_of(architecture, quantization)
    checkpoint = {
        "weight_format": own_format,
        "hf_id": hf_id,
        "is_default": True,
        "quantization_config": dict(published.quantization) if published.quantization else None,
        "kv_cache_dtype": quantization.kv_cache_dtype,
        "weight_bytes": (counts.weight_bytes if counts else None) or None,
        "source": source,
    }
    return ModelEntry.model_validate(
        {
            "id": before.id if before else wanted_id or _default_id(hf_id),
            "name": before.name if before else hf_id,
            "hf_id": hf_id,
            "aliases": before.aliases if before else (),
            "publisher": before.publisher if before else None,
            "config": {name: value for name, value in published.config.items() if name not in QUANTIZATION_FIELDS},
            "num_parameters": (counts.elements if counts and own_format not in PACKED_FORMATS else None) or None,
            "checkpoints": (checkpoint, *_other_checkpoints(before, hf_id)),
            "source": source,
        }
    )


def _other_checkpoints(before: ModelEntry | None, hf_id: str) -> tuple[Checkpoint, ...]:
    kept = before.checkpoints if before else ()
    return tuple(each.model_copy(update={"is_default": False}) for each in kept if each.hf_id.lower() != hf_id.lower())


def _warnings(published: PublishedModel, architecture: Architecture, quantization: Quantization) -> tuple[str, ...]:
    """Return what does not add up: the files against the config's own arithmetic."""
    if published.counts is None:
        return ("the hub shows no safetensors headers here, so the config's parameters were not checked against files",)
    computed, held = num_parameters(architecture), published.counts.elements
    is_packed = format_of(architecture, quantization) in PACKED_FORMATS
    if not is_packed and abs(held - computed) > TOLERATED_FRACTION * computed:
        return (f"the files hold {held} parameters, the config describes {computed}",)
    return ()

"""Reads and writes catalog rows; every write raises the revision by one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlmodel import Session, col, delete, select

from service.catalog.entries import Checkpoint, Figure, GpuEntry, ModelEntry, OfferEntry, Source
from service.catalog.errors import ConflictError
from service.catalog.tables import AliasRow, CheckpointRow, GpuRow, ModelRow, OfferRow, RevisionRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntries:
    """Everything in the catalog at one revision."""

    revision: int
    models: tuple[ModelEntry, ...]
    gpus: tuple[GpuEntry, ...]
    offers: tuple[OfferEntry, ...]


def current_revision(session: Session) -> int:
    """Return the catalog's revision; 0 before the first write."""
    row = session.get(RevisionRow, 1)
    return 0 if row is None else row.revision


def raise_revision(session: Session) -> int:
    """Raise the revision by one and return it; concurrent writers wait for each other."""
    row = session.exec(select(RevisionRow).where(RevisionRow.id == 1).with_for_update()).first()
    if row is None:
        row = RevisionRow(id=1, revision=0)
    row.revision += 1
    session.add(row)
    session.flush()
    return row.revision


def read_catalog(session: Session) -> CatalogEntries:
    """Return the whole catalog."""
    aliases: dict[tuple[str, str], list[str]] = {}
    for row in session.exec(select(AliasRow).order_by(AliasRow.alias)):
        aliases.setdefault((row.kind, row.target_id), []).append(row.alias)
    checkpoints: dict[str, list[CheckpointRow]] = {}
    for checkpoint in session.exec(select(CheckpointRow)):
        checkpoints.setdefault(checkpoint.model_id, []).append(checkpoint)
    return CatalogEntries(
        revision=current_revision(session),
        models=tuple(
            _model_entry(row, aliases.get(("model", row.id), []), checkpoints.get(row.id, []))
            for row in session.exec(select(ModelRow).order_by(ModelRow.id))
        ),
        gpus=tuple(
            _gpu_entry(row, aliases.get(("gpu", row.id), []))
            for row in session.exec(select(GpuRow).order_by(GpuRow.id))
        ),
        offers=tuple(_offer_entry(row) for row in session.exec(select(OfferRow).order_by(OfferRow.id))),
    )


def put_model(session: Session, entry: ModelEntry) -> None:
    """Insert or replace a model with its checkpoints and aliases.

    Raises:
        ConflictError: another model already has one of its names.
    """
    _replace_aliases(session, "model", entry.id, _names(entry.id, entry.hf_id, entry.aliases))
    session.exec(delete(CheckpointRow).where(col(CheckpointRow.model_id) == entry.id))
    session.merge(
        ModelRow(
            id=entry.id,
            name=entry.name,
            hf_id=entry.hf_id,
            publisher=entry.publisher,
            config=entry.config,
            num_parameters=entry.num_parameters,
            source_url=entry.source.url,
            source_checked_on=entry.source.checked_on,
        )
    )
    session.flush()
    for it in entry.checkpoints:
        session.add(
            CheckpointRow(
                model_id=entry.id,
                weight_format=it.weight_format,
                hf_id=it.hf_id,
                is_default=it.is_default,
                quantization_config=it.quantization_config,
                kv_cache_dtype=it.kv_cache_dtype,
                weight_bytes=it.weight_bytes,
                source_url=it.source.url,
                source_checked_on=it.source.checked_on,
            )
        )
    session.flush()


def put_gpu(session: Session, entry: GpuEntry) -> None:
    """Insert or replace a GPU with its aliases.

    Raises:
        ConflictError: another GPU already has one of its names.
    """
    _replace_aliases(session, "gpu", entry.id, _names(entry.id, None, entry.aliases))
    session.merge(
        GpuRow(
            id=entry.id,
            name=entry.name,
            vendor=entry.vendor,
            architecture=entry.architecture,
            compute_capability=entry.compute_capability,
            memory_bytes=int(entry.figures["memory_bytes"].value),
            memory_bandwidth_bytes_per_s=int(entry.figures["memory_bandwidth_bytes_per_s"].value),
            gpus_per_node=entry.gpus_per_node,
            scale_up_domain_gpus=entry.scale_up_domain_gpus,
            scale_up_kind=entry.scale_up_kind,
            figures={name: figure.model_dump(mode="json") for name, figure in entry.figures.items()},
        )
    )
    session.flush()


def put_offer(session: Session, entry: OfferEntry) -> None:
    """Insert or replace an offer.

    Raises:
        ConflictError: the catalog has no such GPU.
    """
    if session.get(GpuRow, entry.gpu) is None:
        raise ConflictError(f"the catalog has no GPU {entry.gpu!r}; add it first")
    session.merge(
        OfferRow(
            id=entry.id,
            provider=entry.provider,
            instance_type=entry.instance_type,
            region=entry.region,
            gpu_id=entry.gpu,
            gpu_count=entry.gpu_count,
            usd_per_hour=entry.usd_per_hour,
            purchase=entry.purchase,
            as_of=entry.as_of,
            source_url=entry.source.url,
            source_checked_on=entry.source.checked_on,
        )
    )
    session.flush()


def delete_model(session: Session, model_id: str) -> bool:
    """Delete a model; return whether there was one."""
    return _delete(session, "model", session.get(ModelRow, model_id), model_id)


def delete_gpu(session: Session, gpu_id: str) -> bool:
    """Delete a GPU and its offers; return whether there was one."""
    return _delete(session, "gpu", session.get(GpuRow, gpu_id), gpu_id)


def delete_offer(session: Session, offer_id: str) -> bool:
    """Delete an offer; return whether there was one."""
    return _delete(session, "offer", session.get(OfferRow, offer_id), offer_id)


def _delete(session: Session, kind: str, row: object | None, target_id: str) -> bool:
    if row is None:
        return False
    session.exec(delete(AliasRow).where(col(AliasRow.kind) == kind, col(AliasRow.target_id) == target_id))
    session.delete(row)
    session.flush()
    return True


def _names(own_id: str, hf_id: str | None, aliases: Iterable[str]) -> Mapping[str, str]:
    """Return every further name in lower case, with the spelling it was given in."""
    spelled = [*([hf_id] if hf_id else []), *aliases]
    return {name.lower(): name for name in spelled if name.lower() != own_id}


def _replace_aliases(session: Session, kind: str, target_id: str, names: Mapping[str, str]) -> None:
    session.exec(delete(AliasRow).where(col(AliasRow.kind) == kind, col(AliasRow.target_id) == target_id))
    taken = session.exec(
        select(AliasRow).where(AliasRow.kind == kind, col(AliasRow.alias).in_([*names, target_id]))
    ).first()
    if taken is not None:
        raise ConflictError(f"the name {taken.alias!r} already belongs to {taken.target_id!r}")
    table = ModelRow if kind == "model" else GpuRow
    clash = session.exec(select(table.id).where(col(table.id).in_(list(names)))).first()
    if clash is not None:
        raise ConflictError(f"the alias {clash!r} is already the id of another {kind}")
    for name in names:
        session.add(AliasRow(kind=kind, alias=name, target_id=target_id))
    session.flush()


def _model_entry(row: ModelRow, aliases: list[str], checkpoints: list[CheckpointRow]) -> ModelEntry:
    hub = (row.hf_id or "").lower()
    ordered = sorted(checkpoints, key=lambda it: (not it.is_default, it.weight_format, it.hf_id))
    return ModelEntry(
        id=row.id,
        name=row.name,
        hf_id=row.hf_id,
        aliases=tuple(alias for alias in aliases if alias != hub),
        publisher=row.publisher,
        config=row.config,
        num_parameters=row.num_parameters,
        checkpoints=tuple(
            Checkpoint.model_validate(
                {
                    "weight_format": it.weight_format,
                    "hf_id": it.hf_id,
                    "is_default": it.is_default,
                    "quantization_config": it.quantization_config,
                    "kv_cache_dtype": it.kv_cache_dtype,
                    "weight_bytes": it.weight_bytes,
                    "source": {"url": it.source_url, "checked_on": it.source_checked_on},
                }
            )
            for it in ordered
        ),
        source=Source(url=row.source_url, checked_on=row.source_checked_on),
    )


def _gpu_entry(row: GpuRow, aliases: list[str]) -> GpuEntry:
    return GpuEntry.model_validate(
        {
            "id": row.id,
            "name": row.name,
            "vendor": row.vendor,
            "architecture": row.architecture,
            "compute_capability": row.compute_capability,
            "aliases": tuple(aliases),
            "gpus_per_node": row.gpus_per_node,
            "scale_up_domain_gpus": row.scale_up_domain_gpus,
            "scale_up_kind": row.scale_up_kind,
            "figures": {name: Figure.model_validate(figure) for name, figure in row.figures.items()},
        }
    )


def _offer_entry(row: OfferRow) -> OfferEntry:
    return OfferEntry(
        id=row.id,
        provider=row.provider,
        instance_type=row.instance_type,
        region=row.region,
        gpu=row.gpu_id,
        gpu_count=row.gpu_count,
        usd_per_hour=row.usd_per_hour,
        purchase=row.purchase,
        as_of=row.as_of,
        source=Source(url=row.source_url, checked_on=row.source_checked_on),
    )

"""Writes catalog rows, one transaction after the other; every write raises the revision by one."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import func
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col, delete, select

from service.catalog.entries import Checkpoint, GpuEntry, ModelEntry, OfferEntry
from service.catalog.errors import ConflictError, InvalidCatalogError, NotInCatalogError
from service.catalog.tables import AliasRow, CheckpointRow, GpuRow, ModelRow, OfferRow, RevisionRow

OF_NOBODY: Final = "what no other entry has"
Version = tuple[str | None, int]  # which catalog, and how many writes it has seen


def current_version(session: Session) -> Version:
    """Return the catalog's lineage and revision; revision 0 before the first write."""
    row = session.get(RevisionRow, 1)
    return (None, 0) if row is None else (row.lineage, _checked(row.revision))


def lock_revision(session: Session) -> RevisionRow:
    """Return the row that writers hold one after the other, from before they look at anything until they commit."""
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    first = insert(RevisionRow).values(id=1, revision=0, lineage=str(uuid4()))
    lineage = func.coalesce(col(RevisionRow.lineage), first.excluded.lineage)
    session.execute(first.on_conflict_do_update(index_elements=["id"], set_={"lineage": lineage}))
    row = session.get_one(RevisionRow, 1, populate_existing=True)
    _checked(row.revision)
    return row


def raise_revision(session: Session) -> int:
    """Raise the revision by one and return it; concurrent writers wait for each other."""
    row = lock_revision(session)
    row.revision += 1
    session.flush()
    return row.revision


def _checked(revision: object) -> int:
    """Return a revision that is a number; SQLite keeps whatever somebody wrote by hand."""
    if not isinstance(revision, int):
        raise InvalidCatalogError("the catalog's revision in the database is no whole number")
    return revision


def put_model(session: Session, entry: ModelEntry) -> None:
    """Insert or replace a model with its checkpoints and aliases.

    Raises:
        ConflictError: another model already has one of its names, or checkpoints.
    """
    _check_shown_name(session, entry)
    _replace_aliases(session, "model", entry.id, _names(entry), entry.hf_id)
    _check_checkpoints(session, entry)
    session.merge(_model_row(entry))
    session.flush()


def put_gpu(session: Session, entry: GpuEntry) -> None:
    """Insert or replace a GPU with its aliases.

    Raises:
        ConflictError: another GPU already has one of its names.
    """
    _check_gpu_name(session, entry)
    _replace_aliases(session, "gpu", entry.id, _names(entry))
    session.merge(_gpu_row(entry))
    session.flush()


def put_offer(session: Session, entry: OfferEntry) -> None:
    """Insert or replace an offer.

    Raises:
        ConflictError: the catalog has no such GPU.
    """
    if session.get(GpuRow, entry.gpu) is None:
        raise _no_gpu(session, entry.gpu)
    session.merge(_offer_row(entry))
    session.flush()


def _no_gpu(session: Session, name: str) -> ConflictError:
    """Return that an offer is of no GPU by its id, with the one that has this name where there is one."""
    named = (AliasRow.kind == "gpu", col(AliasRow.alias) == name.lower())
    known = session.exec(select(AliasRow.target_id).where(*named)).first()
    if known is not None:
        return ConflictError(f"{name!r} is a name of {known!r}, and an offer states the id", "gpu", known)
    return ConflictError(f"the catalog has no GPU {name!r}; add it first", "gpu", "the id of one of /catalog/gpus")


def fill(session: Session, entries: Iterable[ModelEntry | GpuEntry | OfferEntry]) -> None:
    """Insert entries of a kind that the catalog has none of: no other can have their names, so nothing is looked up."""
    for entry in entries:
        if isinstance(entry, ModelEntry):
            session.add_all([_model_row(entry), *_alias_rows("model", entry.id, _names(entry))])
        elif isinstance(entry, GpuEntry):
            session.add_all([_gpu_row(entry), *_alias_rows("gpu", entry.id, _names(entry))])
        else:
            session.add(_offer_row(entry))
    session.flush()


def _model_row(entry: ModelEntry) -> ModelRow:
    checkpoints = [
        CheckpointRow(model_id=entry.id, position=position, **_columns(checkpoint))
        for position, checkpoint in enumerate(entry.checkpoints)
    ]
    return ModelRow(**_columns(entry, "aliases", "checkpoints"), checkpoint_rows=checkpoints)


def _gpu_row(entry: GpuEntry) -> GpuRow:
    return GpuRow(
        **entry.model_dump(exclude={"aliases", "figures"}),
        memory_bytes=int(entry.figures["memory_bytes"].value),
        memory_bandwidth_bytes_per_s=int(entry.figures["memory_bandwidth_bytes_per_s"].value),
        figures={name: figure.model_dump(mode="json") for name, figure in entry.figures.items()},
    )


def _offer_row(entry: OfferEntry) -> OfferRow:
    return OfferRow(**_columns(entry, "gpu"), gpu_id=entry.gpu)


def _columns(entry: ModelEntry | Checkpoint | OfferEntry, *others: str) -> dict[str, Any]:
    """Return an entry's fields as columns of its row, without those that are kept elsewhere."""
    columns = entry.model_dump(exclude={*others, "source"})
    return {**columns, "source_url": entry.source.url, "source_checked_on": entry.source.checked_on}


def delete_model(session: Session, model_id: str) -> None:
    """Delete a model with its checkpoints.

    Raises:
        NotInCatalogError: there is none.
    """
    _delete(session, "model", session.get(ModelRow, model_id), model_id)


def delete_gpu(session: Session, gpu_id: str) -> None:
    """Delete a GPU and its offers.

    Raises:
        NotInCatalogError: there is none.
    """
    _delete(session, "gpu", session.get(GpuRow, gpu_id), gpu_id)


def delete_offer(session: Session, offer_id: str) -> None:
    """Delete an offer.

    Raises:
        NotInCatalogError: there is none.
    """
    _delete(session, "offer", session.get(OfferRow, offer_id), offer_id)


def _check_shown_name(session: Session, entry: ModelEntry) -> None:
    """Refuse the name that another model is shown under: nobody could tell them apart in a list.

    Raises:
        ConflictError: another has it.
    """
    same = func.lower(col(ModelRow.name)) == entry.name.lower()
    taken = session.exec(select(ModelRow.id).where(same, col(ModelRow.id) != entry.id)).first()
    if taken is not None:
        detail = f"{taken!r} is already shown under the name {entry.name!r}; state another name"
        raise ConflictError(detail, "name", "a name that no other model is shown under")


def _check_gpu_name(session: Session, entry: GpuEntry) -> None:
    """Refuse what another GPU is called: GPUs are asked for by the name they are shown under, too.

    Raises:
        ConflictError: another is called as this one is shown, or shown as this one is called.
    """
    shown, called = entry.name.lower(), {entry.id, *_names(entry)}
    of_others = (AliasRow.kind == "gpu", col(AliasRow.alias) == shown, col(AliasRow.target_id) != entry.id)
    taken = session.exec(select(AliasRow.target_id).where(*of_others)).first()
    alike = func.lower(col(GpuRow.name)).in_({shown, *called}) | (col(GpuRow.id) == shown)
    other = session.exec(select(GpuRow).where(alike, col(GpuRow.id) != entry.id)).first()
    if taken is None and other is None:
        return
    owner = taken if other is None else other.id
    shown_as = None if other is None else other.name.lower()
    field = "id" if shown_as == entry.id else "aliases" if shown_as in called else "name"
    raise ConflictError(f"{owner!r} is already called what this GPU's {field} says", field, OF_NOBODY)


def _check_checkpoints(session: Session, entry: ModelEntry) -> None:
    """Refuse a repository that another model has: a question that names it would mean either.

    Raises:
        ConflictError: another has one of these, as a checkpoint or a name.
    """
    own = {each.hf_id.lower() for each in entry.checkpoints}
    held = func.lower(col(CheckpointRow.hf_id)).in_({*own, *_names(entry)})
    taken = session.exec(select(CheckpointRow).where(held, col(CheckpointRow.model_id) != entry.id)).first()
    if taken is not None:
        detail = f"the checkpoint {taken.hf_id!r} already belongs to {taken.model_id!r}"
        raise ConflictError(detail, "checkpoints", OF_NOBODY)
    of_others = (AliasRow.kind == "model", col(AliasRow.alias).in_(own), col(AliasRow.target_id) != entry.id)
    named = session.exec(select(AliasRow).where(*of_others)).first()
    if named is not None:
        detail = f"the checkpoint {named.alias!r} is a name of {named.target_id!r}"
        raise ConflictError(detail, "checkpoints", OF_NOBODY)


def _delete(session: Session, kind: str, row: object | None, entry_id: str) -> None:
    if row is None:
        raise NotInCatalogError(kind, entry_id, ())
    session.exec(delete(AliasRow).where(col(AliasRow.kind) == kind, col(AliasRow.target_id) == entry_id))
    session.delete(row)
    session.flush()


def _names(entry: ModelEntry | GpuEntry) -> Mapping[str, str]:
    """Return every further name in lower case, with the spelling it was given in."""
    hf_id = entry.hf_id if isinstance(entry, ModelEntry) else None
    spelled = [*([hf_id] if hf_id else []), *entry.aliases]
    return {name.lower(): name for name in spelled if name.lower() != entry.id}


def _alias_rows(kind: str, target_id: str, names: Iterable[str]) -> list[AliasRow]:
    return [AliasRow(kind=kind, alias=name, target_id=target_id) for name in names]


def _replace_aliases(
    session: Session, kind: str, target_id: str, names: Mapping[str, str], hf_id: str | None = None
) -> None:
    """Give a model or GPU these further names; no cascade could tell to whom a name belonged before.

    Raises:
        ConflictError: one is another's; nothing was changed.
    """
    own = col(AliasRow.target_id) == target_id
    is_taken = col(AliasRow.alias).in_([*names, target_id])
    taken = session.exec(select(AliasRow).where(AliasRow.kind == kind, is_taken, ~own)).first()
    if taken is not None:
        fields = {target_id: "id", (hf_id or target_id).lower(): "id" if hf_id is None else "hf_id"}
        field = fields.get(taken.alias, "aliases")
        raise ConflictError(f"the name {taken.alias!r} already belongs to {taken.target_id!r}", field, OF_NOBODY)
    table = ModelRow if kind == "model" else GpuRow
    clash = session.exec(select(table.id).where(col(table.id).in_(list(names)))).first()
    if clash is not None:
        raise ConflictError(f"the alias {clash!r} is already the id of another {kind}", "aliases", OF_NOBODY)
    session.exec(delete(AliasRow).where(col(AliasRow.kind) == kind, own))
    session.add_all(_alias_rows(kind, target_id, names))
    session.flush()

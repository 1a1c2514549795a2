"""Loads the seed files into the database: a command, never run at start-up."""

from sqlmodel import Session

from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry
from service.catalog.seed_files import seed_entries
from service.catalog.store import put_gpu, put_model, put_offer, raise_revision, read_catalog


def seed_catalog(session: Session) -> int:
    """Insert what is missing and replace what differs; return how many entries changed.

    Entries that are not in the seed files stay. A second run changes nothing and keeps the revision.
    """
    models, gpus, offers = seed_entries()
    now = read_catalog(session)
    known_models = {it.id: it for it in now.models}
    known_gpus = {it.id: it for it in now.gpus}
    known_offers = {it.id: it for it in now.offers}
    changed = 0
    for gpu in gpus:
        if _shown(gpu) != _shown(known_gpus.get(gpu.id)):
            put_gpu(session, gpu)
            changed += 1
    for model in models:
        if _shown(model) != _shown(known_models.get(model.id)):
            put_model(session, model)
            changed += 1
    for offer in offers:
        if offer != known_offers.get(offer.id):
            put_offer(session, offer)
            changed += 1
    if changed:
        raise_revision(session)
    return changed


def _shown(entry: ModelEntry | GpuEntry | OfferEntry | None) -> object:
    """Return an entry as it compares: aliases and checkpoints in any order, names in any case."""
    if entry is None:
        return None
    shown = entry.model_dump(mode="json")
    if isinstance(entry, ModelEntry | GpuEntry):
        own = {entry.id, (entry.hf_id or "").lower()} if isinstance(entry, ModelEntry) else {entry.id}
        shown["aliases"] = sorted({alias.lower() for alias in entry.aliases} - own)
    if isinstance(entry, ModelEntry):
        shown["checkpoints"] = sorted(shown["checkpoints"], key=lambda it: (it["weight_format"], it["hf_id"]))
    return shown

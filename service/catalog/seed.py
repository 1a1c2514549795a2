"""Loads the seed files into the database: a command, never run at start-up. What somebody else wrote is left alone."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, TypeVar

from sqlmodel import Session, select

from service.catalog.changes import Written, note_written
from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry
from service.catalog.errors import ConflictError
from service.catalog.reading import read_catalog
from service.catalog.seed_files import seed_entries
from service.catalog.store import fill, lock_revision, put_gpu, put_model, put_offer, raise_revision
from service.catalog.tables import SeededRow

Kind = Literal["model", "gpu", "offer"]
AnyEntry = ModelEntry | GpuEntry | OfferEntry
Seed = TypeVar("Seed", ModelEntry, GpuEntry, OfferEntry)


@dataclass(slots=True, kw_only=True)
class Seeded:
    """What seeding did."""

    changed: int = 0
    left_alone: list[str] = field(default_factory=list)  # edited, deleted or claimed by somebody else

    def text(self) -> str:
        """Return it in a line or two."""
        lines = [f"seeded: {self.changed} entries changed"]
        if self.left_alone:
            lines.append(
                f"left as they were written, not as seeded ({len(self.left_alone)}): {', '.join(self.left_alone)}; "
                "--force takes the seed files' own"
            )
        return "\n".join(lines)


def seed_catalog(session: Session, *, force: bool = False, who: str = "seed files") -> Seeded:
    """Insert what is missing and replace what differs, in so far as nobody else wrote it since it was last seeded.

    Entries that are not in the seed files stay. A second run changes nothing and keeps the revision.

    Args:
        session: a transaction of its own.
        force: replace what somebody else wrote, and bring back what somebody deleted.
        who: seeds, as the changes of the catalog name it.
    """
    models, gpus, offers = seed_entries()
    lock_revision(session)
    now = read_catalog(session).entries
    seeding = _Seeding(session, force=force)
    seeding.take("gpu", gpus, now.gpus, put_gpu)
    seeding.take("model", models, now.models, put_model)
    seeding.take("offer", offers, now.offers, put_offer)
    if seeding.done.changed:
        raise_revision(session)
        note_written(session, who, seeding.written)
    return seeding.done


class _Seeding:
    """One run over the seed files."""

    def __init__(self, session: Session, *, force: bool) -> None:
        self.done = Seeded()
        self.written: list[Written] = []
        self._session = session
        self._force = force
        self._seeded = {(row.kind, row.entry_id): row for row in session.exec(select(SeededRow))}

    def take(
        self, kind: Kind, seeds: Iterable[Seed], now: Iterable[Seed], put: Callable[[Session, Seed], None]
    ) -> None:
        """Put the seeds of one kind. What fills an empty catalog changes nothing that anybody had written."""
        before = {entry.id: entry for entry in now}
        if not before and not any(seeded_kind == kind for seeded_kind, _ in self._seeded):
            self._fill(kind, list(seeds))
            return
        present = {entry_id: content_hash(entry) for entry_id, entry in before.items()}
        for seed in seeds:
            wanted = content_hash(seed)
            if present.get(seed.id) != wanted:
                if not (self._force or self._is_ours(kind, seed.id, present.get(seed.id))) or not self._put(put, seed):
                    self.done.left_alone.append(f"{kind} {seed.id}")
                    continue
                self.done.changed += 1
                self.written.append(Written(kind=kind, entry_id=seed.id, before=before.get(seed.id), after=seed))
            self._note(kind, seed.id, wanted)
        self._session.flush()

    def _fill(self, kind: Kind, seeds: Sequence[Seed]) -> None:
        fill(self._session, seeds)
        self.done.changed += len(seeds)
        for seed in seeds:
            self._note(kind, seed.id, content_hash(seed))
        self._session.flush()

    def _note(self, kind: Kind, entry_id: str, wanted: str) -> None:
        """Remember what was seeded, or found to be as it would be."""
        row = self._seeded.get((kind, entry_id))
        if row is None:
            self._session.add(SeededRow(kind=kind, entry_id=entry_id, content_hash=wanted))
        else:
            row.content_hash = wanted

    def _is_ours(self, kind: Kind, entry_id: str, present: str | None) -> bool:
        """Return whether an entry is as seeding left it: absent and never seeded, or unchanged since."""
        row = self._seeded.get((kind, entry_id))
        return present == (None if row is None else row.content_hash)

    def _put(self, put: Callable[[Session, Seed], None], seed: Seed) -> bool:
        """Put an entry, unless another one has its name or its GPU was deleted."""
        try:
            put(self._session, seed)
        except ConflictError:  # raised before anything is written
            return False
        return True


def content_hash(entry: AnyEntry) -> str:
    """Return a hash of an entry as it compares: aliases in any order, checkpoints by format, names in any case.

    A field left at its default does not count, so that one added later makes no entry another.
    """
    shown = entry.model_dump(mode="json", exclude_defaults=True)
    if isinstance(entry, ModelEntry | GpuEntry):
        own = {entry.id, (entry.hf_id or "").lower()} if isinstance(entry, ModelEntry) else {entry.id}
        shown["aliases"] = sorted({alias.lower() for alias in entry.aliases} - own)
    if isinstance(entry, ModelEntry):
        shown["checkpoints"] = sorted(shown["checkpoints"], key=lambda checkpoint: checkpoint["weight_format"])
    return sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()

"""Takes a price list into the catalog: all of it in one transaction, or nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlmodel import Session

from service.catalog.changes import Written, note_written
from service.catalog.entries import OfferEntry
from service.catalog.reading import read_catalog
from service.catalog.store import lock_revision, put_offer, raise_revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What a price list would change."""

    added: tuple[OfferEntry, ...]
    changed: tuple[tuple[OfferEntry, OfferEntry], ...]  # as it is, as it would be
    unchanged: int

    def lines(self) -> tuple[str, ...]:
        """Return a line for each difference, and the sums."""
        added = (f"+ {offer.id}: {offer.usd_per_hour:g} USD/h as of {offer.as_of}" for offer in self.added)
        changed = (
            f"~ {after.id}: {before.usd_per_hour:g} -> {after.usd_per_hour:g} USD/h, "
            f"as of {before.as_of} -> {after.as_of}"
            for before, after in self.changed
        )
        sums = f"{len(self.added)} added, {len(self.changed)} changed, {self.unchanged} unchanged"
        return (*added, *changed, sums)


def differences(present: Mapping[str, OfferEntry], offers: Iterable[OfferEntry]) -> Differences:
    """Return what offers would change; one that differs only in the day its source was read is the same."""
    added, changed, unchanged = [], [], 0
    for offer in offers:
        before = present.get(offer.id)
        if before is None:
            added.append(offer)
        elif _content(before) == _content(offer):
            unchanged += 1
        else:
            changed.append((before, offer))
    return Differences(added=tuple(added), changed=tuple(changed), unchanged=unchanged)


def _content(offer: OfferEntry) -> dict[str, object]:
    return offer.model_dump(exclude={"source": {"checked_on"}})


def take_offers(session: Session, offers: Iterable[OfferEntry], who: str = "price list") -> Differences:
    """Put offers into the catalog, in a transaction of the caller's; nothing is written where nothing differs.

    Args:
        session: the transaction.
        offers: what is asked.
        who: takes them, as the changes of the catalog name it.

    Raises:
        ConflictError: the catalog lost one of the GPUs meanwhile.
    """
    lock_revision(session)
    present = {offer.id: offer for offer in read_catalog(session).entries.offers}
    found = differences(present, offers)
    changes = (*((None, offer) for offer in found.added), *found.changed)
    for _, offer in changes:
        put_offer(session, offer)
    if changes:
        raise_revision(session)
        written = (Written(kind="offer", entry_id=offer.id, before=was, after=offer) for was, offer in changes)
        note_written(session, who, written)
    return found

"""The snapshot survives a dead, slow or poisoned database."""

from datetime import date
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from sqlmodel import Session

from service.catalog.database import make_engine, migrate
from service.catalog.entries import OfferEntry, Source
from service.catalog.errors import ConflictError, InvalidCatalogError, NotInCatalogError
from service.catalog.holder import CatalogHolder
from service.catalog.seed import seed_catalog
from service.catalog.snapshot import Snapshot, build_snapshot
from service.catalog.store import CatalogEntries, put_model, put_offer, raise_revision, read_catalog


def seeded(engine: Engine) -> None:
    with Session(engine) as session, session.begin():
        seed_catalog(session)


def offer(**changes: object) -> OfferEntry:
    values: dict[str, object] = {
        "id": "made-up-offer",
        "provider": "aws",
        "instance_type": "p5.48xlarge",
        "region": "us-east-1",
        "gpu": "h100-sxm-80gb",
        "gpu_count": 8,
        "usd_per_hour": 50.0,
        "as_of": date(2026, 11, 1),
        "source": Source(url="https://example.com/prices", checked_on=date(2026, 11, 1)),
    }
    return OfferEntry.model_validate({**values, **changes})


def test_a_write_is_seen_after_a_refresh(database: Engine, tmp_path: Path) -> None:
    seeded(database)
    holder = CatalogHolder(database, tmp_path / "snapshot.json", 3600)
    before = holder.snapshot

    with Session(database) as session, session.begin():
        put_offer(session, offer())
        raise_revision(session)
    swapped = holder.refresh()

    assert swapped
    assert holder.snapshot.revision == before.revision + 1
    assert "made-up-offer" in holder.snapshot.offer_entries
    assert "made-up-offer" not in before.offer_entries


def test_answers_survive_a_dead_database(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite3"
    engine = make_engine(f"sqlite:///{path}")
    migrate(engine)
    seeded(engine)
    revision = CatalogHolder(engine, tmp_path / "snapshot.json", 3600).snapshot.revision
    engine.dispose()
    path.write_bytes(b"not a database at all")

    holder = CatalogHolder(make_engine(f"sqlite:///{path}"), tmp_path / "snapshot.json", 3600)

    assert holder.snapshot.revision == revision
    assert holder.refresh() is False
    assert holder.database_is_up is False
    assert holder.snapshot.gpu("h100").id == "h100-sxm-80gb"


def test_without_database_and_disk_the_seed_files_answer(tmp_path: Path) -> None:
    engine = make_engine("postgresql+psycopg://nobody@127.0.0.1:1/none")

    holder = CatalogHolder(engine, tmp_path / "none.json", 3600)

    assert holder.snapshot.revision == 0
    assert holder.snapshot.gpu("h100").id == "h100-sxm-80gb"


def test_a_poisoned_catalog_is_refused_and_the_old_one_stays(database: Engine, tmp_path: Path) -> None:
    seeded(database)
    holder = CatalogHolder(database, tmp_path / "snapshot.json", 3600)
    before = holder.snapshot

    with database.begin() as connection:
        connection.execute(text("UPDATE gpus SET vendor = 'nobody' WHERE id = 'h100-sxm-80gb'"))
        connection.execute(text("UPDATE catalog_revision SET revision = revision + 1"))
    swapped = holder.refresh()

    assert swapped is False
    assert holder.snapshot is before


def test_two_entries_may_not_share_a_name(catalog: Snapshot) -> None:
    first, second = catalog.entries.gpus[:2]
    twin = second.model_copy(update={"aliases": (first.id,)})

    with pytest.raises(InvalidCatalogError, match=first.id):
        build_snapshot(CatalogEntries(revision=1, models=(), gpus=(first, twin), offers=()))


def test_an_alias_of_another_model_is_a_conflict(database: Engine) -> None:
    seeded(database)
    with Session(database) as session:
        first, second = read_catalog(session).models[:2]
        with pytest.raises(ConflictError):
            put_model(session, second.model_copy(update={"aliases": (first.id,)}))


def test_an_offer_needs_its_gpu(database: Engine) -> None:
    with Session(database) as session, pytest.raises(ConflictError, match="h100"):
        put_offer(session, offer())


@pytest.mark.parametrize(
    ("typed", "meant"), [("h10", "h100-sxm-80gb"), ("hh100", "h100-sxm-80gb"), ("a10", None), ("H100", None)]
)
def test_misspelt_names_get_suggestions(catalog: Snapshot, typed: str, meant: str | None) -> None:
    if meant is None:
        assert catalog.gpu(typed).id
        return
    with pytest.raises(NotInCatalogError) as refusal:
        catalog.gpu(typed)
    assert meant in refusal.value.suggestions

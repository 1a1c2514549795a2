"""What did not change is not read again, and a row that makes no sense is named."""

import pytest
from sqlalchemy import Engine, text
from sqlmodel import Session

from service.catalog.catalog_entries import CatalogEntries
from service.catalog.changes import gpu_deletion
from service.catalog.database import reading, writing
from service.catalog.errors import InvalidCatalogError
from service.catalog.reading import Reading, read_catalog
from service.catalog.store import raise_revision
from tests.catalog.samples import fill, gpu, model, offer


@pytest.fixture
def stored(database: Engine) -> Engine:
    fill(database)
    return database


def read(engine: Engine, before: Reading | None = None) -> Reading:
    with reading(engine) as session:
        return read_catalog(session, before)


def by_hand(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def new_ids(after: Reading, before: Reading) -> set[str]:
    """Return the ids of entries that were read again."""

    def all_of(entries: CatalogEntries) -> dict[int, str]:
        return {id(it): it.id for kind in (entries.models, entries.gpus) for it in kind} | {
            id(it): it.id for it in entries.offers
        }

    was = all_of(before.entries)
    return {name for identity, name in all_of(after.entries).items() if identity not in was}


def test_entries_are_read_as_they_were_written(stored: Engine) -> None:
    entries = read(stored).entries

    assert model() in entries.models
    assert gpu() in entries.gpus
    assert offer() in entries.offers
    assert [it.id for it in entries.models] == sorted(it.id for it in entries.models)


def test_deletions_are_remembered_until_the_entry_is_there_again(stored: Engine) -> None:
    before = read(stored)
    with writing(stored) as session, session.begin():
        gpu_deletion("made-up-100gb", "test")(session)
        raise_revision(session)
    after = read(stored, before)
    (gone,) = after.entries.taken_out

    assert (gone.kind, gone.id) == ("gpu", "made-up-100gb")
    assert {"Made Up 100GB", "madeup"} < set(gone.names)
    assert read(stored).entries.taken_out == read(stored, after).entries.taken_out == (gone,)
    fill(stored)
    assert read(stored, after).entries.taken_out == ()


def test_an_unchanged_catalog_is_made_of_the_same_objects(stored: Engine) -> None:
    before = read(stored)

    assert new_ids(read(stored, before), before) == set()


@pytest.mark.parametrize(
    ("statement", "again"),
    [
        ("UPDATE offers SET usd_per_hour = usd_per_hour + 1e-12 WHERE id = 'made-up-offer'", {"made-up-offer"}),
        ("UPDATE offers SET as_of = '2026-11-02' WHERE id = 'made-up-offer'", {"made-up-offer"}),
        ("UPDATE gpus SET gpus_per_node = 4 WHERE id = 'made-up-100gb'", {"made-up-100gb"}),
        ("UPDATE models SET config = '{\"hidden_size\": 2}' WHERE id = 'made-up-8b'", {"made-up-8b"}),
        ("UPDATE checkpoints SET weight_bytes = 5 WHERE model_id = 'made-up-8b'", {"made-up-8b"}),
        ("UPDATE aliases SET alias = 'up-8' WHERE alias = 'up8'", {"made-up-8b"}),
        ("UPDATE aliases SET alias = 'made-it' WHERE alias = 'madeup'", {"made-up-100gb"}),
        ("DELETE FROM aliases WHERE alias = 'madeup'", {"made-up-100gb"}),
        ("DELETE FROM offers WHERE id = 'made-up-offer'", set()),
        ("INSERT INTO aliases VALUES ('gpu', 'of-nobody', 'not-there')", set()),
    ],
)
def test_what_changed_is_read_again_whoever_changed_it(stored: Engine, statement: str, again: set[str]) -> None:
    before = read(stored)

    by_hand(stored, statement)
    after = read(stored, before)

    assert new_ids(after, before) == again
    assert after.entries == read(stored).entries


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE gpus SET vendor = 'nobody' WHERE id = 'other-gpu'", "gpu 'other-gpu'"),
        ("UPDATE gpus SET figures = 'null' WHERE id = 'other-gpu'", "gpu 'other-gpu'"),
        ("UPDATE gpus SET figures = '[]' WHERE id = 'other-gpu'", "gpu 'other-gpu'"),
        ("UPDATE offers SET usd_per_hour = 5e-300 WHERE id = 'made-up-offer'", "offer 'made-up-offer'"),
        ("UPDATE checkpoints SET is_default = (1 = 0) WHERE model_id = 'other-model'", "model 'other-model'"),
        ("UPDATE checkpoints SET weight_format = 'fp7' WHERE model_id = 'other-model'", "model 'other-model'"),
        ("UPDATE models SET config = '[]' WHERE id = 'other-model'", "model 'other-model'"),
        ("UPDATE models SET source_url = 'nowhere' WHERE id = 'other-model'", "model 'other-model'"),
    ],
)
def test_a_row_that_makes_no_sense_is_named(stored: Engine, statement: str, words: str) -> None:
    before = read(stored)
    by_hand(stored, statement)

    for known in (before, None):  # on the way, and at a start
        with pytest.raises(InvalidCatalogError, match=words):
            read(stored, known)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE offers SET as_of = 'yesterday' WHERE id = 'made-up-offer'", "offer 'made-up-offer'"),
        ("UPDATE offers SET as_of = '' WHERE id = 'made-up-offer'", "offer 'made-up-offer'"),
        ("UPDATE offers SET usd_per_hour = 'dear' WHERE id = 'made-up-offer'", "offer 'made-up-offer'"),
        ("UPDATE offers SET usd_per_hour = 9e999 WHERE id = 'made-up-offer'", "offer 'made-up-offer'"),
        ("UPDATE gpus SET figures = 'not JSON' WHERE id = 'other-gpu'", "gpu 'other-gpu'"),
        ("UPDATE models SET config = '{' WHERE id = 'other-model'", "model 'other-model'"),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_what_only_sqlite_can_hold_is_named_too(stored: Engine, statement: str, words: str) -> None:
    before = read(stored)
    by_hand(stored, statement)

    for known in (before, None):
        with pytest.raises(InvalidCatalogError, match=words):
            read(stored, known)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_reading_sees_one_state_while_somebody_writes(stored: Engine) -> None:
    """A SQLite that is being read is not written."""
    with reading(stored) as session:
        before = read_catalog(session)
        by_hand(stored, "DELETE FROM offers WHERE id = 'made-up-offer'")

        assert read_catalog(session).entries == before.entries
    assert offer() not in read(stored).entries.offers


def test_a_plain_session_reads_the_catalog_as_well(stored: Engine) -> None:
    with Session(stored) as session:
        assert gpu() in read_catalog(session).entries.gpus

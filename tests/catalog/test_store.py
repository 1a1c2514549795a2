"""Rows are put and deleted whole, by one writer after the other."""

import threading

import pytest
from sqlalchemy import Engine, text
from sqlmodel import col, select

from service.catalog.database import reading, writing
from service.catalog.errors import ConflictError, InvalidCatalogError, NotInCatalogError
from service.catalog.reading import read_catalog
from service.catalog.store import (
    current_version,
    delete_gpu,
    delete_model,
    delete_offer,
    lock_revision,
    put_gpu,
    put_model,
    put_offer,
    raise_revision,
)
from service.catalog.tables import AliasRow, CheckpointRow, OfferRow
from tests.catalog.samples import MODEL, SOURCE, fill, gpu, model, offer, published_as


@pytest.fixture
def stored(database: Engine) -> Engine:
    fill(database)
    return database


def test_a_replaced_model_keeps_none_of_its_checkpoints_and_names(stored: Engine) -> None:
    own = MODEL["checkpoints"][0]
    richer = model(aliases=["a", "b"], checkpoints=[own, {**own, "hf_id": "made/Half", "is_default": False}])
    other = model(aliases=["B"], checkpoints=[{**own, "weight_format": "fp8", "source": SOURCE}])

    for entry in (richer, other):
        with writing(stored) as session, session.begin():
            put_model(session, entry)
        with reading(stored) as session:
            [read] = [it for it in read_catalog(session).entries.models if it.id == entry.id]
            assert read.checkpoints == entry.checkpoints
            assert read.aliases == tuple(alias.lower() for alias in entry.aliases)


def test_a_deleted_entry_leaves_no_row_behind(stored: Engine) -> None:
    with writing(stored) as session, session.begin():
        delete_model(session, "made-up-8b")
        delete_gpu(session, "made-up-100gb")

    with reading(stored) as session:
        assert {it.model_id for it in session.exec(select(CheckpointRow))} == {"other-model"}
        assert {it.target_id for it in session.exec(select(AliasRow))} == {"other-model"}
        assert {it.id for it in session.exec(select(OfferRow))} == {"other-offer"}


@pytest.mark.parametrize("delete", [delete_model, delete_gpu, delete_offer])
def test_what_is_not_there_cannot_be_deleted(stored: Engine, delete: object) -> None:
    assert callable(delete)
    with writing(stored) as session, pytest.raises(NotInCatalogError, match="nobody"):
        delete(session, "nobody")


@pytest.mark.parametrize("alias", ["made-up-8b", "UP8", "Made/Up-8B"])
def test_a_name_of_another_model_is_a_conflict_that_changes_nothing(stored: Engine, alias: str) -> None:
    with writing(stored) as session:
        before = read_catalog(session).entries
        with pytest.raises(ConflictError):
            put_model(session, model(id="other-model", name="Other", aliases=[alias], **published_as("made/Other")))
        assert read_catalog(session).entries == before


def test_a_gpu_may_have_the_name_of_a_model(stored: Engine) -> None:
    with writing(stored) as session, session.begin():
        put_gpu(session, gpu(aliases=["up8"]))

    with reading(stored) as session:
        assert len(session.exec(select(AliasRow).where(col(AliasRow.alias) == "up8")).all()) == 2


def test_an_offer_needs_its_gpu(stored: Engine) -> None:
    with writing(stored) as session, pytest.raises(ConflictError, match="no-such-gpu"):
        put_offer(session, offer(gpu="no-such-gpu"))


def test_the_revision_only_rises(database: Engine) -> None:
    with writing(database) as session, session.begin():
        revisions = [raise_revision(session) for _ in range(3)]

    assert revisions == [1, 2, 3]


def test_a_catalog_has_a_lineage_that_stays(database: Engine) -> None:
    versions = []
    for _ in range(2):
        with writing(database) as session, session.begin():
            raise_revision(session)
        with reading(database) as session:
            versions.append(current_version(session))

    assert versions[0][0]
    assert versions[0][0] == versions[1][0]


def test_a_catalog_of_the_version_before_is_given_a_lineage(stored: Engine) -> None:
    with stored.begin() as connection:
        connection.execute(text("UPDATE catalog_revision SET lineage = NULL"))

    with writing(stored) as session, session.begin():
        raise_revision(session)

    with reading(stored) as session:
        lineage, revision = current_version(session)
    assert lineage
    assert revision == 2


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("nonsense", ["abc", 1.5, ""])
def test_a_revision_that_is_no_number_is_refused(stored: Engine, nonsense: object) -> None:
    with stored.begin() as connection:
        connection.execute(text("UPDATE catalog_revision SET revision = :nonsense"), {"nonsense": nonsense})

    with reading(stored) as session, pytest.raises(InvalidCatalogError, match="no whole number"):
        current_version(session)
    with writing(stored) as session, pytest.raises(InvalidCatalogError, match="no whole number"):
        lock_revision(session)


def test_the_first_two_writers_of_all_wait_for_each_other(database: Engine) -> None:
    errors: list[Exception] = []
    together = threading.Barrier(8)

    def write() -> None:
        together.wait()
        try:
            with writing(database) as session, session.begin():
                lock_revision(session)
                put_gpu(session, gpu())
                raise_revision(session)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    with reading(database) as session:
        assert current_version(session)[1] == 8


def test_a_repository_of_another_model_is_a_conflict(stored: Engine) -> None:
    taken = model(id="other-model", name="Other", aliases=[], **{**published_as("made/up-8b"), "hf_id": "made/Other"})

    with writing(stored) as session, pytest.raises(ConflictError, match="'made/Up-8B' already belongs to 'made-up-8b'"):
        put_model(session, taken)


def test_a_repository_is_no_name_of_another_model_either(stored: Engine) -> None:
    half = [*MODEL["checkpoints"], {**MODEL["checkpoints"][0], "hf_id": "made/Half", "is_default": False}]
    named = model(id="other-model", name="Other", **{**published_as("made/Other"), "aliases": ["made/half"]})
    stocked = model(id="other-model", name="Other", aliases=[], **{**published_as("UP8"), "hf_id": None})

    with writing(stored) as session:
        put_model(session, model(checkpoints=half))
        with pytest.raises(ConflictError, match="'made/Half' already belongs to 'made-up-8b'"):
            put_model(session, named)
        with pytest.raises(ConflictError, match="'up8' is a name of 'made-up-8b'"):
            put_model(session, stocked)

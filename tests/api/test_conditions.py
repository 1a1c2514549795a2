"""Writes to the catalog that say what they saw."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.catalog.samples import GPU, MODEL, OFFER, SOURCE
from tests.conftest import API_KEY, emptied, seeded_service, service_settings

ENTRIES: dict[str, dict[str, Any]] = {"gpus": GPU, "models": MODEL, "offers": {**OFFER, "gpu": "h100-sxm-80gb"}}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A service on each kind of database."""
    folder = tmp_path_factory.mktemp("service")
    url = f"sqlite:///{folder}/catalog.sqlite3"
    if request.param == "postgresql":
        url = emptied(request.getfixturevalue("postgres_url"))
    with seeded_service(service_settings(folder, database_url=url)) as client:
        client.headers["X-API-Key"] = API_KEY
        yield client


def etag(client: TestClient, path: str) -> str:
    return str(client.get(path).headers["etag"])


@pytest.mark.parametrize("kind", ENTRIES)
def test_an_entry_is_written_by_who_saw_it(service: TestClient, kind: str) -> None:
    entry, path = ENTRIES[kind], f"/catalog/{kind}/{ENTRIES[kind]['id']}"

    assert service.put(path, json=entry, headers={"If-Match": "*"}).status_code == 412  # there is none
    assert service.put(path, json=entry, headers={"If-None-Match": "*"}).status_code == 200
    assert service.put(path, json=entry, headers={"If-None-Match": "*"}).status_code == 412
    first = etag(service, path)
    changed = (
        {**entry, "source": {**SOURCE, "checked_on": "2026-11-02"}} if "source" in entry else {**entry, "vendor": "amd"}
    )
    assert service.put(path, json=changed, headers={"If-Match": first}).status_code == 200

    late = service.put(path, json=entry, headers={"If-Match": first})
    assert (late.status_code, late.json()["type"]) == (412, "/problems/other-version")
    assert late.headers["etag"] == etag(service, path) != first
    assert service.delete(path, headers={"If-Match": first}).status_code == 412
    assert service.delete(path, headers={"If-Match": f'"other", {etag(service, path)}'}).status_code == 200
    assert service.delete(path, headers={"If-Match": "*"}).status_code == 404


def test_a_refused_condition_writes_nothing(service: TestClient) -> None:
    before = service.get("/readyz").json()["catalog_revision"]
    shown = service.get("/catalog/gpus/h100-sxm-80gb").json()

    for headers in ({"If-Match": '"other"'}, {"If-Match": f"W/{etag(service, '/catalog/gpus/h100-sxm-80gb')}"}):
        refused = service.put("/catalog/gpus/h100-sxm-80gb", json={**shown, "vendor": "amd"}, headers=headers)
        assert refused.status_code == 412
    tagged = service.put("/catalog/gpus/h100-sxm-80gb", json=shown, headers={"If-None-Match": '"tag"'})

    assert tagged.status_code == 400
    assert service.get("/catalog/gpus/h100-sxm-80gb").json() == shown
    assert service.get("/readyz").json()["catalog_revision"] == before


def test_of_racing_writers_who_saw_the_same_one_wins(service: TestClient) -> None:
    service.put("/catalog/gpus/made-up-100gb", json=GPU)
    headers = {"If-Match": etag(service, "/catalog/gpus/made-up-100gb")}

    def write(number: int) -> int:
        entry = {**GPU, "name": f"Made Up {number}"}
        return service.put("/catalog/gpus/made-up-100gb", json=entry, headers=headers).status_code

    with ThreadPoolExecutor(10) as threads:
        statuses = Counter(threads.map(write, range(20)))

    service.delete("/catalog/gpus/made-up-100gb")
    assert statuses[200] == 1
    assert statuses.keys() <= {200, 412, 503}  # 503: too many wait, or the database is busy

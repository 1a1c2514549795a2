"""Whatever a network does to the database: answers stay right, writes are made or refused in time, all comes back."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.catalog.faults import FAULTS, Fault, FaultyNetwork
from tests.catalog.samples import OFFER
from tests.conftest import API_KEY, emptied, seed_database, seeded_service, service_settings

QUESTION: dict[str, Any] = {
    "model": "qwen3-32b",
    "gpu": "h100",
    "concurrent_requests": 8,
    "input_tokens": 900,
    "output_tokens": 90,
}


@pytest.fixture
def network(postgres_url: str) -> Iterator[FaultyNetwork]:
    seed_database(emptied(postgres_url))
    with FaultyNetwork(postgres_url) as network:
        yield network


def put(service: TestClient, usd_per_hour: float) -> Any:
    offer = {**OFFER, "gpu": "h100-sxm-80gb", "usd_per_hour": usd_per_hour}
    return service.put("/catalog/offers/made-up-offer", json=offer)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_costs_writes_and_never_answers_and_passes(
    tmp_path: Path, network: FaultyNetwork, fault: Fault
) -> None:
    settings = service_settings(tmp_path, database_url=network.url, write_seconds=2, snapshot_poll_seconds=0.5)
    with seeded_service(settings) as service:
        service.headers["X-API-Key"] = API_KEY
        before = service.post("/size", json=QUESTION).json()

        network.does(fault)
        outcomes = [put(service, 10.0 + number) for number in range(3)]
        during = service.post("/size", json={**QUESTION, "spare_replicas": 0}).json()
        network.does("none")

        assert {response.status_code for response in outcomes} <= {200, 503}
        assert all("retry-after" in response.headers for response in outcomes if response.status_code == 503)
        assert {**during, "catalog_revision": 0} == {**before, "catalog_revision": 0}
        assert written_in_the_end(service)
        assert service.get("/readyz").json()["database_is_up"] is True


def written_in_the_end(service: TestClient) -> bool:
    """Write as a caller does who comes again when told to; no restart is needed."""
    for _ in range(20):
        if put(service, 99.0).status_code == 200:
            return bool(service.get("/catalog/offers/made-up-offer").json()["usd_per_hour"] == 99.0)
        time.sleep(0.3)
    return False

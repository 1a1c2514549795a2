"""Readiness tells the truth about the catalog and its database."""

import re
from pathlib import Path

from sqlalchemy import text
from starlette.testclient import TestClient

from service.catalog.database import make_engine
from service.main import create_app
from tests.conftest import seeded_service, service_settings
from tests.waiting import eventually


def test_alive_is_answered_without_looking_at_anything(client: TestClient) -> None:
    assert client.get("/livez").json() == {"status": "live"}


def test_a_healthy_service_says_so(client: TestClient) -> None:
    ready = client.get("/readyz").json()

    assert ready["status"] == "ready"
    assert ready["database_is_up"] is True
    assert ready["catalog_origin"] == "database"
    assert ready["catalog_is_stale"] is False
    assert ready["refresh_failures"] == 0
    assert ready["last_refresh_error"] is None
    assert ready["models"] > 100


def test_a_poisoned_row_is_named_and_the_catalog_before_it_in_use(tmp_path: Path) -> None:
    settings = service_settings(tmp_path, snapshot_poll_seconds=0.05)
    with seeded_service(settings) as service:
        before = service.get("/readyz").json()
        engine = make_engine(settings.database_url)
        with engine.begin() as connection:
            connection.execute(text("UPDATE gpus SET vendor = 'nobody' WHERE id = 't4'"))
            connection.execute(text("UPDATE catalog_revision SET revision = revision + 1"))
        assert eventually(lambda: service.get("/readyz").json()["refresh_failures"] > 0)
        after = service.get("/readyz").json()
        metrics = service.get("/metrics").text

    assert after["catalog_revision"] == before["catalog_revision"]
    assert after["refresh_failures"] > 0
    assert re.search(r"^sizer_catalog_refresh_failures [1-9]", metrics, flags=re.MULTILINE)
    assert "'t4'" in after["last_refresh_error"]
    assert after["database_is_up"] is True


def test_a_service_without_a_database_answers_from_the_seed_files_and_admits_it(tmp_path: Path) -> None:
    settings = service_settings(tmp_path, database_url=f"sqlite:///{tmp_path}/not-there.sqlite3")
    with TestClient(create_app(settings)) as service:
        ready = service.get("/readyz").json()

    assert ready["status"] == "ready"
    assert ready["catalog_origin"] == "seed"
    assert ready["catalog_age_s"] is None
    assert ready["catalog_is_stale"] is True
    assert ready["database_is_up"] is False
    assert ready["last_refresh_error"] == "the database does not answer, or not in time"


def test_a_revision_that_is_no_number_is_no_error_of_the_service(tmp_path: Path) -> None:
    settings = service_settings(tmp_path, snapshot_poll_seconds=0.05)
    question = {"model": "qwen3-32b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 9, "output_tokens": 9}
    with seeded_service(settings) as service:
        with make_engine(settings.database_url).begin() as connection:
            connection.execute(text("UPDATE catalog_revision SET revision = 'abc'"))
        assert eventually(lambda: service.get("/readyz").json()["last_refresh_error"])

        assert service.get("/readyz").status_code == 200
        assert "no whole number" in service.get("/readyz").json()["last_refresh_error"]
        assert service.post("/size", json=question).status_code == 200
        refused = service.delete("/catalog/gpus/t4", headers={"X-API-Key": "test-key"})
        assert refused.status_code == 409
        assert "no whole number" in refused.json()["detail"]
        [fault] = refused.json()["errors"]
        assert (fault["field"], fault["accepted"]) == ("entry", "one with which the catalog holds together")

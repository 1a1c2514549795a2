"""Workloads are there without the database: an autoscaler's poll goes on, through a start as well."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from service.main import create_app
from service.workloads.disk import FILE, WorkloadFile
from tests.conftest import API_KEY, seeded_service, service_settings
from tests.workloads.test_workloads import put


def test_pods_are_told_by_a_start_without_a_database(tmp_path: Path) -> None:
    settings = service_settings(tmp_path)
    with seeded_service(settings) as client:
        client.headers["X-API-Key"] = API_KEY
        assert put(client, "chat").status_code == 201
        before = client.get("/workloads/chat/replicas")
    away = service_settings(tmp_path, database_url="postgresql+psycopg://nobody@127.0.0.1:9/none", write_seconds=2)
    with TestClient(create_app(away), raise_server_exceptions=False) as client:
        client.headers["X-API-Key"] = API_KEY
        after = client.get("/workloads/chat/replicas")
        written = put(client, "chat", if_match="*")

    assert before.status_code == after.status_code == 200
    assert after.json()["replicas"] == before.json()["replicas"]
    assert written.status_code == 503


@pytest.mark.parametrize("content", [b"", b"{}", b'{"schema": 1, "sha256": "0"}\n[]', b"\xff\n\xff", None])
def test_what_is_not_whole_on_disk_is_not_used(tmp_path: Path, content: bytes | None) -> None:
    file = WorkloadFile(tmp_path / FILE)
    if content is not None:
        (tmp_path / FILE).write_bytes(content)

    assert file.read() is None
    file.write({})
    assert file.read() == {}
    assert [it.name for it in tmp_path.iterdir()] == [FILE]


def test_a_disk_that_takes_nothing_costs_no_answer(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")

    WorkloadFile(tmp_path / "file" / FILE).write({})

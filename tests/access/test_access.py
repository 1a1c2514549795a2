"""Every operation against every kind of key: exact statuses, and no secret where it could be read."""

import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import text
from starlette.routing import Route
from starlette.testclient import TestClient
from typer.testing import CliRunner

from service.access.keys import Scope, create_key, hashed, revoke_key
from service.access.matrix import row_of
from service.access.tables import ApiKeyRow
from service.catalog.database import make_engine, writing
from service.cli import app as commands
from service.main import create_app
from service.settings import Settings
from tests.conftest import API_KEY, seeded_service, service_settings

SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
WRONG = "sizer_0123456789ab_" + "x" * 43


class Guarded(NamedTuple):
    """A service with a key of each kind, by its name."""

    client: TestClient
    keys: dict[str, str]
    reads_need_key: bool


def keys_in(database_url: str) -> dict[str, str]:
    """Create a key of each kind."""
    engine = make_engine(database_url)
    with writing(engine) as session, session.begin():
        keys: dict[str, str] = {scope: create_key(session, f"a {scope}er", scope, 30) for scope in SCOPES}
        keys["expired"] = create_key(session, "late", "admin", 30)
        keys["revoked"] = create_key(session, "gone", "admin", 30)
        session.flush()
        revoke_key(session, keys["revoked"].split("_")[1])
        session.get_one(ApiKeyRow, keys["expired"].split("_")[1]).expires_at = datetime.now(UTC) - timedelta(seconds=1)
    engine.dispose()
    return keys | {"wrong": WRONG, "configured": API_KEY}


@pytest.fixture(scope="module", params=[False, True], ids=["open", "locked"])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    settings = service_settings(tmp_path_factory.mktemp("guarded"), reads_need_key=request.param)
    with seeded_service(settings) as client:
        yield Guarded(client, keys_in(settings.database_url), request.param)


def operations() -> list[tuple[str, str]]:
    """Return every operation there is, with its path filled in."""
    app = create_app(Settings())
    found: set[tuple[str, str]] = set()
    stated = [(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item]
    beside = [
        (method, route.path) for route in app.routes if isinstance(route, Route) for method in route.methods or ()
    ]
    for method, path in (*stated, *beside):
        filled = re.sub(r"\{\w+\}", "nothing", path)
        found.add(("GET" if method == "HEAD" else method, filled))
    return sorted(found)


OPERATIONS = operations()


def test_every_operation_has_a_scope() -> None:
    assert len(OPERATIONS) > 40
    assert [(method, path) for method, path in OPERATIONS if row_of(method, path) is None] == []


def needed_of(method: str, path: str) -> Scope | None:
    """Return the scope that an operation needs."""
    row = row_of(method, path)
    assert row is not None
    return row[0]


def expected(guarded: Guarded, method: str, path: str, kind: str) -> int | None:
    """Return the status that refuses an operation; None where the key is no reason to."""
    needed = needed_of(method, path)
    if needed is None or (kind == "none" and needed == "read" and not guarded.reads_need_key):
        return None
    if kind in ("none", "wrong", "expired", "revoked"):
        return 401
    held = "admin" if kind == "configured" else kind
    is_free = needed == "read" and not guarded.reads_need_key
    return None if is_free or SCOPES.index(held) >= SCOPES.index(needed) else 403


@pytest.mark.parametrize("kind", ["none", "wrong", "expired", "revoked", "read", "write", "admin", "configured"])
@pytest.mark.parametrize("is_bearer", [False, True], ids=["X-API-Key", "bearer"])
def test_each_key_opens_what_its_scope_says(guarded: Guarded, kind: str, is_bearer: bool) -> None:  # noqa: FBT001 - a case
    key = guarded.keys.get(kind)
    headers = {} if key is None else {"authorization": f"Bearer {key}"} if is_bearer else {"x-api-key": key}
    for method, path in OPERATIONS:
        response = guarded.client.request(method, path, headers=headers, json={} if method in ("POST", "PUT") else None)
        refused = expected(guarded, method, path, kind)
        if refused is None:
            assert response.status_code not in (401, 403), (method, path, response.text)
        else:
            assert response.status_code == refused, (method, path, response.text)
            assert response.headers["content-type"] == "application/problem+json"
        assert key is None or key not in response.text


def test_a_service_without_any_key_is_read_only(tmp_path: Path) -> None:
    with seeded_service(service_settings(tmp_path, api_keys="")) as client:
        assert client.put("/workloads/chat", json={}).json()["type"] == "/problems/read-only"
        assert client.get("/size").status_code == 422


def test_a_key_is_shown_once_and_its_hash_alone_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = service_settings(tmp_path)
    with seeded_service(settings) as client:
        monkeypatch.setenv("SIZER_DATABASE_URL", settings.database_url)
        run = CliRunner().invoke
        key = run(commands, ["keys", "create", "a dashboard", "--scope", "write"]).output.strip()
        listed = run(commands, ["keys", "list"]).output
        secret = key.split("_", 2)[2]
        caplog.set_level(logging.DEBUG)

        assert client.put("/workloads/chat", json={"question": {}}, headers={"x-api-key": key}).status_code == 422
        assert "a dashboard" in listed
        assert secret not in listed + caplog.text + client.get("/readyz").text
        assert secret.encode() not in Path(settings.database_url.removeprefix("sqlite:///")).read_bytes()
        assert run(commands, ["keys", "revoke", key]).exit_code == 0
        assert run(commands, ["keys", "revoke", "nobody"]).exit_code == 2
        engine = make_engine(settings.database_url)
        with engine.connect() as connection:
            [row] = connection.execute(text("SELECT secret_hash, revoked_at FROM api_keys")).all()
        engine.dispose()
        assert row[0] == hashed(secret)
        assert row[1] is not None


@pytest.mark.parametrize("name", ["a\nb", "a\u001b[31mb", "a" * 181, "a\u202eb"])
def test_a_key_is_not_named_what_the_record_of_changes_could_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A line break would begin a line of `sizer keys list`; what is cut would take the key's id along."""
    monkeypatch.setenv("SIZER_DATABASE_URL", f"sqlite:///{tmp_path}/keys.sqlite3")
    run = CliRunner().invoke(commands, ["keys", "create", name])

    assert (run.exit_code, "at most 180 characters, on one line" in run.output) == (2, True)


def test_help_says_once_how_long_a_key_lasts() -> None:
    run = CliRunner().invoke(commands, ["keys", "create", "--help"], env={"COLUMNS": "200"})

    assert "until it ends  [default: 365;" in run.output


@pytest.mark.parametrize("asked", [{"reads_need_key": True}, {"key_requests_per_s": 2.0}, {}])
def test_the_contract_says_what_a_key_is_told(asked: dict[str, Any]) -> None:
    operation = create_app(Settings(**asked)).openapi()["paths"]["/workloads/{name}/replicas"]["get"]

    for status in ("401", "403"):
        assert (status in operation["responses"]) is ("reads_need_key" in asked) is bool(operation["security"])
    assert ("429" in operation["responses"]) is ("key_requests_per_s" in asked)


@pytest.mark.parametrize("stated", [f" {API_KEY}", f"{API_KEY} ", f"\t {API_KEY}\t "])
def test_space_around_a_key_is_none_of_it(guarded: Guarded, stated: str) -> None:
    """Source: RFC 9110, section 5.5."""
    for headers in ({"X-API-Key": stated}, {"Authorization": f"Bearer {stated}"}):
        assert guarded.client.get("/workloads", headers=headers).status_code == 200


def test_a_key_that_asks_too_often_is_told_when_to_come_again(tmp_path: Path) -> None:
    with seeded_service(service_settings(tmp_path, key_requests_per_s=2.0)) as client:
        headers: dict[str, Any] = {"x-api-key": API_KEY}
        answers = [client.get("/catalog/gpus?page_size=1", headers=headers) for _ in range(12)]

        assert {it.status_code for it in answers} == {200, 429}
        assert all(int(it.headers["retry-after"]) >= 1 for it in answers if it.status_code == 429)
        assert client.get("/catalog/gpus?page_size=1").status_code == 200  # without a key, as before

"""Workloads: questions under a name, with versions, changes and overrides."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from service.catalog.database import make_engine
from service.main import create_app
from tests.conftest import API_KEY, seeded_service, service_settings

QUESTION: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100",
    "tensor_parallel_size": 1,
    "concurrent_requests": 8,
    "input_tokens": 1000,
    "output_tokens": 100,
}
IMPOSSIBLE = {**QUESTION, "model": "llama-3.1-70b", "gpu": "l4", "pipeline_parallel_size": 1}


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[TestClient]:
    """A service on each kind of database."""
    with seeded_service(service_settings(tmp_path, database_url=database_url)) as client:
        client.headers["X-API-Key"] = API_KEY
        yield client


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A service with a workload that nobody changes."""
    with seeded_service(service_settings(tmp_path_factory.mktemp("kept"))) as client:
        client.headers["X-API-Key"] = API_KEY
        assert put(client, "chat").status_code == 201
        assert put(client, "impossible", IMPOSSIBLE).status_code == 201
        yield client


def put(client: TestClient, name: str, question: dict[str, Any] = QUESTION, **headers: str) -> httpx2.Response:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return client.put(f"/workloads/{name}", json={"question": question}, headers=named)


def test_a_workload_is_written_read_changed_and_deleted(service: TestClient) -> None:
    created = put(service, "chat")
    read = service.get("/workloads/chat")
    changed = put(service, "chat", {**QUESTION, "concurrent_requests": 16}, if_match=read.headers["etag"])
    deleted = service.delete("/workloads/chat", headers={"if-match": changed.headers["etag"]})

    assert [it.status_code for it in (created, read, changed, deleted)] == [201, 200, 200, 200]
    assert [it.headers["etag"] for it in (created, read, changed)] == ['"1"', '"1"', '"2"']
    assert read.json()["question"] == QUESTION
    assert read.json()["answers"] == ["size", "capacity", "recommend", "replicas"]
    assert service.get("/workloads/chat").status_code == 404
    assert put(service, "chat").headers["etag"] == '"4"'  # an old tag never matches again


def test_a_version_must_be_stated_and_must_be_the_current_one(service: TestClient) -> None:
    put(service, "chat")

    unconditional = put(service, "chat")
    assert unconditional.status_code == 428
    assert [fault["field"] for fault in unconditional.json()["errors"]] == ["if-match"]
    assert 'If-Match: "' in unconditional.json()["errors"][0]["accepted"]
    assert service.delete("/workloads/chat").status_code == 428
    for tag in ('"7"', 'W/"1"', "1", '"x"'):
        refused = put(service, "chat", if_match=tag)
        assert refused.status_code == 412, tag
        assert refused.headers["etag"] == '"1"'
    again = put(service, "chat", if_none_match="*")
    assert (again.status_code, again.json()["errors"][0]["field"]) == (412, "if-none-match")
    assert put(service, "nobody", if_match='"1"').status_code == 412
    assert service.delete("/workloads/nobody").status_code == 404
    assert put(service, "chat", if_match="*").headers["etag"] == '"2"'
    assert put(service, "chat", if_match='"1", "2"').headers["etag"] == '"3"'  # RFC 9110, 13.1.1: any of those listed
    assert put(service, "chat", if_match='"1", W/"3", "03"').status_code == 412
    assert service.delete("/workloads/chat", headers={"if-match": '"7","3"'}).status_code == 200


def test_fifty_racing_writers_lose_no_update_and_are_all_recorded(service: TestClient) -> None:
    assert put(service, "chat").headers["etag"] == '"1"'
    seen = '"1"'
    for version in (2, 3):
        tag = seen

        def write(number: int, tag: str = tag) -> httpx2.Response:
            return put(service, "chat", {**QUESTION, "concurrent_requests": 1 + number}, if_match=tag)

        with ThreadPoolExecutor(50) as threads:
            answers = list(threads.map(write, range(50)))
        assert Counter(it.status_code for it in answers) == {200: 1, 412: 49}
        [winner] = [it for it in answers if it.status_code == 200]
        assert service.get("/workloads/chat").json() == winner.json()
        seen = winner.headers["etag"]
        assert seen == f'"{version}"'
    changes = service.get("/workloads/chat/changes").json()["items"]
    assert [it["version"] for it in changes] == [3, 2, 1]
    assert changes[-1]["before"] is None
    assert all(newer["before"] == older["after"] for newer, older in pairwise(changes))
    assert all(it["changed_by"].startswith("configured key ") for it in changes)


def test_a_name_that_was_never_written_has_no_changes_and_one_that_was_keeps_them(writable: TestClient) -> None:
    put(writable, "chat")
    writable.delete("/workloads/chat", headers={"If-Match": '"1"'})

    assert writable.get("/workloads/never/changes").json()["type"] == "/problems/no-such-workload"
    assert len(writable.get("/workloads/chat/changes").json()["items"]) == 2
    assert writable.get("/workloads/chat/changes?before_version=1").json()["items"] == []


def test_fifty_racing_creators_make_one(service: TestClient) -> None:
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda _: put(service, "chat", if_none_match="*").status_code, range(50)))

    assert Counter(answers) == {201: 1, 412: 49}


def test_writers_in_two_processes_cannot_both_win(tmp_path: Path, database_url: str) -> None:
    """Two services of one database: what one does not know yet, the database does."""
    first = seeded_service(service_settings(tmp_path / "a", database_url=database_url))
    with first, TestClient(first.app, raise_server_exceptions=False) as second:
        first.headers["X-API-Key"] = second.headers["X-API-Key"] = API_KEY
        put(first, "chat")
        services = [first, second] * 10
        with ThreadPoolExecutor(20) as threads:
            answers = list(threads.map(lambda one: put(one, "chat", if_match='"1"').status_code, services))

    assert Counter(answers) == {200: 1, 412: 19}


def test_what_another_replica_has_just_written_is_not_missing(writable: TestClient, tmp_path: Path) -> None:
    settings = service_settings(tmp_path, database_url=writable.app.state.settings.database_url)  # type: ignore[attr-defined] # an application of Starlette
    with TestClient(create_app(settings)) as other:
        before = other.get("/workloads/chat").status_code
        assert put(writable, "chat").status_code == 201
        shown = [other.get(f"/workloads/chat{question}").status_code for question in ("", "/replicas")]

    assert (before, shown) == (404, [200, 200])


def test_writing_one_empties_no_cache(writable: TestClient) -> None:
    etag = writable.get("/size", params=QUESTION).headers["etag"]
    before = writable.get("/readyz").json()["catalog_revision"]

    put(writable, "chat")

    assert writable.get("/readyz").json()["catalog_revision"] == before
    assert writable.get("/size", params=QUESTION, headers={"if-none-match": etag}).status_code == 304


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({**QUESTION, "concurrent_request": 8}, "concurrent_request"),
        ({**QUESTION, "percentile": 5}, "percentile"),
        ({**QUESTION, "limit": -1}, "limit"),
        ({**QUESTION, "format": "csv"}, "format"),
        ({"gpu": "h100"}, "model"),
    ],
)
def test_what_no_question_could_answer_is_not_kept(writable: TestClient, question: dict[str, Any], field: str) -> None:
    refused = put(writable, "chat", question)

    assert refused.status_code == 422
    assert field in [it["field"] for it in refused.json()["errors"]]
    assert writable.get("/workloads").json() == {"items": []}


def test_a_field_that_is_stated_twice_is_not_kept(writable: TestClient) -> None:
    """The last one would win unseen, as in a query string, where it is refused too."""
    text = json.dumps({"question": QUESTION}).replace('"model":', '"model": "llama-3.3-70b", "model":')
    headers = {"content-type": "application/json"}
    refused = writable.put("/workloads/chat", content=text, headers=headers)

    assert refused.status_code == 422
    assert [(it["field"], it["detail"]) for it in refused.json()["errors"]] == [("model", "stated more than once")]
    assert writable.get("/workloads").json() == {"items": []}


@pytest.mark.parametrize(
    ("stated", "field", "near"),
    [
        ({"model": "lama-3.1-8bb"}, "model", "llama-3.1-8b"),
        ({"gpu": "h1000"}, "gpu", "h100"),
        ({"exclude_gpus": ["h200", "h1000"]}, "exclude_gpus", "h100"),
    ],
)
def test_what_the_catalog_does_not_know_is_not_kept(
    writable: TestClient, stated: dict[str, Any], field: str, near: str
) -> None:
    refused = put(writable, "chat", {**QUESTION, **stated})
    [fault] = refused.json()["errors"]

    assert refused.status_code == 422
    assert (fault["field"], near in fault["accepted"]) == (field, True)
    assert writable.get("/workloads").json() == {"items": []}


@pytest.mark.parametrize(
    ("stated", "kind", "field"),
    [
        ({"tensor_parallel_size": 7}, "unsupported-layout", "tensor_parallel_size"),
        ({"model": "gpt-oss-120b", "gpu": "v100"}, "refused-start", "gpu"),
        ({"max_model_len": 999_999}, "invalid-question", "max_model_len"),
        ({"engine": "tensorrt-llm", "gpu": "mi300x"}, "refused-start", "gpu"),
        ({"regions": ["us-esat-1"]}, "invalid-request", "regions"),
        ({"request_rate_per_s": 5, "tensor_parallel_size": 7}, "unsupported-layout", "tensor_parallel_size"),
    ],
)
def test_what_the_engine_always_refuses_is_told_when_it_is_written_and_not_kept(
    writable: TestClient, stated: dict[str, Any], kind: str, field: str
) -> None:
    load = {} if "request_rate_per_s" in stated else {"concurrent_requests": 8}
    question = {**{name: value for name, value in QUESTION.items() if name != "concurrent_requests"}, **load, **stated}
    refused, alone = put(writable, "chat", question), writable.post("/size", json=question)

    assert (refused.status_code, refused.json()) == (422, alone.json())
    assert refused.json()["type"] == f"/problems/{kind}"
    assert [it["field"] for it in refused.json()["errors"]] == [field]
    assert writable.get("/workloads").json() == {"items": []}


@pytest.mark.parametrize(
    "stated",
    [
        {"model": "llama-3.1-70b", "gpu": "l4"},
        {"gpu": "gaudi-3"},
        {"providers": ["aws"], "regions": ["eu-north1"]},
        {"ttft_s": 0.000001},
        {"concurrent_requests": None, "request_rate_per_s": 5, "ttft_s": 2, "tpot_s": 0.1},
        {"concurrent_requests": None, "request_rate_per_s": 5, "burstiness": 0.5},
    ],
    ids=["too small", "no price", "no offer of both", "too fast", "a rate", "in bursts"],
)
def test_what_load_prices_or_inventory_may_change_is_kept(writable: TestClient, stated: dict[str, Any]) -> None:
    question = {name: value for name, value in {**QUESTION, **stated}.items() if value is not None}
    assert put(writable, "chat", question).status_code == 201


def test_all_that_is_wrong_with_a_workload_is_told_at_once(writable: TestClient) -> None:
    question = {"model": "lama-3.3-70b", "gpu": "h100", "concurent_requests": 8, "tensor_parallel_size": 0}
    faults = {it["field"]: it["accepted"] for it in put(writable, "chat", question).json()["errors"]}

    assert list(faults)[:2] == ["concurent_requests", "model"]
    assert faults["concurent_requests"] == "did you mean concurrent_requests?"
    assert faults["model"].startswith("llama-3.3-70b-instruct")
    assert "tensor_parallel_size" in faults


def test_a_workload_outlasts_its_model_in_the_catalog(writable: TestClient) -> None:
    model = writable.get("/catalog/models/llama-3.1-8b").json()
    own = {**model, "id": "of-our-own", "name": "Of Our Own", "hf_id": "we/of-our-own", "aliases": []}
    own["checkpoints"] = [{**model["checkpoints"][0], "hf_id": "we/of-our-own", "is_default": True}]
    assert writable.put("/catalog/models/of-our-own", json=own).status_code == 200
    assert put(writable, "chat", {**QUESTION, "model": "of-our-own"}).status_code == 201
    assert writable.delete("/catalog/models/of-our-own").status_code == 200

    assert writable.get("/workloads/chat").json()["question"]["model"] == "of-our-own"
    assert [it["targets"] for it in writable.get("/sd").json()] == [["chat"]]
    assert writable.get("/workloads/chat/replicas").json()["type"] == "/problems/not-in-catalog"


@pytest.mark.parametrize("name", ["size", "capacity", "recommend", "replicas"])
def test_a_workload_is_answered_as_its_fields_are(kept: TestClient, name: str) -> None:
    fields = {key: value for key, value in QUESTION.items() if not (name == "recommend" and key == "gpu")}

    assert kept.get(f"/workloads/chat/{name}").json() == kept.post(f"/{name}", json=fields).json()


def test_the_query_string_stands_in_the_place_of_the_workload_s_fields(kept: TestClient) -> None:
    stated = {key: value for key, value in QUESTION.items() if key != "concurrent_requests"}
    by_rate = kept.get("/workloads/chat/replicas", params={"request_rate_per_s": 38})
    text = kept.get("/workloads/chat/replicas", params={"request_rate_per_s": 38, "field": "replicas"})

    assert by_rate.json() == kept.post("/replicas", json={**stated, "request_rate_per_s": 38}).json()
    assert text.text == f"{by_rate.json()['replicas']}\n"
    assert kept.get("/workloads/chat/replicas?ttft_s=1&ttft_s=2").status_code == 422
    assert kept.get("/workloads/chat/replicas?nonsense=1").json()["errors"][0]["field"] == "nonsense"


@pytest.mark.parametrize("name", ["size", "capacity", "recommend", "replicas"])
@pytest.mark.parametrize(
    ("accept", "form"), [("text/csv", "csv"), ("text/plain", "text"), ("application/yaml", "yaml"), ("*/*", "json")]
)
def test_a_type_that_accept_names_alone_is_the_format(kept: TestClient, name: str, accept: str, form: str) -> None:
    named = kept.get(f"/workloads/chat/{name}", headers={"accept": accept})
    stated = kept.get(f"/workloads/chat/{name}", params={"format": form}, headers={"accept": "text/csv"})
    again = kept.get(f"/workloads/chat/{name}", headers={"accept": accept, "if-none-match": named.headers["etag"]})

    assert (named.status_code, named.content) == (200, stated.content)
    assert named.headers["content-type"] == stated.headers["content-type"]
    assert (again.status_code, named.headers["vary"], again.headers["vary"]) == (304, "Accept", "Accept")


def test_an_answer_that_has_not_changed_is_not_sent_again(kept: TestClient) -> None:
    first = kept.get("/workloads/chat/replicas")
    again = kept.get("/workloads/chat/replicas", headers={"if-none-match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert "stale-if-error" in first.headers["cache-control"]


def test_an_unknown_name_is_told_with_the_nearest(kept: TestClient) -> None:
    refused = kept.get("/workloads/chats/replicas")

    assert refused.status_code == 404
    assert refused.json()["errors"][0]["accepted"] == "chat"


def test_workloads_outlast_their_database_but_are_not_written(tmp_path: Path) -> None:
    settings = service_settings(tmp_path, write_seconds=1)
    with seeded_service(settings) as service:
        service.headers["X-API-Key"] = API_KEY
        put(service, "chat")
        before = service.get("/workloads/chat/replicas").content
        Path(settings.database_url.removeprefix("sqlite:///")).unlink()

        after = service.get("/workloads/chat/replicas")

        assert (after.status_code, after.content) == (200, before)
        assert put(service, "chat", if_match="*").status_code == 503


def test_a_database_of_the_version_before_costs_workloads_alone(tmp_path: Path) -> None:
    settings = service_settings(tmp_path)
    with seeded_service(settings) as service:
        engine = make_engine(settings.database_url)
        with engine.begin() as connection:
            connection.execute(text("DROP TABLE workloads"))
        engine.dispose()

        assert service.get("/workloads").status_code == 503
        assert service.get("/size", params=QUESTION).status_code == 200


def test_workloads_are_listed_on_a_sheet_as_well(kept: TestClient) -> None:
    sheet = kept.get("/workloads?format=csv")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(sheet.text))}
    listed = {one["name"]: one for one in kept.get("/workloads").json()["items"]}

    assert sheet.headers["content-type"].startswith("text/csv")
    assert rows.keys() == listed.keys()
    for name, row in rows.items():
        assert row["answers"].split() == listed[name]["answers"]
        for field, value in listed[name]["question"].items():
            assert row[f"question.{field}"] == str(value)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/workloads?fromat=csv", "fromat"),
        ("/workloads?format=xml", "format"),
        ("/workloads?format=csv&format=json", "format"),
        ("/workloads/chat?format=csv", "format"),
        ("/catalog/models/llama-3.1-8b?format=csv", "format"),
        ("/catalog/gpus/h100?fields=figures", "fields"),
        ("/measurements/5f3a0c9d2b7e4681?format=csv", "format"),
    ],
)
def test_a_field_that_a_list_or_an_entry_does_not_read_is_refused(kept: TestClient, path: str, field: str) -> None:
    refused = kept.get(path)

    assert refused.status_code == 422
    assert [fault["field"] for fault in refused.json()["errors"]] == [field]
    assert all(fault["accepted"] for fault in refused.json()["errors"])


def test_a_field_beside_a_deletion_is_refused_before_anything_is_deleted(kept: TestClient) -> None:
    refused = kept.delete("/workloads/chat?dry_run=true", headers={"if-match": '"1"'})

    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "dry_run")
    assert kept.get("/workloads/chat").status_code == 200


def test_fields_beside_the_question_are_told_where_they_belong(writable: TestClient) -> None:
    body = {"model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 8}
    bare = writable.put("/workloads/chat", json=body, headers={"If-None-Match": "*"})
    beside = writable.put("/workloads/chat", json={"question": {}, "load_from": {}}, headers={"If-None-Match": "*"})

    assert (bare.status_code, beside.status_code) == (422, 422)
    assert "model, gpu, concurrent_requests belong inside `question`" in bare.json()["errors"][0]["detail"]
    assert "load_from belongs inside `question`" in beside.json()["errors"][0]["detail"]
    written = writable.put("/workloads/chat", json={"question": {}, "format": "csv"}, headers={"If-None-Match": "*"})
    assert (written.status_code, written.json()["errors"][0]["detail"]) == (422, "unknown field")  # of no workload


def test_a_workload_too_many_is_told_what_would_make_room(
    writable: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.workloads.store.MOST_WORKLOADS", 0)
    question = {"model": "qwen3-32b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 9, "output_tokens": 9}
    refused = writable.put("/workloads/one-too-many", json={"question": question})

    [fault] = refused.json()["errors"]
    assert (refused.status_code, fault["field"]) == (409, "name")
    assert "DELETE one first" in fault["accepted"]

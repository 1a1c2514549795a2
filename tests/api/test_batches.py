"""Many questions in one request: answered in order, and one bad row spoils nothing."""

import csv
import io
import json
import shlex
import time
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.conftest import API_KEY

QUESTION: dict[str, Any] = {
    "model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 1000, "output_tokens": 100,
}  # fmt: skip
NAMES = ["size", "capacity", "replicas", "recommend", "compare"]


def mixed(count: int) -> list[dict[str, Any]]:
    """Return questions of which every tenth has a bad value, and every tenth an unknown model."""
    questions = []
    for number in range(count):
        question = {**QUESTION, "concurrent_requests": 1 + number % 200}
        if number % 10 == 3:
            question["input_tokens"] = -1
        elif number % 10 == 7:
            question["model"] = "no-such-model"
        questions.append(question)
    return questions


def test_each_question_has_its_own_success_or_problem_in_order(client: TestClient) -> None:
    questions = mixed(20)
    batch = client.post("/size:batch", json={"questions": questions}).json()

    assert [it["index"] for it in batch["answers"]] == list(range(20))
    assert (batch["succeeded"], batch["failed"]) == (16, 4)
    for question, told in zip(questions, batch["answers"], strict=True):
        alone = client.post("/size", json=question)
        assert told["status"] == alone.status_code
        assert told["answer" if alone.status_code == 200 else "problem"] == alone.json()


@pytest.mark.parametrize("body", ["json", "csv"])
def test_a_misspelt_name_beside_another_fault_is_told_as_it_is_alone(client: TestClient, body: str) -> None:
    question = {"model": "lama-3.3-70b", "gpu": "h1000", "concurent_requests": "8", "output_tokens": "10"}
    sheet = f"{','.join(question)}\n{','.join(question.values())}\n"
    asked: dict[str, Any] = {
        "json": {"json": {"questions": [question]}},
        "csv": {"content": sheet, "headers": {"content-type": "text/csv"}},
    }
    [told] = client.post("/size:batch", **asked[body]).json()["answers"]

    assert told["problem"] == client.post("/size", json=question).json()
    fields = [fault["field"] for fault in told["problem"]["errors"]]
    assert fields == ["concurent_requests", "model", "gpu", "concurrent_requests", "input_tokens"]


def test_a_format_in_the_query_string_is_refused_and_told_where_it_belongs(client: TestClient) -> None:
    response = client.post("/size:batch?format=csv", json={"questions": [QUESTION]})

    assert response.status_code == 422
    assert [(fault["field"], "Accept" in fault["accepted"]) for fault in response.json()["errors"]] == [
        ("format", True)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_question_may_be_asked_many_at_once(client: TestClient, name: str) -> None:
    asked = {
        "size": QUESTION,
        "capacity": {"model": "llama-3.1-8b", "gpu": "h100"},
        "replicas": QUESTION,
        "recommend": {key: value for key, value in QUESTION.items() if key != "gpu"},
        "compare": {
            "models": "llama-3.1-8b",
            "gpus": "h100",
            "concurrent_requests": 8,
            "input_tokens": 900,
            "output_tokens": 90,
        },
    }[name]
    batch = client.post(f"/{name}:batch", json={"questions": [asked, {}]}).json()

    assert [it["status"] for it in batch["answers"]] == [200, 422]
    assert batch["answers"][0]["answer"] == client.post(f"/{name}", json=asked).json()


def test_a_sheet_is_read_as_the_same_questions(client: TestClient) -> None:
    sheet = io.StringIO()
    writer = csv.DictWriter(sheet, [*QUESTION, "ttft_s"])
    writer.writeheader()
    writer.writerows([QUESTION, {**QUESTION, "model": "qwen3-8b"}, {**QUESTION, "gpu": "none"}])
    by_sheet = client.post("/size:batch", content="\ufeff" + sheet.getvalue(), headers={"content-type": "text/csv"})
    by_json = client.post(
        "/size:batch",
        json={"questions": [QUESTION, {**QUESTION, "model": "qwen3-8b"}, {**QUESTION, "gpu": "none"}]},
    )

    assert by_sheet.json() == by_json.json()
    assert [it["status"] for it in by_sheet.json()["answers"]] == [200, 200, 404]


def test_lines_are_read_as_the_same_questions(client: TestClient) -> None:
    questions = [QUESTION, {**QUESTION, "gpu": "none"}, 7]
    lines = "".join(f"{json.dumps(question)}\n" for question in questions)
    by_lines = client.post("/size:batch", content=lines, headers={"content-type": "application/x-ndjson"})

    assert by_lines.json() == client.post("/size:batch", json={"questions": questions}).json()
    assert [it["status"] for it in by_lines.json()["answers"]] == [200, 404, 422]


def test_blank_lines_lose_no_question(client: TestClient) -> None:
    body = "\n" * 6_000 + json.dumps(QUESTION)
    told = client.post("/size:batch", content=body, headers={"content-type": "application/x-ndjson"}).json()

    assert (told["succeeded"], told["failed"]) == (1, 0)


@pytest.mark.parametrize(
    ("body", "media_type", "told"),
    [
        (b'{"questions": x}', "application/json", "from character 15 on"),
        (b'{}\n\n{"model": x}\n', "application/x-ndjson", "on line 3"),
        (b"model\n\xe9\n", "text/csv", "not in UTF-8"),
        (b'model\n"a\n', "text/csv", "a quote is not closed"),
        (b"model\n" + b"a" * 200_000, "text/csv", "a cell of more than 131072 characters"),
    ],
)
def test_what_cannot_be_read_is_told_where_or_how(client: TestClient, body: bytes, media_type: str, told: str) -> None:
    refused = client.post("/size:batch", content=body, headers={"content-type": media_type})

    assert (refused.status_code, told in refused.json()["detail"]) == (400, True)


def test_a_question_of_a_batch_may_not_state_a_format_of_its_own(client: TestClient) -> None:
    asked = [{**QUESTION, "format": "csv", "field": "gpus"}, {**QUESTION, "format": "json"}]
    batch = client.post("/size:batch", json={"questions": asked}).json()

    assert [it["status"] for it in batch["answers"]] == [422, 200]
    faults = batch["answers"][0]["problem"]["errors"]
    assert [(fault["field"], "Accept" in fault["accepted"]) for fault in faults] == [("format", True), ("field", True)]


def test_lines_leave_as_they_are_known(client: TestClient) -> None:
    response = client.post("/size:batch", json={"questions": mixed(10)}, headers={"accept": "application/x-ndjson"})
    lines = [json.loads(line) for line in response.text.splitlines()]

    assert response.headers["content-type"].startswith("application/x-ndjson")
    assert [(it["index"], it["done"], it["of"]) for it in lines] == [(n, n + 1, 10) for n in range(10)]
    assert [it["status"] for it in lines] == [200, 200, 200, 422, 200, 200, 200, 404, 200, 200]


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/csv;q=0", "application/json"),
        ("application/x-ndjson;q=0.0, text/csv", "text/csv"),
        ("application/json;q=0, Text/CSV", "text/csv"),
        ("text/csv;q=0, application/x-ndjson;q=0.1", "application/x-ndjson"),
        ("application/json, text/csv", "application/json"),
    ],
)
def test_a_type_of_no_weight_is_not_written(client: TestClient, accept: str, media_type: str) -> None:
    # RFC 9110, 12.4.2: "a value of 0 means not acceptable"
    response = client.post("/size:batch", json={"questions": mixed(1)}, headers={"accept": accept})

    assert response.headers["content-type"].startswith(media_type)


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b'{"questions": []}', "application/json", 422),
        (b'{"questions": {}}', "application/json", 422),
        (b'{"question": []}', "application/json", 422),
        (b"[]", "application/json", 422),
        (b"{", "application/json", 400),
        (b'{"questions": [], "questions": [1]}', "application/json", 422),
        (json.dumps({"questions": [{}] * 1001}).encode(), "application/json", 422),
        (b"", "text/csv", 422),
        (b"\n", "application/x-ndjson", 422),
        (b"{}\n" * 1001, "application/x-ndjson", 422),
        (b'{"model": "a", "model": "b"}', "application/x-ndjson", 422),
        (b"model,model\na,b\n", "text/csv", 422),
        (b"\xff", "text/csv", 400),
        (b"model=a", "application/x-www-form-urlencoded", 415),
    ],
)
def test_what_is_no_batch_is_refused(client: TestClient, body: bytes, media_type: str, status: int) -> None:
    refused = client.post("/size:batch", content=body, headers={"content-type": media_type})

    assert refused.status_code == status
    assert refused.headers["content-type"].startswith("application/problem+json")


@pytest.mark.parametrize("row", [1, "text", None, [], {"nonsense": 1}, {"model": {"a": []}}])
def test_a_row_of_any_kind_spoils_nothing(client: TestClient, row: object) -> None:
    batch = client.post("/size:batch", json={"questions": [row, QUESTION]}).json()

    assert [it["status"] for it in batch["answers"]] == [422, 200]


def test_a_cell_under_no_name_is_refused(client: TestClient) -> None:
    sheet = ",".join(QUESTION) + "\n" + ",".join(map(str, QUESTION.values())) + ",beyond\n"
    batch = client.post("/size:batch", content=sheet, headers={"content-type": "text/csv"}).json()

    assert [it["status"] for it in batch["answers"]] == [422]


def test_a_thousand_mixed_questions_are_answered_while_a_caller_waits(client: TestClient, record_property: Any) -> None:
    questions = mixed(1000)
    client.post("/size:batch", json={"questions": questions})
    began = time.monotonic()
    batch = client.post("/size:batch", json={"questions": questions}).json()
    took_s = time.monotonic() - began
    record_property("compared", f"1,000 mixed questions, warm: {took_s:.2f} s")

    assert (batch["succeeded"], batch["failed"]) == (800, 200)
    assert took_s < 100  # a second where nothing else runs


def test_a_form_is_told_the_right_line(client: TestClient) -> None:
    refused = client.post("/size", data={"model": "llama-3.1-8b"})

    assert refused.status_code == 415
    line = refused.json()["detail"].partition("query string: ")[2]
    *_, flag, body, address = shlex.split(line)
    assert (flag, address) == ("--json", "http://sizer:8000/size")
    assert client.post("/size", content=body, headers={"content-type": "application/json"}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_form_is_advised_to_no_get_where_there_is_none(client: TestClient, method: str) -> None:
    path = "/size:batch" if method == "POST" else "/workloads/chat"
    headers = {"x-api-key": API_KEY}
    told = client.request(method, path, data={"model": "llama-3.1-8b"}, headers=headers).json()

    assert "GET" not in told["detail"]
    assert f"http://sizer:8000{path}'" in told["detail"]
    assert [(fault["field"], "json" in fault["accepted"]) for fault in told["errors"]] == [("content-type", True)]
    if method == "POST":
        body, sheet = shlex.split(told["detail"].partition("--json ")[2])[0], "; for CSV, -H 'content-type: text/csv'"
        assert client.post(path, content=body, headers={"content-type": "application/json"}).json()["succeeded"] == 1
        assert told["detail"].endswith(sheet)


@pytest.mark.parametrize(
    "path",
    [
        "/size?model=llama-3.1-8b&gpu=h100&concurrent_requests=8&input_tokens=9&output_tokens=9",
        "/catalog/gpus",
        "/livez",
        "/nothing",
    ],
)
def test_a_head_is_a_get_without_its_body(client: TestClient, path: str) -> None:
    whole, head = client.get(path), client.head(path)

    assert head.status_code == whole.status_code
    assert head.content == b""
    assert head.headers["content-length"] == str(len(whole.content))
    assert head.headers.get("etag") == whole.headers.get("etag")


def test_gauges_of_two_questions_never_collide(client: TestClient) -> None:
    asked = {**QUESTION, "format": "prometheus"}
    first = client.get("/size", params=asked).text
    second = client.get("/size", params={**asked, "concurrent_requests": 9}).text
    named = client.get("/size", params={**asked, "workload": "chat"}).text
    series = [{line.split()[0] for line in text.splitlines() if not line.startswith("#")} for text in (first, second)]

    assert not series[0] & series[1]
    assert 'workload="chat"' in named


HEAD = "model,gpu,concurrent_requests,input_tokens,output_tokens"
ROW = "llama-3.1-8b,h100,8,900,90"


@pytest.mark.parametrize(
    "sheet",
    [
        f"{HEAD}\n{ROW}\n".replace(",", ";"),
        f"{HEAD}\n{ROW}\n".replace(",", "\t"),
        f"sep=;\r\n{HEAD}\r\n{ROW}\r\n".replace(",", ";"),
        f"{HEAD},\n{ROW},\n",
        f"{HEAD}\r{ROW}\r",
        f" {HEAD} \n\n {ROW} \n,,,,\n",
        f"{HEAD}\n{ROW}\n".replace(",", "\t").encode("utf-16"),
    ],
    ids=["semicolons", "tabs", "separator named", "empty column", "carriage returns", "blanks", "Unicode text"],
)
def test_a_sheet_is_read_as_programs_write_it(client: TestClient, sheet: str | bytes) -> None:
    plain, other = (
        client.post("/size:batch", content=text, headers={"content-type": "text/csv"}).json()
        for text in (f"{HEAD}\n{ROW}\n", sheet)
    )

    assert other == plain
    assert plain["succeeded"] == 1


def test_a_cell_beyond_the_columns_is_named(client: TestClient) -> None:
    told = client.post("/size:batch", content=f"{HEAD}\n{ROW},7\n", headers={"content-type": "text/csv"}).json()

    [fault] = told["answers"][0]["problem"]["errors"]
    assert fault["field"] == "column 6"
    assert "in quotes" in fault["accepted"]


def test_a_field_beside_the_questions_is_named(client: TestClient) -> None:
    problem = client.post("/size:batch", json={"questions": [QUESTION], "gpu": "h100"}).json()

    assert problem["status"] == 422
    assert (problem["errors"][0]["field"], problem["errors"][0]["accepted"]) == ("gpu", "inside each question")

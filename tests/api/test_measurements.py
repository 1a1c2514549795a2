"""`POST /measurements` over HTTP, and `sizer check` from a pipe."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from service.cli import app

LOG = "Model loading took 15.0 GiB memory\nGPU KV cache size: 460,496 tokens"
QUESTION = {"model": "llama-3.1-8b", "gpu": "a100", "engine_version": "0.31.0"}


def test_a_log_is_answered_with_predicted_beside_measured(client: TestClient) -> None:
    question = {"model": "llama-3.1-8b", "gpu": "a100", "engine_version": "0.31.0"}
    response = client.post("/measurements", json={"text": LOG, "question": question})

    assert response.status_code == 200
    body = response.json()
    assert [(term["name"], term["line"]) for term in body["terms"]] == [("weight_bytes", 1), ("kv_cache.tokens", 2)]
    assert body["what"] == "vLLM start-up log"


def test_a_foreign_text_is_refused_by_its_line(client: TestClient) -> None:
    response = client.post("/measurements", json={"text": "hello\nworld"})

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "text"
    assert response.json()["detail"].startswith("line 1: 'hello'")


def test_an_unknown_gpu_beside_the_text_is_a_404(client: TestClient) -> None:
    question = {"model": "llama-3.1-8b", "gpu": "h1000"}

    assert client.post("/measurements", json={"text": LOG, "question": question}).status_code == 404


def test_a_list_of_measurements_is_sent_once(client: TestClient) -> None:
    first = client.get("/measurements")
    again = client.get("/measurements", headers={"If-None-Match": first.headers["etag"]})

    assert (first.headers["cache-control"], again.status_code) == ("no-cache, stale-if-error=600", 304)
    assert client.post("/measurements", json={"text": LOG, "question": QUESTION}).headers.get("etag") is None


@pytest.mark.parametrize(
    ("query", "body", "field"),
    [
        ("?store=false", '{"text": "a"}', "store"),
        ("", '{"text": "a", "question": {"gpu": "h100", "gpu": "a100"}}', "gpu"),
        ("", '{"text": "a", "store": false, "store": true}', "store"),
    ],
)
def test_what_would_be_ignored_beside_a_text_is_refused(client: TestClient, query: str, body: str, field: str) -> None:
    response = client.post(f"/measurements{query}", content=body, headers={"content-type": "application/json"})

    assert response.status_code == 422
    assert [fault["field"] for fault in response.json()["errors"]] == [field]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIZER_DATABASE_URL", f"sqlite:///{tmp_path}/cli.sqlite3")
    monkeypatch.setenv("SIZER_SNAPSHOT_PATH", str(tmp_path / "snapshot.json"))


def test_a_log_is_checked_from_a_pipe() -> None:
    asked = ["check", "-", "--model", "llama 3.1 8b", "--gpu", "a100-80gb", "--engine-version", "0.31.0"]
    result = CliRunner().invoke(app, asked, input=LOG)

    assert result.exit_code == 0
    assert "vLLM start-up log: llama-3.1-8b-instruct on a100-sxm-80gb" in result.output
    assert "line 2: kv_cache.tokens 460496, predicted" in result.output


@pytest.mark.parametrize(
    "asked", [["--gpu", "a100-80gb", "--model=llama-3.1-8b", "-"], ["--model=llama-3.1-8b", "-", "--gpu", "a100"]]
)
def test_a_log_stands_before_or_behind_its_fields(asked: list[str]) -> None:
    result = CliRunner().invoke(app, ["check", *asked, "--engine-version", "0.31.0"], input=LOG)

    assert result.exit_code == 0, result.output
    assert "line 2: kv_cache.tokens 460496, predicted" in result.output


@pytest.mark.parametrize(
    ("asked", "said"),
    [(["-", "a100"], "'a100': write --field value"), (["--gpu", "a100"], "no LOG"), (["-", "--gpu"], "--gpu")],
)
def test_words_that_are_no_field_are_refused(asked: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["check", *asked], input=LOG)

    assert result.exit_code == 2
    assert said in result.output


def test_a_foreign_text_from_a_pipe_is_a_usage_error() -> None:
    result = CliRunner().invoke(app, ["check", "-"], input="hello")

    assert result.exit_code == 2
    assert "line 1: 'hello'" in result.output


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--model", "llama-3.1-8b"], "gpu: the text does not say which gpu it was; accepted: --gpu"),
        (
            ["--model", "llama-3.1-8b", "--gpu", "h100", "--tensor-paralel-size", "2"],
            "--tensor-paralel-size: unknown field; accepted: did you ",
        ),
    ],
)
def test_the_command_tells_what_belongs_beside_a_log_as_its_options(asked: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["check", "-", *asked], input=LOG)

    assert result.exit_code == 2
    assert result.output.startswith(said)


def test_fields_beside_the_question_are_told_where_they_belong(client: TestClient) -> None:
    response = client.post("/measurements", json={"text": "a log", "gpu": "h100", "model": "llama-3.1-8b"})

    assert response.status_code == 422
    assert "gpu, model belong inside `question`" in response.json()["errors"][0]["detail"]

"""A question of one new file is served whole: by HTTP and command, in every format, with its guards, in the contract."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient
from typer.testing import CliRunner

from service.catalog.snapshot import Snapshot
from service.cli_questions import add_question
from service.main import create_app
from service.questions.registry import QUESTIONS
from tests.conftest import service_settings
from tests.questions.toy import TOY


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a service that was given the toy beside its own questions; without a database, it answers seeds."""
    app = create_app(service_settings(tmp_path_factory.mktemp("toy")), (*QUESTIONS, TOY))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    monkeypatch.setenv("SIZER_DATABASE_URL", f"sqlite:///{tmp_path}/toy.sqlite3")
    app = typer.Typer()
    add_question(app, TOY)
    add_question(app, QUESTIONS[0])  # beside another, so that each has to be named
    return app


def test_every_name_is_asked_once() -> None:
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)


def test_the_toy_answers_to_get_and_post_with_the_same_bytes(served: TestClient, catalog: Snapshot) -> None:
    by_query = served.get("/words", params={"gpu": "h100", "bytes_per_word": 16})
    by_body = served.post("/words", json={"gpu": "h100", "bytes_per_word": 16})

    assert by_query.content == by_body.content
    assert list(by_query.json()) == ["feasible", "gpu", "words", "bytes_per_word", "catalog_revision"]
    assert by_query.json()["words"] == catalog.gpu("h100").memory_bytes // 16


@pytest.mark.parametrize("how", ["json", "yaml", "csv", "text", "prometheus", "field"])
def test_the_toy_is_written_in_every_format(
    served: TestClient, command: typer.Typer, catalog: Snapshot, how: str
) -> None:
    asked = {"field": "words"} if how == "field" else {"format": how}

    by_http = served.get("/words", params={"gpu": "h100", **asked}).text
    options = [word for name, value in {"gpu": "h100", **asked}.items() for word in (f"--{name}", value)]
    by_command = CliRunner().invoke(command, ["words", *options]).output

    assert by_command == by_http
    read: dict[str, Any] = {
        "json": lambda: json.loads(by_http)["words"],
        "yaml": lambda: yaml.safe_load(by_http)["words"],
        "csv": lambda: int(by_http.splitlines()[1].split(",")[2]),
        "text": lambda: int(by_http.split()[0]),
        "prometheus": lambda: next(
            family.samples[0].value
            for family in text_string_to_metric_families(by_http)
            if family.name == "sizer_words"
        ),
        "field": lambda: int(by_http),
    }
    assert read[how]() == catalog.gpu("h100").memory_bytes // 8


def test_the_toy_cannot_forget_the_pinned_revision(served: TestClient, command: typer.Typer) -> None:
    by_http = served.get("/words", params={"gpu": "h100", "catalog_revision": 99})
    by_command = CliRunner().invoke(command, ["words", "--gpu", "h100", "--catalog-revision", "99"])

    assert (by_http.status_code, by_http.json()["errors"][0]["field"]) == (409, "catalog_revision")
    assert (by_command.exit_code, "revision" in by_command.output) == (2, True)


def test_the_toy_s_answers_are_kept(served: TestClient) -> None:
    desk = served.app.state.reception.desk  # type: ignore[attr-defined]
    served.get("/words", params={"gpu": "h100", "bytes_per_word": 77})
    before = len(desk.kept)

    served.post("/words", json={"gpu": "h100", "bytes_per_word": 77})

    assert len(desk.kept) == before


@pytest.mark.parametrize(
    ("asked", "field", "accepted"),
    [
        ({"gpu": "h100", "bytes_per_wrd": "8"}, "bytes_per_wrd", "bytes_per_word"),
        ({"gpu": "h100", "bytes_per_word": "0"}, "bytes_per_word", "at least 1"),
        ({"gpu": "h10"}, "gpu", "h100-sxm-80gb"),
        ({}, "gpu", "required"),
        ({"gpu": "h100", "bytes_per_word": "13"}, "bytes_per_word", "any other length"),
        ({"gpu": "h100", "field": "no_such"}, "field", "words"),
    ],
)
def test_the_toy_refuses_by_name(
    served: TestClient, command: typer.Typer, asked: dict[str, str], field: str, accepted: str
) -> None:
    by_http = served.get("/words", params=asked)
    options = [word for name, value in asked.items() for word in (f"--{name}", value)]
    by_command = CliRunner().invoke(command, ["words", *options])

    assert by_http.headers["content-type"] == "application/problem+json"
    error = by_http.json()["errors"][0]
    assert error["field"] == field
    assert accepted in error["accepted"]
    assert by_command.exit_code == 2
    assert accepted in by_command.output


def test_an_infeasible_toy_has_no_number_to_read(served: TestClient, command: typer.Typer) -> None:
    asked = {"gpu": "h100", "bytes_per_word": str(10**18), "field": "words"}
    options = [word for name, value in asked.items() for word in (f"--{name}", value)]

    assert served.get("/words", params=asked).status_code == 422
    assert CliRunner().invoke(command, ["words", *options]).exit_code == 3


def test_the_toy_is_in_the_contract(served: TestClient) -> None:
    document = served.get("/openapi.json").json()

    item = document["paths"]["/words"]
    assert (item["get"]["operationId"], item["post"]["operationId"]) == ("get_words", "post_words")
    assert item["get"]["tags"] == ["questions"]
    assert "by name" in item["post"]["requestBody"]["content"]["application/json"]["examples"]
    assert list(document["components"]["schemas"]["ToyAnswer"]["properties"]) == [
        "feasible", "gpu", "words", "bytes_per_word", "catalog_revision",
    ]  # fmt: skip
    assert {it["name"] for it in item["get"]["parameters"]} == set(TOY.fields)


def test_a_question_without_an_answer_fails_the_type_check(tmp_path: Path) -> None:
    forgetful = Path(__file__).with_name("toy.py").read_text(encoding="utf-8").replace("def answer(", "def reply(")
    path = tmp_path / "forgetful.py"
    path.write_text(forgetful, encoding="utf-8")

    checked = subprocess.run(
        [sys.executable, "-m", "mypy", str(path)],
        check=False, capture_output=True, text=True, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip

    assert checked.returncode == 1
    assert "Only concrete class" in checked.stdout, checked.stdout


def test_questions_import_no_framework_of_the_web() -> None:
    script = "import sys, service.questions.registry as r, service.questions.formats as f; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)

    assert not {"fastapi", "starlette", "typer", "uvicorn"} & set(done.stdout.split())

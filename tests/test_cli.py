"""The command line: the same engine, the same field names."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from service.cli import COMMANDS, app
from service.questions.asked import Question
from service.questions.examples import LLAMA_CONFIG
from service.questions.registry import QUESTIONS

runner = CliRunner()
QUESTION = ["--model", "llama-3.1-8b", "--gpu", "h100", "--concurrent-requests", "8", "--input-tokens", "1000"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIZER_DATABASE_URL", f"sqlite:///{tmp_path}/cli.sqlite3")
    monkeypatch.setenv("SIZER_SNAPSHOT_PATH", str(tmp_path / "snapshot.json"))


def test_migrate_and_seed_and_answer() -> None:
    assert runner.invoke(app, ["migrate"]).exit_code == 0
    assert "entries changed" in runner.invoke(app, ["seed"]).output
    assert "0 entries changed" in runner.invoke(app, ["seed"]).output

    answer = json.loads(runner.invoke(app, ["size", *QUESTION, "--output-tokens", "100"]).output)

    assert answer["gpus"] == 1
    assert answer["catalog_revision"] == 1


def test_the_command_answers_as_the_service_does(client: TestClient) -> None:
    by_http = client.get(
        "/size",
        params={
            "model": "llama-3.1-8b",
            "gpu": "h100",
            "concurrent_requests": 8,
            "input_tokens": 1000,
            "output_tokens": 100,
        },
    ).json()

    by_command = json.loads(runner.invoke(app, ["size", *QUESTION, "--output-tokens=100"]).output)

    assert {**by_command, "catalog_revision": 1} == by_http


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("capacity", ["--model", "qwen2.5-7b", "--gpu", "h100", "--format", "text"]),
        ("recommend", [*QUESTION[:2], *QUESTION[4:], "--output-tokens", "100", "--limit", "2", "--format", "csv"]),
    ],
)
def test_the_other_questions(command: str, arguments: list[str]) -> None:
    result = runner.invoke(app, [command, *arguments])

    assert result.exit_code == 0, result.output
    assert result.output.count("\n") >= 2


def test_a_config_file_may_be_named(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_CONFIG), encoding="utf-8")

    result = runner.invoke(app, ["size", *QUESTION[2:], "--output-tokens", "100", "--model-config", str(path)])

    assert json.loads(result.output)["model"] == "pasted-config"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*QUESTION, "--output-tokens", "-1"], "output_tokens"),
        (["--model", "llama-9", *QUESTION[2:], "--output-tokens", "1"], "did you mean"),
        ([*QUESTION, "--output-tokens"], "no value"),
        (["llama"], "not an option"),
        ([*QUESTION, "--output-tokens", "1", "--tensor-parallel-size", "3"], "divide"),
        ([*QUESTION[2:], "--output-tokens", "1", "--model-config", "/no/such/file"], "readable"),
    ],
)
def test_mistakes_are_explained_with_exit_code_2(arguments: list[str], words: str) -> None:
    result: Any = runner.invoke(app, ["size", *arguments])

    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*QUESTION, "--output-tokens", "1", "--ttft", "1"], "did you mean ttft_s?"),
        ([*QUESTION, "--output-tokens", "1", "--xyzzy=1"], "sizer size --help"),
        ([*QUESTION, "--output-tokens", "1", "--server", "http://sizer:8000"], "sizer --server ... size ..."),
        ([*QUESTION, "--ttft", "1", "--osl", "200"], "did you mean output_tokens?"),  # the second of two
        ([*QUESTION, "--output-tokens", "1", "--gpu", "h200"], "gpu: stated more than once"),
        ([*QUESTION, "--output-tokens", "1_000"], "a whole number"),
        ([*QUESTION, "--output-tokens", "1", "--engine-version", "0.1"], "engine_version"),
    ],
)
def test_mistakes_name_the_field_and_what_is_accepted(arguments: list[str], words: str) -> None:
    result = runner.invoke(app, ["size", *arguments])

    assert result.exit_code == 2
    assert words in result.output


def test_everything_that_is_missing_is_told_at_once() -> None:
    result = runner.invoke(app, ["size"])

    assert result.exit_code == 2
    assert [line.split(":")[0] for line in result.output.splitlines()] == [
        "model", "gpu", "concurrent_requests", "input_tokens", "output_tokens",
    ]  # fmt: skip


def test_lists_may_be_repeated_and_names_spelt_as_over_http() -> None:
    asked = [
        "--model",
        "llama-3.1-8b",
        "--concurrent_requests",
        "8",
        "--input_tokens",
        "1000",
        "--output_tokens",
        "100",
    ]

    result = runner.invoke(app, ["recommend", *asked, "--gpus", "h100", "--gpus", "l40s", "--format", "csv"])

    assert result.exit_code == 0, result.output
    assert "l40s" in result.output


def test_a_config_that_states_a_name_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"hidden_size": 1, "hidden_size": 2}', encoding="utf-8")

    result = runner.invoke(app, ["size", *QUESTION[2:], "--output-tokens", "1", "--model-config", str(path)])

    assert (result.exit_code, result.output) == (2, "hidden_size: stated more than once; accepted: one value\n")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_help_shows_every_field_with_its_words_units_and_choices(question: Question) -> None:
    shown = " ".join(runner.invoke(app, [question.name, "--help"]).output.split())

    for name, info in question.body.model_fields.items():
        option = "--" + (info.alias or name).replace("_", "-")
        assert f"{option} " in shown
        assert " ".join(str(info.description).split()) in shown
    if "weight_format" in question.body.model_fields:
        assert "--weight-format bf16|fp16|fp8|int8|int4|mxfp4|nvfp4" in shown
    assert "['" not in shown
    assert "[s]" in shown
    assert f"sizer {question.name} --model" in shown


def test_an_infeasible_number_has_an_exit_code_of_its_own() -> None:
    asked = ["--model", "llama-3.1-405b-instruct", "--gpu", "t4", "--tensor-parallel-size", "1",
             "--pipeline-parallel-size", "1", "--concurrent-requests", "1", "--input-tokens", "9", "--output-tokens", "9"]  # fmt: skip

    assert runner.invoke(app, ["size", *asked, "--field", "gpus"]).exit_code == 3


def test_the_contract_is_exported(tmp_path: Path) -> None:
    path = tmp_path / "openapi.json"

    assert runner.invoke(app, ["export-openapi", str(path)]).exit_code == 0
    assert path.read_bytes() == (Path(__file__).resolve().parents[1] / "openapi" / "openapi.json").read_bytes()


def test_the_ledger_is_fitted_from_a_folder_of_logs(tmp_path: Path) -> None:
    # Public log of SGLang: Devstral-Small-2-24B AWQ on two RTX 3090, 23.58 GiB each.
    row = {
        "id": "devstral",
        "engine": "sglang",
        "model": "mattbucci/Devstral-Small-2-24B-AWQ",
        "gpu": "NVIDIA GeForce RTX 3090 24GB x2",
        "tp": 2,
        "weights_gib": 12.91,
        "sglang_mem_fraction_static": 0.92,
        "quote": "K size: 4.08 GB",
        "notes": "Load begin avail mem=22.91 GB on TP0.",
    }
    (tmp_path / "vllm_startups.jsonl").write_text(json.dumps(row), encoding="utf-8")

    found = runner.invoke(app, ["fit-ledger", "--data", str(tmp_path)])

    assert found.exit_code == 0
    fitted = next(line.split() for line in found.output.splitlines() if line.startswith("sglang_peers"))
    assert fitted[1:5] == ["0.22", "0.22", "GiB", "1"]
    assert runner.invoke(app, ["fit-ledger", "--data", str(tmp_path / "nowhere")]).exit_code == 2


@pytest.mark.parametrize("stated", [["--port", "99999"], ["--port", "-1"], ["--workers", "0"], ["--workers", "-2"]])
def test_a_port_or_a_number_of_processes_that_cannot_be_is_refused_before_anything_starts(stated: list[str]) -> None:
    result = runner.invoke(app, ["serve", *stated])
    assert result.exit_code == 2
    assert "is not in the range" in result.output


def test_the_list_of_commands_needs_no_service_and_says_what_each_says() -> None:
    """Of each command, the words of the list begin its own; those of modules are imported only now."""
    listed = "from service.cli import main, sys\ntry: main()\nfinally: print('service.engine' in sys.modules, file=sys.stderr)"
    told = subprocess.run([sys.executable, "-c", listed, "--help"], capture_output=True, text=True, check=True)
    assert told.stderr.strip() == "False"
    assert all(f"  {name} " in told.stdout for name in COMMANDS)
    for name, command in COMMANDS.items():
        own = " ".join(runner.invoke(app, [name, "--help"]).output.split())
        assert command.help.rstrip(".") in own


def test_a_python_without_the_script_runs_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "service.cli", "--help"], check=True, capture_output=True, text=True, timeout=60
    )

    assert "How many GPUs" in done.stdout

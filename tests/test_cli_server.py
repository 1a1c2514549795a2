"""The command line asks a running service: the same text as over HTTP where piped, tables in a terminal."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner, Result

from service.cli import app
from tests.api.served import Served, served

ASKED = ["--model", "llama-3.1-8b", "--gpu", "h100", "--concurrent-requests", "8", "--input-tokens", "900"]
ASKED += ["--output-tokens", "90"]
FIELDS = {"model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 900, "output_tokens": 90}
SHEET = (
    "model,gpu,concurrent_requests,input_tokens,output_tokens\nllama-3.1-8b,h100,8,900,90\nnone-such,h100,8,900,90\n"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server")) as one:
        yield one


def sizer(service: Served, *words: str) -> Result:
    return CliRunner().invoke(app, ["--server", service.url, *words])


@pytest.mark.parametrize("how", ["json", "text", "csv", "yaml"])
def test_what_is_piped_is_what_the_service_says(service: Served, how: str) -> None:
    done = sizer(service, "size", *ASKED, "--format", how)

    assert done.exit_code == 0, done.output
    assert done.stdout == httpx2.post(service.url + "/size", json={**FIELDS, "format": how}).text


def test_a_terminal_is_shown_a_table(service: Served) -> None:
    """By a real pseudo-terminal, as wide as a small window."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from service.cli import main; main()", "--server", service.url]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    done = subprocess.Popen([*command, "size", *ASKED], stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65_536):
            shown += part
    except OSError:  # Linux says so when the other end has closed
        pass
    os.close(ours)
    _, errors = done.communicate()

    assert done.returncode == 0, errors
    assert "layout.tensor_parallel_size" in shown.decode()
    assert all(len(line) < 200 for line in shown.decode().splitlines())


def test_a_refusal_names_the_field_and_leaves_with_its_code(service: Served) -> None:
    wrong = sizer(service, "size", *ASKED[:-1], "-1")
    impossible = sizer(
        service,
        "size",
        *ASKED,
        "--model",
        "llama-3.1-70b",
        "--gpu",
        "l4",
        "--tensor-parallel-size",
        "1",
        "--field",
        "gpus",
    )

    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("output_tokens:")
    assert impossible.exit_code in (2, 3)
    assert impossible.stderr


def test_many_questions_of_a_file_are_one_table(service: Served, tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text(SHEET, encoding="utf-8")
    (tmp_path / "questions.json").write_text(json.dumps({"questions": [FIELDS]}), encoding="utf-8")
    done = sizer(service, "batch", "size", str(tmp_path / "questions.csv"))
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    by_http = httpx2.post(
        service.url + "/size:batch", content=SHEET, headers={"content-type": "text/csv", "accept": "text/csv"}
    )

    assert (done.exit_code, done.stderr) == (4, "1 of 2 questions were not answered\n")
    assert [(row["index"], row["status"], row["gpus"]) for row in rows] == [("0", "200", "1"), ("1", "404", "")]
    assert "none-such" in rows[1]["detail"]
    assert [(row["problem"], row["field"]) for row in rows] == [("", ""), ("not-in-catalog", "model")]
    assert by_http.headers["content-type"].startswith("text/csv")
    assert by_http.text == done.stdout
    as_json = sizer(service, "batch", "size", str(tmp_path / "questions.json"), "--format", "json")
    assert as_json.exit_code == 0, as_json.output
    assert json.loads(as_json.stdout)[0]["gpus"] == 1
    (tmp_path / "questions.ndjson").write_text(json.dumps(FIELDS), encoding="utf-8")
    of_lines = sizer(service, "batch", "size", str(tmp_path / "questions.ndjson"), "--format", "json")
    assert of_lines.stdout == as_json.stdout


HEAD = "model,gpu,concurrent_requests,input_tokens,output_tokens"


@pytest.mark.parametrize(
    "sheet",
    [
        f"{HEAD}\nllama-3.1-8b,h100,8,1,500,90\n",
        f"{HEAD}\nllama-3.1-8b,h100,8,900,90\n".replace(",", ";"),
        f"{HEAD}\nllama-3.1-8b,h100,8,900,90\n".replace(",", "\t"),
        f"sep=;\r\n{HEAD}\r\n\r\nllama-3.1-8b,h100,8,900,90\r\n,,,,\r\n".replace(",", ";"),
        f"\ufeff {HEAD},\n llama-3.1-8b ,h100,8,900,90,\n",
        "Model,GPU,Concurrent Requests,Input  tokens,output_tokens\nllama-3.1-8b,h100,8,900,90\n",
    ],
    ids=[
        "a comma within a number",
        "semicolons",
        "tabs",
        "separator named, and blank rows",
        "byte-order mark, spaces",
        "headings",
    ],
)
def test_a_file_is_read_as_the_service_reads_its_bytes(service: Served, tmp_path: Path, sheet: str) -> None:
    (tmp_path / "questions.csv").write_bytes(sheet.encode())
    headers = {"content-type": "text/csv", "accept": "text/csv"}
    by_http = httpx2.post(service.url + "/size:batch", content=sheet.encode(), headers=headers).text
    done = sizer(service, "batch", "size", str(tmp_path / "questions.csv"))

    assert done.stdout == by_http
    assert len(by_http.splitlines()) == 2
    assert done.exit_code == (4 if "1,500" in sheet else 0)


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (b'model,gpu\n"llama,h100\n', "a quote is not closed"),
        (b"model\n\xe9\n", "not in UTF-8"),
        (b"model,model\na,b\n", "the first line names no fields, or one of them twice"),
        (b"model\n", "0 questions"),
        (b'{"questions": [}', "not valid JSON from character 16 on"),
        (b'[{"model": "a", "model": "b"}]', "model: stated more than once"),
        (b'{"question": []}', "no list of questions"),
    ],
)
def test_a_file_that_is_no_batch_is_refused_before_it_is_sent(tmp_path: Path, file: bytes, told: str) -> None:
    (tmp_path / "questions").write_bytes(file)
    done = CliRunner().invoke(app, ["--server", "http://127.0.0.1:9", "batch", "size", str(tmp_path / "questions")])

    assert done.exit_code == 2
    assert told in done.stderr
    assert "accepted: " in done.stderr


@pytest.mark.parametrize("url", ["localhost:9", "ftp://localhost:9"])
def test_a_server_without_http_is_said_to_lack_it(url: str) -> None:
    done = CliRunner().invoke(app, ["--server", url, "size", *ASKED])

    assert done.exit_code == 2
    assert "as in http://localhost:9" in done.stderr.replace("\n", " ")


def test_a_server_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    absent = CliRunner().invoke(app, ["--server", "http://127.0.0.1:9", "size", *ASKED])
    without = CliRunner().invoke(app, ["batch", "size", str(tmp_path / "none.csv")])

    assert absent.exit_code == 2
    assert "not reached" in absent.stderr
    assert without.exit_code == 2
    assert "--server" in without.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["keys", "create", "me"], "keys works on this machine alone"),
        (["measurements", "list"], "http://sizer:8000/measurements"),
        (["seed"], "seed works on this machine alone"),
    ],
)
@pytest.mark.parametrize("is_stated", [True, False], ids=["stated", "of the environment"])
def test_a_command_of_this_machine_refuses_a_server(words: list[str], told: str, *, is_stated: bool) -> None:
    url = "http://sizer:8000/"
    stated, environment = (["--server", url], {}) if is_stated else ([], {"SIZER_SERVER": url})
    done = CliRunner().invoke(app, [*stated, *words], env=environment)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("--server: ")
    assert told in done.stderr


LOG = "INFO Model loading took 15.0 GiB memory\nINFO GPU KV cache size: 460,496 tokens\n"


@pytest.mark.parametrize("coding", ["utf-8", "utf-16", "utf-8-sig"])
def test_a_log_is_held_against_a_running_service(service: Served, coding: str) -> None:
    beside = ["--model=llama-3.1-8b", "--gpu", "a100-80gb", "--engine_version", "0.31.0"]
    here = CliRunner().invoke(app, ["check", "-", *beside], input=LOG.encode(coding))
    there = CliRunner().invoke(app, ["--server", service.url, "check", "-", *beside], input=LOG.encode(coding))

    assert there.exit_code == here.exit_code == 0, there.output
    assert there.stdout == here.stdout
    assert "line 2: kv_cache.tokens 460496, predicted" in there.stdout


def test_what_no_log_says_is_refused_by_a_running_service_as_here(service: Served) -> None:
    refused = CliRunner().invoke(app, ["--server", service.url, "check", "-"], input=LOG)
    stored = CliRunner().invoke(
        app, ["--server", service.url, "check", "-", "--gpu", "h100", "--model", "llama-3.1-8b", "--store"], input=LOG
    )
    empty = CliRunner().invoke(app, ["check", "-", "--gpu", "h100"], input="")

    assert (refused.exit_code, stored.exit_code, empty.exit_code) == (2, 2, 2)
    assert refused.stderr.startswith("model: ")
    assert "accepted: --model, as /capacity takes it" in refused.stderr
    assert service.url in stored.stderr
    assert empty.stderr.startswith("text: line 1: the text is empty")


def test_a_batch_is_read_from_the_standard_input_too(service: Served) -> None:
    sheet = f"{HEAD}\nllama-3.1-8b,h100,8,900,90\n"
    done = CliRunner().invoke(app, ["--server", service.url, "batch", "size", "-"], input=sheet)

    assert done.exit_code == 0, done.output
    assert [row["gpus"] for row in csv.DictReader(io.StringIO(done.stdout))] == ["1"]


def test_what_a_server_refuses_without_a_field_is_told_with_its_address(service: Served) -> None:
    nowhere = CliRunner().invoke(app, ["--server", f"{service.url}/elsewhere/of/it", "size", *ASKED])
    unknown = CliRunner().invoke(app, ["--server", service.url, "--key", "nobody", "size", *ASKED])

    assert (nowhere.exit_code, unknown.exit_code) == (2, 2)
    assert nowhere.stderr.startswith(f"{service.url}/elsewhere/of/it: ")
    assert "--key" in unknown.stderr


@pytest.mark.parametrize("words", [["size", *ASKED], ["batch", "size", "-"]])
def test_another_program_s_server_is_no_traceback(words: list[str]) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            page = b"<html>Welcome</html>"
            self.send_response(200)
            self.send_header("content-length", str(len(page)))
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        done = CliRunner().invoke(app, ["--server", url, *words], input=SHEET)
        server.shutdown()

    assert (done.exit_code, done.stdout) == (2, "")
    assert "not this service" in done.stderr


def test_a_key_of_no_server_and_a_blank_name_are_refused() -> None:
    alone = CliRunner().invoke(app, ["--key", "of-nobody", "size", *ASKED])
    blank = CliRunner().invoke(app, ["keys", "create", " "])

    assert (alone.exit_code, blank.exit_code) == (2, 2)
    assert alone.stderr.startswith("--key: ")
    assert blank.stderr.startswith("name: blank")


def test_the_version_is_told() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"{version('sizer')}\n"

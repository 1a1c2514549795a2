"""Programs that others read the contract with: no error of theirs, and their clients work. Installed by npm."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.served import Served, served
from tests.workloads.page import SERVER, block

CONTRACT = Path(__file__).resolve().parents[2] / "openapi"
PROGRAMS = CONTRACT / "node_modules" / ".bin"
ASKING = """
import createClient from "openapi-fetch";
import type { paths } from "./sizer";
const client = createClient<paths, "application/json" | "application/problem+json">({ baseUrl: process.env.SIZER_URL ?? "" });
const question = { model: "llama-3.1-8b", gpu: "h100", concurrent_requests: 8, input_tokens: 1000, output_tokens: 100 };
const byGet = await client.GET("/size", { params: { query: question } });
const byPost = await client.POST("/size", { body: question });
const gpus: number[] = [byGet.data?.gpus ?? -1, byPost.data?.gpus ?? -1];
const refused = await client.GET("/size", { params: { query: { ...question, model: "no-such-model" } } });
const detail: string | undefined = refused.error?.detail;
console.log(gpus.join(" "), refused.response.status, detail !== undefined);
"""
WRONG = "const wrong: string = (await client.GET('/size', { params: { query: question } })).data!.gpus;\n"


def ran(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of npm in the contract's folder; without it, skip with the reason."""
    if shutil.which("node") is None or not (PROGRAMS / name).exists():
        pytest.skip(f"{name} is not installed here: make lint-openapi installs it")
    environment = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    return subprocess.run(
        [str(PROGRAMS / name), *arguments], check=False, capture_output=True, text=True, cwd=CONTRACT, env=environment
    )


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("programs")) as one:
        yield one


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("spectral", ["--ruleset", ".spectral.yaml", "--fail-severity", "error"]), ("redocly", ["--format=stylish"])],
)
def test_a_linter_finds_no_error(name: str, arguments: list[str], tmp_path: Path) -> None:
    good = ran(name, "lint", "openapi.json", *arguments)
    broken = tmp_path / "broken.json"
    broken.write_text('{"openapi": "3.1.0", "info": {"title": "x"}, "paths": {"/a": {"get": {}}}}', encoding="utf-8")

    assert good.returncode == 0, good.stdout + good.stderr
    assert ran(name, "lint", str(broken), *arguments).returncode != 0


def test_a_client_of_typescript_is_made_checked_and_asks(service: Served, tmp_path: Path) -> None:
    _, line = block("clients").lines
    name, address, *options, written = line.split()
    made = ran(name, address.replace(SERVER, service.url), *options, str(tmp_path / written))
    assert made.returncode == 0, made.stderr
    (tmp_path / "node_modules").symlink_to(CONTRACT / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (tmp_path / "ask.ts").write_text(ASKING, encoding="utf-8")
    (tmp_path / "wrong.ts").write_text(ASKING + WRONG, encoding="utf-8")
    options = [
        "--strict",
        "--target",
        "es2022",
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
        "--skipLibCheck",
    ]
    (tmp_path / "node.d.ts").write_text(
        "declare const process: { env: Record<string, string | undefined> };", encoding="utf-8"
    )
    declared = str(tmp_path / "node.d.ts")
    checked = ran("tsc", *options, declared, str(tmp_path / "ask.ts"))
    assert checked.returncode == 0, checked.stdout
    assert ran("tsc", *options, "--noEmit", declared, str(tmp_path / "wrong.ts")).returncode != 0

    asked = subprocess.run(
        ["node", str(tmp_path / "ask.js")], check=False, capture_output=True, text=True,
        env={**os.environ, "SIZER_URL": service.url},
    )  # fmt: skip

    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.split() == ["1", "1", "404", "true"]

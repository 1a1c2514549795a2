"""What stands around the code: compose file, image, locks, documents."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from benchmarks.promised import PROMISED
from benchmarks.promises import page

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "service" / "Dockerfile").read_text(encoding="utf-8")


def test_every_promise_has_a_test_or_a_benchmark_of_its_name() -> None:
    promises = [promise for section in PROMISED.values() for promise in section]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))

    assert len(promises) >= 100
    assert len({promise.words for promise in promises}) == len(promises)
    for promise in promises:
        file, _, name = promise.test.partition("::")
        if name:
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), promise
        else:
            assert promise.test.removeprefix("make ") in targets, promise


def test_the_page_of_promises_is_what_was_measured_last() -> None:
    assert (ROOT / "service" / "PROMISES.md").read_text(encoding="utf-8") == page(), "make promises"


def test_what_once_failed_failed_on_the_commit_it_was_seen_on_and_holds_now() -> None:
    results = ROOT / "benchmarks" / "results"
    seen = [
        json.loads((results / f"seen-{checkout}.json").read_text(encoding="utf-8")) for checkout in ("a9aece5", "now")
    ]
    probes = [
        name
        for file in sorted((ROOT / "benchmarks" / "seen").glob("test_*.py"))
        for name in re.findall(r"^def (test_\d+_\w+)", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    ]

    assert {int(name.split("_")[1]) for name in probes} == set(range(1, 11))
    for name in probes:
        before, now = (
            [line["holds"] for asked, line in checkout.items() if asked.partition("[")[0] == name] for checkout in seen
        )
        assert before, name
        assert not any(before), name
        assert now, name
        assert all(now), name


def test_the_licence_is_stated_and_its_text_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / project["license-files"][0]).read_text(encoding="utf-8")

    assert project["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "Apache-2.0" in README


def test_the_image_is_pinned_unprivileged_and_healthy() -> None:
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, flags=re.MULTILINE)

    assert all(":" in stage and not stage.endswith(":latest") for stage in stages)
    assert re.search(r"^USER (?!root|0$)\S+", DOCKERFILE, flags=re.MULTILINE)
    assert "HEALTHCHECK" in DOCKERFILE
    assert "--require-hashes" in DOCKERFILE
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, flags=re.MULTILINE):
        for name in source.split():
            assert (ROOT / name).exists(), name


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_locks_have_hashes_and_name_no_host(name: str) -> None:
    lock = (ROOT / name).read_text(encoding="utf-8")
    packages = re.findall(r"^[a-z0-9][^\s=]*==", lock, flags=re.MULTILINE)

    assert len(packages) > 20
    assert lock.count("--hash=sha256:") >= len(packages)
    assert "://" not in lock


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")

    for dependency in project["project"]["dependencies"]:
        name = re.split(r"[\[<>=]", dependency)[0]
        assert re.search(rf"^{re.escape(name)}(\[\w+\])?==", lock, flags=re.MULTILINE | re.IGNORECASE), name


def test_the_readme_is_short() -> None:
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    prose = "\n".join(line for line in prose.splitlines() if not line.lstrip().startswith(("|", "#")))

    assert len(prose.split()) < 500


def test_the_readme_s_questions_are_answered(client: TestClient) -> None:
    urls = re.findall(r"curl '127\.0\.0\.1:8000(/[^']+)'", README)

    assert len(urls) >= 3
    for url in urls:
        response = client.get(url)
        assert response.status_code == 200, (url, response.text)

"""What is delivered: the image, the compose file and the proxy's rules keep to a policy."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.image import Rehearsal, instructions
from service.settings import Settings
from tests.api.served import served

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "service" / "Dockerfile").read_text(encoding="utf-8")
PROXY = ROOT / "service" / "deploy" / "haproxy.cfg"
DIGEST = re.compile(r"[a-z]+:\d+\.\d+(\.\d+)?-[a-z0-9.-]+@sha256:[0-9a-f]{64}")
OURS = ("prepare", "sizer-1", "sizer-2")
HAS_PROXY = pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed here")


def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return document


def test_compose_starts_two_replicas_behind_a_proxy_on_a_healthy_postgresql() -> None:
    services = compose()["services"]

    assert "healthcheck" in services["postgres"]
    assert services["prepare"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert services["prepare"]["command"][-1] == "sizer migrate && sizer seed"
    for name in ("sizer-1", "sizer-2"):
        assert services[name]["depends_on"]["prepare"]["condition"] == "service_completed_successfully"
        assert services[name]["environment"]["SIZER_DATABASE_URL"].startswith("postgresql+psycopg://")
        assert services["proxy"]["depends_on"][name]["condition"] == "service_healthy"
        assert (ROOT / services[name]["build"]["dockerfile"]).is_file()
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]


@pytest.mark.parametrize("name", ["postgres", "proxy", *OURS])
def test_a_container_can_change_and_take_little(name: str) -> None:
    service = compose()["services"][name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "cpus", "pids_limit"} <= set(service)


def test_compose_has_no_password_of_its_own() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")

    assert set(re.findall(r"\$\{SIZER_POSTGRES_PASSWORD[^}]*\}", text)) == {
        "${SIZER_POSTGRES_PASSWORD:?set SIZER_POSTGRES_PASSWORD}"
    }


def test_a_password_may_hold_any_character() -> None:
    """libpq reads it from the environment as it is; a `@` or a `/` within the URL would end it there."""
    services = compose()["services"]

    for name in OURS:
        environment = services[name]["environment"]
        assert "$" not in environment["SIZER_DATABASE_URL"]
        assert environment["PGPASSWORD"] == services["postgres"]["environment"]["POSTGRES_PASSWORD"]


def test_every_setting_reaches_the_replicas() -> None:
    """Stated where compose runs or in `.env`, and absent where it is not; where files are and when to end is compose's."""
    environment = compose()["services"]["sizer-1"]["environment"]
    known = {f"SIZER_{name.upper()}" for name in Settings.model_fields}

    assert known - environment.keys() == {"SIZER_SNAPSHOT_PATH", "SIZER_TABLES_PATH", "SIZER_SHUTDOWN_SECONDS"}
    assert {name for name, value in environment.items() if value is None} == known & environment.keys() - {
        "SIZER_DATABASE_URL"
    }


def test_the_image_has_what_a_collector_is_told_with() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

    assert [one for one in extras["otel"] if f"\n{one.partition('>')[0]}==" not in lock] == []


def test_the_proxy_asks_again_where_a_replica_is() -> None:
    stated = PROXY.read_text(encoding="utf-8")

    assert "parse-resolv-conf" in stated
    assert re.search(r"^    default-server .* resolvers names ", stated, flags=re.MULTILINE)


def test_the_last_good_catalog_outlives_its_container_and_each_replica_has_its_own() -> None:
    document = compose()
    volumes = [document["services"][name]["volumes"][0] for name in ("sizer-1", "sizer-2")]

    assert volumes == ["state-1:/srv/sizer/var", "state-2:/srv/sizer/var"]
    assert {"state-1", "state-2"} <= set(document["volumes"])
    assert re.search(r"^VOLUME /srv/sizer/var$", DOCKERFILE, flags=re.MULTILINE)


def test_images_are_pinned_by_digest() -> None:
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, flags=re.MULTILINE)
    images = [service["image"] for service in compose()["services"].values() if "image" in service]

    assert len(stages) == len(images) == 2
    assert stages[0] == stages[1]
    for image in (*stages, *images):
        assert DIGEST.fullmatch(image), image


def test_the_image_is_unprivileged_and_compiles_what_it_runs() -> None:
    lines = DOCKERFILE.splitlines()

    assert re.search(r"^USER 10001$", DOCKERFILE, flags=re.MULTILINE)
    assert lines.index("USER 10001") < next(at for at, line in enumerate(lines) if "make_ready()" in line)
    assert "NUMBA_CACHE_DIR" in DOCKERFILE
    assert "--require-hashes" in DOCKERFILE


def test_the_image_s_own_commands_are_what_is_rehearsed() -> None:
    """`make image-rehearsal` runs them, in the order of the Dockerfile; here stands that it runs these and no others."""
    lines = list(instructions(DOCKERFILE))
    rehearsal = Rehearsal(root=Path("/somewhere"), environment={})
    said = [rest for word, rest in lines if word == "RUN"]
    done = [rehearsal.command(line).replace("/somewhere", "") for line in said]

    assert len(said) == DOCKERFILE.count("\nRUN ")
    assert [(line, ran) for line, ran in zip(said, done, strict=True) if line != ran] == [
        ("useradd --system --uid 10001 --create-home --home-dir /srv/sizer sizer", "mkdir -p /srv/sizer")
    ]
    with pytest.raises(ValueError, match="ADD is not rehearsed"):
        rehearsal.follow("ADD", "https://example.com/ /")


def test_the_proxy_gives_up_before_clients_hold_it_and_after_the_service_answered() -> None:
    stated = dict(re.findall(r"^\s+timeout (\S+) (\d+)s", PROXY.read_text(encoding="utf-8"), flags=re.MULTILINE))

    assert {"http-request", "client", "connect", "queue", "server", "http-keep-alive"} == set(stated)
    assert int(stated["server"]) > 30  # a question has as long
    assert int(stated["http-request"]) <= 10


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def proxied(*ports: int) -> Iterator[str]:
    """Run the proxy as compose does, in front of these replicas."""
    port = free_port()
    environment = {**os.environ, "SIZER_BIND": f"127.0.0.1:{port}"}
    environment |= {f"SIZER_{number}": f"127.0.0.1:{replica}" for number, replica in enumerate(ports, 1)}
    with subprocess.Popen(["haproxy", "-db", "-q", "-f", str(PROXY)], env=environment) as process:
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@HAS_PROXY
def test_a_replica_that_goes_costs_no_answer(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(served(tmp_path / "first"))
        going = ExitStack()
        second = going.enter_context(served(tmp_path / "second"))
        url = stack.enter_context(proxied(first.port, second.port))

        def asked(tokens: int) -> int:
            question = (
                f"{url}/size?model=qwen3-32b&gpu=h100&concurrent_requests=8&input_tokens={tokens}&output_tokens=90"
            )
            with urllib.request.urlopen(question, timeout=20) as response:  # noqa: S310 - a port of this machine
                return int(response.status)

        before = [asked(900) for _ in range(10)]
        going.close()
        after = [asked(900 + number) for number in range(10)]

    assert set(before) == set(after) == {200}


def test_the_bill_of_materials_names_every_locked_package_with_its_hash(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx_py", reason="installed by the newest development lock")
    bill = tmp_path / "sbom.json"
    command = [sys.executable, "-W", "ignore", "-m", "cyclonedx_py", "requirements", "--of", "JSON", "-o", str(bill)]
    subprocess.run([*command, str(ROOT / "requirements.lock")], check=True, capture_output=True)

    components = json.loads(bill.read_text(encoding="utf-8"))["components"]
    locked = re.findall(
        r"^([a-z0-9][^\s=\[]*)(?:\[.*?\])?==(\S+)",
        (ROOT / "requirements.lock").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )

    assert {(part["name"].lower(), part["version"]) for part in components} == set(locked)
    assert all(reference["hashes"] for part in components for reference in part["externalReferences"])

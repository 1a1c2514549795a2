"""Monitors' own programs read what is served: Prometheus scrapes and stores it, promtool and jq find nothing to mend."""

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.api.served import Served, served
from tests.conftest import API_KEY
from tests.workloads.page import HOST, SERVER, block
from tests.workloads.prometheus import free_port, is_ready, program, prometheus
from tests.workloads.test_outside import IMPOSSIBLE, QUESTION, call


class Watched(NamedTuple):
    """A service, and a Prometheus that scrapes it by the page's own configuration."""

    service: Served
    prometheus: str


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    with served(folder) as service:
        for name, question in {"chat": QUESTION, "impossible": IMPOSSIBLE}.items():
            call(service, f"/workloads/{name}", {"question": question}, method="PUT", x_api_key=API_KEY)
        call(service, "/workloads/chat/replicas")
        host = service.url.removeprefix("http://")
        (folder / "rules.yml").write_text(yaml.safe_dump(block("rule").document["spec"]), encoding="utf-8")
        text = block("scrape").text.replace(SERVER, service.url).replace(HOST, host)
        config = yaml.safe_load(text)
        config["scrape_configs"].append({"job_name": "itself", "static_configs": [{"targets": [host]}]})
        config |= {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["rules.yml"]}
        with prometheus(folder, yaml.safe_dump(config)) as (url, _):
            yield Watched(service, url)


def queried(watched: Watched, query: str, patience_s: float = 60) -> list[dict[str, Any]]:
    """Return what a query answers with, as soon as it does."""
    ends_at = time.monotonic() + patience_s
    while True:
        address = f"{watched.prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=30) as response:  # noqa: S310 - on this machine
            result: list[dict[str, Any]] = json.load(response)["data"]["result"]
        if result or time.monotonic() > ends_at:
            return result
        time.sleep(0.2)


def test_prometheus_discovers_workloads_and_stores_their_pods(watched: Watched) -> None:
    [series] = queried(watched, 'sizer_replicas{job="sizer",workload="chat"}')
    pods = json.loads(call(watched.service, "/workloads/chat/replicas")[2])["replicas"]

    assert float(series["value"][1]) == pods
    assert series["metric"]["instance"] == "chat"
    assert [it["value"][1] for it in queried(watched, 'probe_success{workload="impossible"}')] == ["0"]
    assert queried(watched, 'sizer_replicas{workload="impossible"}', patience_s=0) == []


def test_prometheus_stores_what_the_service_says_of_itself(watched: Watched) -> None:
    assert queried(watched, 'up{job="itself"} == 1')
    assert queried(watched, "sizer_catalog_revision")
    assert queried(watched, 'sizer_http_requests_total{route="/probe",status="200"}')


def test_an_alert_of_the_page_sees_a_workload_without_an_answer(watched: Watched) -> None:
    [pending] = queried(watched, 'ALERTS{alertname="WorkloadWithoutAnswer"}')

    assert pending["metric"]["workload"] == "impossible"


@pytest.mark.parametrize("path", ["/metrics", "/probe?target=chat", "/workloads/chat/replicas?format=prometheus"])
def test_promtool_finds_nothing_to_mend_in_a_page_of_series(watched: Watched, path: str) -> None:
    text = call(watched.service, path)[2]
    done = subprocess.run([program("promtool"), "check", "metrics"], check=False, capture_output=True, input=text)

    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()


def test_promtool_reads_the_page_s_rules_and_configuration(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(block("rule").document["spec"]), encoding="utf-8")
    (tmp_path / "prometheus.yml").write_text(block("scrape").text, encoding="utf-8")
    for what, file in (("rules", "rules.yml"), ("config", "prometheus.yml")):
        done = subprocess.run(
            [program("promtool"), "check", what, str(tmp_path / file)], check=False, capture_output=True
        )
        assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()


def test_jq_reads_a_number(watched: Watched) -> None:
    text = call(watched.service, "/workloads/chat/replicas")[2]
    done = subprocess.run(
        [program("jq"), "-e", ".replicas + .gpus_per_replica"], check=True, capture_output=True, input=text
    )

    assert int(done.stdout) >= 2


def test_a_probe_answers_as_the_blackbox_exporter_itself(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "modules.yml").write_text("modules: {http_2xx: {prober: http}}", encoding="utf-8")
    port = free_port()
    options = [f"--config.file={tmp_path / 'modules.yml'}", f"--web.listen-address=127.0.0.1:{port}"]
    exporter = subprocess.Popen([program("prometheus-blackbox-exporter"), *options], stderr=subprocess.DEVNULL)
    theirs = Served(port, watched.service.app)
    try:
        ends_at = time.monotonic() + 30
        while not is_ready(theirs.url, "/-/healthy"):
            assert time.monotonic() < ends_at
            time.sleep(0.05)
        asked = "/workloads/{}/replicas"
        good, bad = (
            call(theirs, f"/probe?target={watched.service.url}{asked.format(name)}") for name in ("chat", "nobody")
        )
        refused = [call(theirs, path)[0] for path in ("/probe", "/probe?target=chat&module=icmp")]
    finally:
        exporter.kill()
        exporter.wait()
    ours = call(watched.service, "/probe?target=chat")

    assert b"\nprobe_success 1\n" in good[2]
    assert b"\nprobe_success 0\n" in bad[2]
    assert ours[0] == good[0] == call(watched.service, "/probe?target=nobody")[0] == bad[0]
    assert ours[1]["content-type"] == next(value for name, value in good[1].items() if name.lower() == "content-type")
    assert [call(watched.service, path)[0] for path in ("/probe", "/probe?target=chat&module=icmp")] == refused
    for name in (b"probe_success", b"probe_duration_seconds"):
        assert all(b"# TYPE " + name + b" gauge\n" in told[2] for told in (good, ours))

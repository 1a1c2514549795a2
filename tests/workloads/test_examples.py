"""The page of examples is true: manifests keep the published schemas, addresses are answered."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import jsonschema_rs
import pytest
import yaml
from starlette.testclient import TestClient

from service.cli import app as commands
from tests.api.served import served
from tests.conftest import API_KEY, seeded_service, service_settings
from tests.workloads.test_workloads import QUESTION

ROOT: Final = Path(__file__).resolve().parents[2]
SCHEMAS: Final = ROOT.parent / "shared" / "schemas"
PAGE: Final = (ROOT / "service" / "EXAMPLES.md").read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
SERVER: Final = "http://sizer:8000"


def manifests() -> dict[str, Any]:
    """Return every manifest of the page by its kind."""
    documents = [yaml.safe_load(text) for kind, text in BLOCKS if kind == "yaml"]
    return {document.get("kind", "prometheus.yml"): document for document in documents}


def schema_of(kind: str) -> dict[str, Any]:
    """Return the published schema of a kind; without the files, skip with the reason."""
    file = {
        "ScaledObject": "keda_scaledobject_crd.yaml",
        "TriggerAuthentication": "keda.sh_triggerauthentication_v1alpha1.json",
        "ServiceMonitor": "monitoring.coreos.com_servicemonitor_v1.json",
        "PrometheusRule": "monitoring.coreos.com_prometheusrule_v1.json",
    }[kind]
    if not (SCHEMAS / file).is_file():
        pytest.skip(f"the published schema {file} is not on this machine")
    document: dict[str, Any] = yaml.safe_load((SCHEMAS / file).read_text(encoding="utf-8"))
    if "spec" in document:  # a definition of a resource: its one version holds the schema
        [version] = document["spec"]["versions"]
        document = version["schema"]["openAPIV3Schema"]
    return document


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A service with the page's workload, written by the page's own line."""
    with seeded_service(service_settings(tmp_path_factory.mktemp("examples"))) as client:
        client.headers["X-API-Key"] = API_KEY
        [line] = [line for line in lines("bash") if "-X PUT" in line]
        assert asked(client, line).status_code == 201
        yield client


def lines(kind: str) -> list[str]:
    return [line for block, text in BLOCKS if block == kind for line in text.splitlines() if line]


def asked(client: TestClient, line: str) -> httpx2.Response:
    """Send what a line of curl sends."""
    words = shlex.split(line)
    assert words[0] == "curl"
    [url] = [word for word in words if word.startswith(SERVER)]
    body = words[words.index("--json") + 1] if "--json" in words else None
    headers = {"content-type": "application/json"} if body else {}
    if "--data-binary" in words:
        [body] = [text for kind, text in BLOCKS if kind == "csv"]
        headers = {"content-type": "text/csv"}
    method = words[words.index("-X") + 1] if "-X" in words else "POST" if body else "GET"
    return client.request(method, url.removeprefix(SERVER), content=body, headers=headers)


@pytest.mark.parametrize("kind", ["ScaledObject", "TriggerAuthentication", "ServiceMonitor", "PrometheusRule"])
def test_a_manifest_keeps_its_published_schema(kind: str) -> None:
    validator = jsonschema_rs.validator_for(schema_of(kind))

    assert [str(error) for error in validator.iter_errors(manifests()[kind])] == []
    broken = json.loads(json.dumps(manifests()[kind]))
    broken["spec"] = "none"
    assert not validator.is_valid(broken)


def test_the_trigger_s_fields_are_those_of_the_scaler() -> None:
    file = SCHEMAS / "keda_scalers.json"
    if not file.is_file():
        pytest.skip("the published fields of scalers are not on this machine")
    [scaler] = [it for it in json.loads(file.read_text(encoding="utf-8"))["scalers"] if it["type"] == "metrics-api"]
    [trigger] = manifests()["ScaledObject"]["spec"]["triggers"]
    # How a key is sent is told of every scaler in one place: kedacore/keda, `pkg/scalers/authentication`.
    known = {it["name"] for it in scaler["parameters"]} | {"authMode", "method", "keyParamName"}

    assert set(trigger["metadata"]) <= known
    assert all(isinstance(value, str) for value in trigger["metadata"].values())


def test_the_trigger_s_address_holds_a_number_at_its_location(service: TestClient) -> None:
    [trigger] = manifests()["ScaledObject"]["spec"]["triggers"]
    response = service.get(trigger["metadata"]["url"].removeprefix(SERVER))

    assert response.status_code == 200
    assert response.json()[trigger["metadata"]["valueLocation"]] >= 1


def test_what_prometheus_is_told_to_scrape_is_there(service: TestClient) -> None:
    [job] = manifests()["prometheus.yml"]["scrape_configs"]
    [discovery] = job["http_sd_configs"]
    [endpoint] = manifests()["ServiceMonitor"]["spec"]["endpoints"]
    targets = service.get(discovery["url"].removeprefix(SERVER)).json()
    probed = service.get(job["metrics_path"], params={"target": targets[0]["targets"][0]}).text

    assert endpoint["params"]["target"] == targets[0]["targets"] == ["chat"]
    assert 'probe_success{workload="chat"} 1.0' in probed
    metric = manifests()["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["external"]["metric"]
    assert f"{metric['name']}{{" in probed


def test_an_application_set_reads_parameters_that_are_there(service: TestClient) -> None:
    spec = manifests()["ApplicationSet"]["spec"]
    body = {"applicationSetName": "inference", "input": spec["generators"][0]["plugin"]["input"]}
    [parameters] = service.post("/api/v1/getparams.execute", json=body).json()["output"]["parameters"]
    read = re.findall(r"\{\{ \.(\w+) \}\}", json.dumps(spec["template"]))

    assert manifests()["ConfigMap"]["data"]["baseUrl"] == SERVER
    assert len(read) >= 3
    assert set(read) <= set(parameters)


@pytest.mark.parametrize("line", [line for line in lines("bash") if line.startswith("curl") and "-X" not in line])
def test_a_line_of_curl_is_answered(service: TestClient, line: str) -> None:
    response = asked(service, line)

    assert response.status_code == 200, response.text
    if ":batch" in line:
        assert {it["status"] for it in response.json()["answers"]} == {200}


def test_a_sheet_reads_a_table_and_a_number(service: TestClient) -> None:
    paths = [re.findall(r'"(.*)"', line)[0].removeprefix(SERVER) for line in lines("text")]
    *tables, number = [service.get(path).text for path in paths]

    assert [len(table.splitlines()) > 2 for table in tables] == [True, True]
    assert int(number) >= 1


def test_terraform_reads_what_is_there(service: TestClient) -> None:
    [text] = [text for kind, text in BLOCKS if kind == "hcl"]
    address = re.search(r'url = "(.*)"', text)
    assert address
    path = address[1].removeprefix(SERVER)

    assert service.get(path).json()["replicas"] >= 1
    assert "detail" in service.get(path.replace("chat", "nobody")).json()


def test_the_client_of_the_page_asks(tmp_path: Path) -> None:
    [text] = [text for kind, text in BLOCKS if kind == "python"]
    with served(tmp_path) as service:
        url = f"{service.url}/workloads/chat"
        httpx2.put(url, json={"question": QUESTION}, headers={"x-api-key": API_KEY}).raise_for_status()
        names: dict[str, Any] = {}
        exec(text.replace(SERVER, service.url).replace("sizer_...", API_KEY), names)  # noqa: S102 - the page's own

    assert names["pods"] >= 1


def test_every_command_of_the_page_is_one() -> None:
    named = {tuple(line.split()[1:3]) for line in lines("bash") if line.startswith("sizer")}
    groups = {group.name: group.typer_instance for group in commands.registered_groups}
    assert groups["keys"] is not None

    assert named == {("keys", command.name) for command in groups["keys"].registered_commands}

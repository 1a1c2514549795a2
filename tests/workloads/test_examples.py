"""The page of examples is true: it is written from the blocks that are replayed here, each by whom it is for."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Any, Final

import httpx2
import jsonschema_rs
import pytest
import yaml
from typer.testing import CliRunner

from service.access.commands import keys
from service.cli import app as commands
from service.settings import Settings
from tests.api.served import Served, served
from tests.conftest import API_KEY
from tests.workloads.page import HOST, KEY_SHOWN, QUESTIONS_FILE, SERVER, WORKLOAD, block, blocks, page
from tests.workloads.prometheus import program, prometheus, with_past

ROOT: Final = Path(__file__).resolve().parents[2]
SCHEMAS: Final = ROOT.parent / "shared" / "schemas"
PATIENCE_S: Final = 300
PUBLISHED: Final = {
    "keda": "keda_scaledobject_crd.yaml",
    "keda_key": "keda.sh_triggerauthentication_v1alpha1.json",
    "monitor": "monitoring.coreos.com_servicemonitor_v1.json",
    "rule": "monitoring.coreos.com_prometheusrule_v1.json",
}


def test_the_page_is_what_the_blocks_write() -> None:
    assert (ROOT / "service" / "EXAMPLES.md").read_text(encoding="utf-8") == page(), "make examples"


def test_every_block_of_the_page_is_replayed_by_a_test() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    replayed = {name for text in texts for name in re.findall(r'block\("(\w+)"\)', text)} | set(PUBLISHED)

    assert set(blocks()) - replayed == set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Served]:
    """A service with the page's workload, written by the page's own line."""
    (folder / QUESTIONS_FILE).write_text(block("questions").text, encoding="utf-8")
    with served(folder) as one:
        [line] = block("put").lines
        assert json.loads(typed(one, folder, line))["version"] == 1
        yield one


def typed(service: Served, folder: Path, line: str) -> str:
    """Return what a line prints that is typed into a shell, with the address and the key of this service."""
    environment = {**os.environ, "KEY": API_KEY}
    done = subprocess.run(
        ["bash", "-euc", line.replace(SERVER, service.url)], check=True, capture_output=True, text=True, cwd=folder,
        env=environment,
    )  # fmt: skip
    return done.stdout


def sizer(line: str, **environment: str) -> str:
    """Return what a command of ours prints."""
    words = shlex.split(line)
    assert words[0] == "sizer"
    done = CliRunner().invoke(commands, words[1:], env=environment)
    assert done.exit_code == 0, done.output
    return done.stdout


def at(service: Served, address: str, **headers: str) -> httpx2.Response:
    """Ask at an address of the page."""
    return httpx2.get(address.replace(SERVER, service.url), timeout=PATIENCE_S, headers=headers)


def schema_of(file: str) -> dict[str, Any]:
    """Return a published schema; without the files, skip with the reason."""
    if not (SCHEMAS / file).is_file():
        pytest.skip(f"the published schema {file} is not on this machine")
    document: dict[str, Any] = yaml.safe_load((SCHEMAS / file).read_text(encoding="utf-8"))
    if "spec" in document:  # a definition of a resource: its one version holds the schema
        [version] = document["spec"]["versions"]
        document = version["schema"]["openAPIV3Schema"]
    return document


@pytest.mark.parametrize(("name", "file"), PUBLISHED.items(), ids=PUBLISHED)
def test_a_manifest_keeps_its_published_schema(name: str, file: str) -> None:
    validator = jsonschema_rs.validator_for(schema_of(file))
    manifest = yaml.safe_load(block(name).text)

    assert [str(error) for error in validator.iter_errors(manifest)] == []
    assert not validator.is_valid({**manifest, "spec": "none"})


def test_the_trigger_s_fields_are_those_of_the_scaler() -> None:
    file = SCHEMAS / "keda_scalers.json"
    if not file.is_file():
        pytest.skip("the published fields of scalers are not on this machine")
    [scaler] = [one for one in json.loads(file.read_text(encoding="utf-8"))["scalers"] if one["type"] == "metrics-api"]
    [trigger] = block("keda").document["spec"]["triggers"]
    # How a key is sent is told of every scaler in one place: kedacore/keda, `pkg/scalers/authentication`.
    known = {parameter["name"] for parameter in scaler["parameters"]} | {"authMode", "method", "keyParamName"}

    assert set(trigger["metadata"]) <= known
    assert all(isinstance(value, str) for value in trigger["metadata"].values())


def test_the_trigger_s_address_holds_a_number_at_its_location(service: Served) -> None:
    [trigger] = yaml.safe_load(block("keda").text)["spec"]["triggers"]
    asked = trigger["metadata"]
    response = at(service, asked["url"], **{asked["keyParamName"]: API_KEY})

    assert response.status_code == 200
    assert response.json()[asked["valueLocation"]] >= 1
    [secret] = block("keda_key").document["spec"]["secretTargetRef"]
    assert secret["parameter"] == asked["authMode"]
    assert trigger["authenticationRef"]["name"] == block("keda_key").document["metadata"]["name"]


def test_what_prometheus_is_told_to_scrape_is_there(service: Served) -> None:
    [job] = yaml.safe_load(block("scrape").text)["scrape_configs"]
    [discovery] = job["http_sd_configs"]
    [endpoint] = block("monitor").document["spec"]["endpoints"]
    targets = at(service, discovery["url"]).json()
    probed = at(service, f"{service.url}{job['metrics_path']}?target={targets[0]['targets'][0]}").text

    assert endpoint["params"]["target"] == targets[0]["targets"] == [WORKLOAD]
    assert endpoint["path"] == job["metrics_path"]
    assert job["relabel_configs"][-1]["replacement"] == HOST
    assert 'probe_success{workload="chat"} 1.0' in probed
    metric = block("hpa").document["spec"]["metrics"][0]["external"]["metric"]
    [[label, value]] = metric["selector"]["matchLabels"].items()
    assert re.search(rf'^{metric["name"]}{{.*{label}="{value}".*}} [1-9]', probed, flags=re.MULTILINE)


def test_pods_of_sizer_do_not_add(tmp_path: Path) -> None:
    """The chart runs two, and a ServiceMonitor scrapes each; an HPA adds the values of an external metric."""
    [rule] = yaml.safe_load(block("adapter").text)["externalRules"]
    metric = block("hpa").document["spec"]["metrics"][0]["external"]["metric"]
    [(label, value)] = metric["selector"]["matchLabels"].items()
    matchers = f'{label}="{value}"'
    asked = rule["metricsQuery"].replace("<<.Series>>", metric["name"]).replace("<<.LabelMatchers>>", matchers)
    alert, missing = (one["expr"] for one in block("rule").document["spec"]["groups"][0]["rules"])
    now = time()
    pods = {
        f'sizer_replicas{{workload="{workload}",instance="{pod}"}}': [(now, number)]
        for workload, number in (("chat", 4), ("other", 9)) for pod in ("a", "b")
    }  # fmt: skip
    probes = {f'probe_success{{job="sizer",workload="chat",instance="{pod}"}}': [(now, 0)] for pod in ("a", "b")}
    running = {
        f'kube_deployment_status_replicas{{deployment="{WORKLOAD}",namespace="{namespace}",instance="{one}"}}': [(now, n)]
        for namespace, n in (("production", 1), ("staging", 2)) for one in ("a", "b")
    }  # fmt: skip
    with_past(tmp_path, {**pods, **probes, **running})

    with prometheus(tmp_path) as (url, _):
        told = [
            httpx2.get(f"{url}/api/v1/query", params={"query": query, "time": str(now)}).json()["data"]["result"]
            for query in (asked, missing, alert)
        ]

    assert rule["seriesQuery"] == metric["name"]
    assert [sorted(float(one["value"][1]) for one in result) for result in told] == [[4], [2, 3], [0]]
    assert {one["metric"]["namespace"]: float(one["value"][1]) for one in told[1]} == {"production": 3, "staging": 2}


@pytest.mark.parametrize("name", ["keda", "hpa"])
def test_an_autoscaler_follows_the_number_beyond_ten_pods(name: str) -> None:
    """Within its tolerance, a tenth where none is stated, an autoscaler does nothing: 12 pods of 11 is such a step."""
    spec = block(name).document["spec"]
    behavior = spec["behavior"] if name == "hpa" else spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    most = spec.get("maxReplicas", spec.get("maxReplicaCount"))

    assert most / (most - 1) - 1 > behavior["scaleUp"]["tolerance"]
    assert 1 - (most - 1) / most > behavior["scaleDown"]["tolerance"]


def test_an_application_set_reads_parameters_that_are_there(service: Served) -> None:
    spec = yaml.safe_load(block("applications").text)["spec"]
    plugin = block("plugin").document
    generator = spec["generators"][0]["plugin"]
    base = plugin["data"]["baseUrl"].replace(SERVER, service.url)
    body = {"applicationSetName": "inference", "input": generator["input"]}
    headers = {"authorization": f"Bearer {API_KEY}"}
    answer = httpx2.post(f"{base}/api/v1/getparams.execute", json=body, headers=headers)
    [parameters] = answer.json()["output"]["parameters"]
    read = re.findall(r"\{\{ \.(\w+) \}\}", json.dumps(spec["template"]))

    assert generator["configMapRef"]["name"] == plugin["metadata"]["name"]
    assert len(read) >= 3
    assert set(read) <= set(parameters)


@pytest.mark.parametrize("line", [*block("shell").lines, *block("batch").lines, *block("batch_of_rows").lines])
def test_a_line_of_curl_is_answered(service: Served, folder: Path, line: str) -> None:
    said = typed(service, folder, line.replace("curl ", "curl --silent --show-error --fail-with-body "))

    if ":batch" in line:
        assert {one["status"] for one in json.loads(said)["answers"]} == {200}
    elif "field=" in line:
        assert int(said) >= 1
    else:
        assert "h100-sxm-80gb" in said


def test_a_sheet_reads_a_table_and_a_number(service: Served) -> None:
    addresses = [re.findall(r'"(.*)"', line)[0] for line in block("sheets").lines]
    *tables, number = [at(service, address).text for address in addresses]

    assert [len(table.splitlines()) > 2 for table in tables] == [True, True]
    assert int(number) >= 1


def test_terraform_reads_what_is_there(service: Served, tmp_path: Path) -> None:
    """The program itself formats the block and evaluates its expressions; the provider is not in any registry here."""
    (tmp_path / "main.tf").write_text(block("terraform").text, encoding="utf-8")
    found = dict(re.findall(r"^ +(url|value|condition|error_message) += (.*)$", block("terraform").text, re.MULTILINE))
    address = json.loads(found["url"])
    replies = {"good": at(service, address), "bad": at(service, address.replace(WORKLOAD, "nobody"))}
    expressions = {
        name: (
            found["value"].replace(f"data.http.{WORKLOAD}.response_body", json.dumps(reply.text)),
            found["condition"].replace("self.status_code", str(reply.status_code)),
        )
        for name, reply in replies.items()
    }
    reason = found["error_message"].replace("self.response_body", json.dumps(replies["bad"].text))

    assert replies["good"].json()["replicas"] >= 1
    assert "nobody" in replies["bad"].json()["detail"]
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not installed here")
    subprocess.run([program("terraform"), "fmt", "-check", "-diff", "main.tf"], check=True, cwd=tmp_path)
    (tmp_path / "main.tf").unlink()  # its provider would have to be installed
    asked = [*expressions["good"], expressions["bad"][1], reason]
    done = subprocess.run(
        [program("terraform"), "console"], check=True, capture_output=True, text=True, cwd=tmp_path,
        input=f"jsonencode([{', '.join(asked)}])",
    )  # fmt: skip
    told = [replies["good"].json()["replicas"], True, False, replies["bad"].json()["detail"]]
    assert json.loads(json.loads(done.stdout)) == told


def test_the_client_of_the_page_asks(service: Served) -> None:
    names: dict[str, Any] = {}
    exec(block("python").text.replace(SERVER, service.url).replace(KEY_SHOWN, API_KEY), names)  # noqa: S102 - the page's own

    assert names["pods"] >= 1


def test_commands_ask_the_running_service(service: Served, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    one, many = (sizer(line.replace(SERVER, service.url)) for line in block("commands").lines)

    assert json.loads(one)["gpus"] == 1
    assert len(many.splitlines()) == 1 + len(block("questions").rows)


def test_commands_make_list_and_revoke_a_key(service: Served) -> None:
    settings: Settings = service.app.state.settings
    environment = {"SIZER_DATABASE_URL": settings.database_url}
    create, listed, revoke = block("keys").lines
    key = sizer(create, **environment).strip()
    own_id = key.split("_")[1]

    assert re.search(rf"^{own_id}  read .* keda of production$", sizer(listed, **environment), re.MULTILINE)
    assert own_id in sizer(revoke.replace("0123456789ab", own_id), **environment)
    assert re.search(rf"^{own_id}  read   revoked ", sizer(listed, **environment), re.MULTILINE)
    named = {tuple(line.split()[1:3]) for line in block("keys").lines}
    assert named == {("keys", command.name) for command in keys.registered_commands}


@pytest.mark.parametrize("line", [*block("traces").lines, *block("tokens").lines])
def test_a_variable_of_the_page_is_a_setting(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    export, *stated = shlex.split(line)
    variables = dict(word.split("=", 1) for word in stated)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    read = Settings().model_dump(mode="json")

    assert export == "export"
    assert {name: read[name.removeprefix("SIZER_").lower()] for name in variables} == variables

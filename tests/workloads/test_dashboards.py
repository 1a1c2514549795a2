"""What a dashboard of Grafana and a portal of Backstage ask is answered as they read it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from starlette.testclient import TestClient

from service.main import create_app
from service.settings import Settings
from tests.conftest import API_KEY, seeded_service, service_settings
from tests.workloads.test_workloads import QUESTION, put

PLACE: Final = Path(__file__).resolve().parents[2] / "openapi"
DASHBOARD: Final[dict[str, Any]] = json.loads((PLACE / "grafana/dashboards/sizer.json").read_text(encoding="utf-8"))
[SOURCE] = yaml.safe_load((PLACE / "grafana/provisioning/datasources/sizer.yaml").read_text(encoding="utf-8"))[
    "datasources"
]
VARIABLES: Final = {it["name"]: it for it in DASHBOARD["templating"]["list"]}
TARGETS: Final = [
    (panel["title"], target) for panel in DASHBOARD["panels"] for target in panel["targets"] if "url" in target
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with seeded_service(service_settings(tmp_path_factory.mktemp("dashboards"))) as client:
        client.headers["X-API-Key"] = API_KEY
        assert put(client, "chat", {**QUESTION, "tpot_s": 0.05}).status_code == 201
        yield client


def rows_of(service: TestClient, target: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what Infinity's backend parser finds: an array at the root selector, or one object."""
    response = service.get(target["url"].replace("${workload}", "chat"))
    assert response.status_code == 200, response.text
    document = response.json()
    for part in filter(None, target["root_selector"].split(".")):
        document = document[part]
    return document if isinstance(document, list) else [document]


@pytest.mark.parametrize(("title", "target"), TARGETS, ids=[title for title, _ in TARGETS])
def test_a_panel_s_columns_are_there_flat_and_of_their_type(
    service: TestClient, title: str, target: dict[str, Any]
) -> None:
    rows = rows_of(service, target)

    assert rows, title
    for column in target["columns"]:
        values = [row[column["selector"]] for row in rows]
        kinds = (int, float) if column["type"] == "number" else (str, int, float, bool)
        assert all(value is None or isinstance(value, kinds) for value in values), column
        assert any(value is not None for value in values), column


def test_the_variable_lists_the_workloads(service: TestClient) -> None:
    query = VARIABLES["workload"]["query"]["infinityQuery"]

    assert [row[query["columns"][0]["selector"]] for row in rows_of(service, query)] == ["chat"]
    assert [column["text"] for column in query["columns"]] == ["__text", "__value"]


def test_series_of_a_panel_are_those_that_a_probe_tells(service: TestClient) -> None:
    probed = service.get("/probe?target=chat").text
    asked = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"] if "expr" in target]

    assert len(asked) == 2
    for expression in asked:
        assert re.search(rf'^{expression.partition("{")[0]}{{.*workload="chat"', probed, flags=re.MULTILINE)


def test_everything_a_panel_names_is_provisioned() -> None:
    named = {target["datasource"]["uid"] for _, target in TARGETS} | {VARIABLES["workload"]["datasource"]["uid"]}
    used = set(re.findall(r"\$\{(\w+)\}", json.dumps(DASHBOARD))) | set(re.findall(r"\$(\w+)", json.dumps(DASHBOARD)))

    assert named == {SOURCE["uid"]}
    assert {target["datasource"]["type"] for _, target in TARGETS} == {SOURCE["type"]}
    assert used == set(VARIABLES)
    assert SOURCE["url"] in SOURCE["jsonData"]["allowedHosts"]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_backstage_reads_a_contract_with_absolute_servers() -> None:
    documents = list(yaml.safe_load_all((PLACE / "catalog-info.yaml").read_text(encoding="utf-8")))
    [address] = [it["spec"]["definition"]["$text"] for it in documents if it["kind"] == "API"]
    contract = create_app(Settings(public_url=address.removesuffix("/openapi.json"))).openapi()

    assert [server["url"] for server in contract["servers"]] == ["http://sizer:8000"]
    assert contract["openapi"].startswith("3.1")
    assert documents[0]["spec"]["providesApis"] == [documents[1]["metadata"]["name"]]
    assert all({"name"} <= set(it["metadata"]) and it["spec"]["owner"] for it in documents)

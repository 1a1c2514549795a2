"""What autoscalers, monitors and deployers read of workloads, by their own rules, over a real socket."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from tests.api.served import Served, served
from tests.conftest import API_KEY

QUESTION: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100",
    "tensor_parallel_size": 1,
    "concurrent_requests": 800,
    "input_tokens": 1000,
    "output_tokens": 100,
}
WORKLOADS = {"chat": QUESTION, "small": {**QUESTION, "concurrent_requests": 1}}
NO_LOAD = {name: value for name, value in QUESTION.items() if name != "concurrent_requests"}
IMPOSSIBLE = {**QUESTION, "model": "llama-3.1-70b", "gpu": "l4", "pipeline_parallel_size": 1}


def call(service: Served, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Ask as a program without any framework does."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else json.dumps(body).encode()
    method = named.pop("method", "GET" if body is None else "POST")
    if data is not None:
        named["content-type"] = "application/json"
    request = urllib.request.Request(service.url + path, data, named, method=method)  # noqa: S310 - http, of our own
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - as above
            return response.status, dict(response.headers), response.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("outside")) as one:
        for name, question in {**WORKLOADS, "impossible": IMPOSSIBLE, "roomy": NO_LOAD}.items():
            status, _, answer = call(one, f"/workloads/{name}", {"question": question}, method="PUT", x_api_key=API_KEY)
            assert status == 201, answer
        call(one, "/workloads/chat/replicas")  # KEDA's three seconds are of a service that has begun
        yield one


def at(document: Any, location: str) -> Any:
    """Return the value at a path, as KEDA's valueLocation is read: dots between names."""
    for part in location.split("."):
        document = document[part]
    return document


@pytest.mark.parametrize("query", ["", "?request_rate_per_s=38", "?concurrent_requests=3000"])
def test_keda_reads_a_whole_number_at_its_location(service: Served, query: str) -> None:
    """Source: kedacore/keda, `pkg/scalers/metrics_api_scaler.go`: bare GET, status 200 alone, a number at the path."""
    status, headers, body = call(service, f"/workloads/chat/replicas{query}")
    value = at(json.loads(body), "replicas")

    assert status == 200
    assert headers["content-type"] == "application/json"
    assert type(value) is int
    assert value >= 1
    assert at(json.loads(body), "per_pod.max_concurrent_requests") >= 1


@pytest.mark.parametrize(
    "path", ["/workloads/impossible/replicas", "/workloads/nobody/replicas", "/workloads/chat/replicas?ttft_s=0.000001"]
)
def test_keda_is_told_4xx_where_there_is_no_number(service: Served, path: str) -> None:
    """So that its `fallback` acts, and nothing is scaled to zero."""
    status, headers, body = call(service, path)

    assert 400 <= status < 500
    assert headers["content-type"] == "application/problem+json"
    assert "replicas" not in json.loads(body)


def test_keda_s_key_is_read_from_either_header(service: Served) -> None:
    for headers in ({"x_api_key": API_KEY}, {"authorization": f"Bearer {API_KEY}"}):
        assert call(service, "/workloads/chat/replicas", **headers)[0] == 200
    assert call(service, "/workloads/chat/replicas", x_api_key="none")[0] == 401


def test_a_probe_is_always_200_with_its_success(service: Served) -> None:
    families = {}
    for target in ("chat", "impossible", "nobody"):
        status, headers, body = call(service, f"/probe?target={target}")
        assert status == 200
        assert headers["content-type"].startswith("text/plain; version=0.0.4")
        families[target] = {family.name: family for family in text_string_to_metric_families(body.decode())}

    assert {name: it["probe_success"].samples[0].value for name, it in families.items()} == {
        "chat": 1, "impossible": 0, "nobody": 0,
    }  # fmt: skip
    assert families["chat"]["sizer_replicas"].samples[0].labels["workload"] == "chat"
    assert set(families["impossible"]) == {"probe_success", "probe_duration_seconds"}
    assert call(service, "/probe?target=chat&module=icmp")[0] == 400
    assert call(service, "/probe")[0] == 400


@pytest.mark.parametrize(
    ("query", "field", "accepted"),
    [
        ("target=chat&request_rate_per_s=400", "request_rate_per_s", "module, target"),
        ("target=chat&modul=size", "modul", "did you mean module?"),
    ],
)
def test_a_probe_ignores_nothing(service: Served, query: str, field: str, accepted: str) -> None:
    """A load that is not read would be answered with the pods of another load."""
    status, _, body = call(service, f"/probe?{query}")
    [fault] = json.loads(body)["errors"]

    assert status == 422
    assert (fault["field"], fault["accepted"]) == (field, accepted)


def test_one_scrape_of_many_workloads_has_no_series_twice(service: Served) -> None:
    text = "".join(call(service, f"/probe?target={name}")[2].decode() for name in WORKLOADS)
    series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]

    assert len(series) == len(set(series)) > 10


def test_workloads_are_discovered_in_http_sd_s_shape(service: Served) -> None:
    status, headers, body = call(service, "/sd")
    groups = json.loads(body)

    assert status == 200
    assert headers["content-type"] == "application/json"
    assert [it["targets"] for it in groups] == [["chat"], ["impossible"], ["small"]]
    assert all(isinstance(value, str) for it in groups for value in it["labels"].values())
    assert groups[0]["labels"]["__meta_sizer_model"] == "llama-3.1-8b"


def test_what_never_has_pods_is_discovered_for_what_it_answers(service: Served) -> None:
    found = {
        query: [name for group in json.loads(call(service, f"/sd{query}")[2]) for name in group["targets"]]
        for query in ("", "?module=replicas", "?module=capacity")
    }
    probed = call(service, "/probe?target=roomy&module=capacity")[2].decode()

    assert json.loads(call(service, "/workloads/roomy")[2])["answers"] == ["capacity"]
    assert "roomy" not in found[""]
    assert found[""] == found["?module=replicas"]
    assert "roomy" in found["?module=capacity"]
    assert 'probe_success{workload="roomy"} 1.0' in probed
    assert call(service, "/sd?module=icmp")[0] == 400
    assert call(service, "/sd?modul=size")[0] == 422


def test_argo_cd_s_list_leaves_out_what_never_has_pods(writable: TestClient) -> None:
    for name, question in {"chat": QUESTION, "roomy": NO_LOAD}.items():
        assert writable.put(f"/workloads/{name}", json={"question": question}).status_code == 201
    every = writable.post("/api/v1/getparams.execute", json={"input": {}})
    named = writable.post("/api/v1/getparams.execute", json={"input": {"parameters": {"workload": "roomy"}}})

    assert [one["workload"] for one in every.json()["output"]["parameters"]] == ["chat"]
    assert (named.status_code, named.json()["detail"].startswith("workload roomy: ")) == (422, True)


def test_argo_cd_reads_flat_parameters(service: Served) -> None:
    asked = {"applicationSetName": "inference", "input": {"parameters": {"workload": "chat"}}}
    status, _, body = call(service, "/api/v1/getparams.execute", asked, authorization=f"Bearer {API_KEY}")
    [parameters] = json.loads(body)["output"]["parameters"]

    assert status == 200
    assert parameters["workload"] == "chat"
    assert parameters["replicas"] == json.loads(call(service, "/workloads/chat/replicas")[2])["replicas"]
    assert all(isinstance(value, str | int | float | bool) for value in parameters.values())


@pytest.mark.parametrize(
    ("parameters", "field", "accepted"),
    [
        ({"workload": "chat", "request_rate_per_s": 400}, "request_rate_per_s", "workload"),
        ({"workloads": "chat"}, "workloads", "did you mean workload?"),
        ({"workload": ["chat"]}, "workload", 'the name of one workload, such as "chat"'),
        ({"workload": {"name": "chat"}}, "workload", 'the name of one workload, such as "chat"'),
        ({"workload": 7}, "workload", 'the name of one workload, such as "chat"'),
    ],
)
def test_argo_cd_s_parameters_are_read_or_refused(
    service: Served, parameters: dict[str, Any], field: str, accepted: str
) -> None:
    asked = {"applicationSetName": "inference", "input": {"parameters": parameters}, "more": "of a later Argo CD"}
    status, _, body = call(service, "/api/v1/getparams.execute", asked)
    [fault] = json.loads(body)["errors"]

    assert status == 422
    assert (fault["field"], fault["accepted"]) == (f"input.parameters.{field}", accepted)


def test_argo_cd_prunes_nothing_because_one_workload_has_no_answer(service: Served) -> None:
    asked = {"applicationSetName": "inference", "input": {"parameters": {}}}

    status, _, body = call(service, "/api/v1/getparams.execute", asked)
    assert (status, "workload impossible: " in json.loads(body)["detail"]) == (422, True)
    asked["input"] = {"parameters": {"workload": "nobody"}}
    assert call(service, "/api/v1/getparams.execute", asked)[0] == 404


def test_nothing_is_discovered_where_there_is_nothing(client: TestClient) -> None:
    assert client.get("/sd").json() == []
    assert client.post("/api/v1/getparams.execute", json={"input": {}}).json() == {"output": {"parameters": []}}


@pytest.mark.parametrize(
    ("path", "field", "accepted"),
    [
        ("/probe", "target", "the name of a workload"),
        ("/probe?target=chat&module=siz", "module", "size, capacity"),
        ("/sd?module=siz", "module", "size, capacity"),
    ],
)
def test_what_a_probe_lacks_is_named(service: Served, path: str, field: str, accepted: str) -> None:
    status, _, body = call(service, path)
    [fault] = json.loads(body)["errors"]

    assert (status, fault["field"]) == (400, field)
    assert accepted in fault["accepted"]

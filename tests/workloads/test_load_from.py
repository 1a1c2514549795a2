"""Pods follow the load that a real Prometheus measured."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.workloads.load_from import DEFAULT_LOADING_BYTES_PER_S, LoadFrom, Sample, finite_samples, load_of
from tests.conftest import API_KEY, seeded_service, service_settings
from tests.workloads.page import block
from tests.workloads.prometheus import prometheus, with_past
from tests.workloads.test_workloads import put

QUESTION: dict[str, Any] = {
    "model": "llama-3.1-8b", "gpu": "h100", "tensor_parallel_size": 1, "input_tokens": 1000, "output_tokens": 100,
}  # fmt: skip
LLAMA_BYTES = 8_030_261_248 * 2  # parameters as published, two bytes each
NOW = 10_000.0


def asked(**changes: Any) -> LoadFrom:
    return LoadFrom.model_validate({"prometheus_url": "http://prometheus:9090", "query": "load", **changes})


def by_minute(*values: float) -> list[Sample]:
    """Return a sample a minute, the last one now."""
    return [Sample(NOW - 60 * (len(values) - 1 - place), value) for place, value in enumerate(values)]


def test_what_the_window_needed_stays_until_it_ends() -> None:
    samples = by_minute(50, 50, 10, 10, 10, 10)

    assert load_of(samples, asked(cooldown_s=240, loading_s=0), 0, NOW).amount == 50
    assert load_of(samples, asked(cooldown_s=180, loading_s=0), 0, NOW).amount == 10
    assert load_of(samples, asked(cooldown_s=0, loading_s=0), 0, NOW).amount == 10


def test_the_figure_that_a_load_was_made_of_is_told() -> None:
    fallen = load_of(
        [Sample(0.0, 41.234), Sample(10.0, 5.0)], LoadFrom(prometheus_url="http://p", query="q"), 0.0, 20.0
    )

    assert (fallen.now, fallen.expected, fallen.needed, fallen.amount) == (5.0, 5.0, 41.234, 41.3)


def test_growth_is_met_as_early_as_a_pod_loads() -> None:
    growing = by_minute(10, 12, 14, 16)

    assert load_of(growing, asked(cooldown_s=0), 120, NOW).amount == 20
    assert load_of(growing, asked(cooldown_s=0), 0, NOW).amount == 16
    assert load_of(by_minute(16, 14, 12, 10), asked(cooldown_s=0), 120, NOW).amount == 10


def test_more_measured_load_never_calls_for_less() -> None:
    for scale in (0.5, 1.0, 3.0):
        one = load_of(by_minute(*(scale * value for value in (3, 9, 4, 5))), asked(), 60, NOW).amount
        more = load_of(by_minute(*(2 * scale * value for value in (3, 9, 4, 5))), asked(), 60, NOW).amount
        assert more >= one


def test_where_nobody_asks_one_pod_stays() -> None:
    assert load_of(by_minute(0, 0), asked(), 60, NOW).amount == 4e-07
    assert load_of(by_minute(0, 0), asked(field="concurrent_requests"), 60, NOW).amount == 1


def test_users_are_counted_whole_and_rates_raised_to_three_digits() -> None:
    assert load_of(by_minute(10.2), asked(field="concurrent_requests"), 0, NOW).amount == 11
    assert load_of(by_minute(10.21), asked(), 0, NOW).amount == 10.3


def test_what_is_no_load_was_not_measured() -> None:
    values = [(1.0, "NaN"), (2.0, "+Inf"), (3.0, "-1"), (3.5, "1e308"), (4.0, "7.5")]

    assert finite_samples(values) == (Sample(4.0, 7.5),)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A service beside a Prometheus that has measured for twenty minutes, until now."""
    folder, now = tmp_path_factory.mktemp("followed"), time.time()
    past = [now - 1200 + 5 * step for step in range(301)]  # five minutes ahead, for as long as the tests may take
    with_past(
        folder,
        {
            "steady": [(at, 40.0) for at in past],
            "busy": [(at, 150.0) for at in past],
            "fallen": [(at, 400.0 if at < now - 300 else 40.0) for at in past],
            "growing": [(at, 400.0 + (at - now)) for at in past if at <= now + 1],
            "users": [(at, 800.0) for at in past],
            "ended": [(at, 40.0) for at in past if at < now - 700],
            "vllm:request_success_total": [(at, 12.0 * at) for at in past],
            "shards_0": [(at, 1.0) for at in past],
            "shards_1": [(at, 1.0) for at in past],
        },
    )
    with prometheus(folder) as (url, _):
        settings = service_settings(folder, prometheus_urls=url, private_addresses=True)
        with seeded_service(settings) as client:
            client.headers["X-API-Key"] = API_KEY
            yield client


def follow(client: TestClient, name: str, query: str, **changes: Any) -> Any:
    [url] = client.app.state.traffic.allowed  # type: ignore[attr-defined]
    source = {"prometheus_url": url, "query": query, **changes}
    response = put(
        client, name, {**QUESTION, "load_from": source}, **({"if_match": "*"} if exists(client, name) else {})
    )
    assert response.status_code in (200, 201), response.text
    return response


def exists(client: TestClient, name: str) -> bool:
    return client.get(f"/workloads/{name}").status_code == 200


def pods(client: TestClient, name: str, query: str = "") -> Any:
    response = client.get(f"/workloads/{name}/replicas{query}")
    assert response.status_code == 200, response.text
    return response.json()


def rests_on(answer: Any) -> dict[str, Any]:
    return {it["name"]: it for it in answer["assumptions"]}


def test_pods_follow_the_rate_that_was_measured(followed: TestClient) -> None:
    follow(followed, "busy", "busy", cooldown_s=120)
    answer = pods(followed, "busy")
    stated = pods(followed, "busy", "?request_rate_per_s=150")
    told = rests_on(answer)

    assert answer["replicas"] == stated["replicas"] > 1
    assert told["request_rate_per_s"]["value"] == 150
    assert told["request_rate_per_s"]["origin"] == "measured"
    assert 0 <= told["load_age_s"]["value"] < 60
    assert told["loading_s"]["origin"] == "default"
    assert told["loading_s"]["value"] == pytest.approx(LLAMA_BYTES / DEFAULT_LOADING_BYTES_PER_S, rel=0.01)
    assert (
        "request_rate_per_s" not in rests_on(stated) or rests_on(stated)["request_rate_per_s"]["origin"] != "measured"
    )


def test_pods_stay_for_the_cool_down_after_load_fell(followed: TestClient) -> None:
    follow(followed, "long", "fallen", cooldown_s=600)
    follow(followed, "short", "fallen", cooldown_s=60)
    long, short = pods(followed, "long"), pods(followed, "short")

    assert long["replicas"] == pods(followed, "long", "?request_rate_per_s=400")["replicas"]
    assert short["replicas"] == pods(followed, "long", "?request_rate_per_s=40")["replicas"] < long["replicas"]


def test_pods_are_asked_for_before_growth_arrives(followed: TestClient) -> None:
    follow(followed, "early", "growing", loading_s=120, cooldown_s=0)
    follow(followed, "late", "growing", loading_s=0, cooldown_s=0)
    early, late = (rests_on(pods(followed, name))["request_rate_per_s"]["value"] for name in ("early", "late"))

    assert early - late == pytest.approx(120, abs=6)  # one more each second; three digits, and a step of the query


def test_users_at_once_are_a_load_too(followed: TestClient) -> None:
    follow(followed, "users", "users", field="concurrent_requests")

    assert pods(followed, "users")["replicas"] == pods(followed, "users", "?concurrent_requests=800")["replicas"]


@pytest.mark.parametrize("path", ["size", "capacity", "recommend"])
def test_every_question_of_a_workload_knows_the_load(followed: TestClient, path: str) -> None:
    follow(followed, "steady", "steady", cooldown_s=120)
    answer = followed.get(f"/workloads/steady/{path}", params={"limit": 1} if path == "recommend" else {})

    assert answer.status_code == 200, answer.text
    assert rests_on(answer.json())["request_rate_per_s"]["value"] == 40


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("sum(", 422, "refuses the query"),
        ('{__name__=~"shards_.*"}', 422, "2 series"),
        ("nothing_of_this_name", 503, "no series"),
        ("ended", 503, "no series"),
        ("steady * NaN", 503, "no series"),
        ("steady * 1e6", 422, "at most 1,000,000 are sized"),
    ],
)
def test_where_no_load_is_known_no_number_is_told(followed: TestClient, query: str, status: int, words: str) -> None:
    follow(followed, "odd", query, cooldown_s=60)
    response = followed.get("/workloads/odd/replicas")
    probed = followed.get("/probe?target=odd")

    assert response.status_code == status, response.text
    assert any(word in response.json()["detail"] for word in words.split("|"))
    assert "replicas" not in response.json()
    assert 'probe_success{workload="odd"} 0.0' in probed.text
    assert followed.get("/workloads/odd/replicas?request_rate_per_s=3").status_code == 200  # a stated load needs nobody


def test_a_series_that_ended_is_told_as_one(followed: TestClient) -> None:
    follow(followed, "ended", "ended", cooldown_s=900, max_age_s=60)
    response = followed.get("/workloads/ended/replicas")
    asked = {"input": {"parameters": {"workload": "ended"}}}
    of_argo = followed.post("/api/v1/getparams.execute", json=asked)

    assert response.status_code == of_argo.status_code == 503
    assert "the series has no newer value" in response.json()["detail"]
    assert of_argo.json()["detail"].startswith("workload ended: the load was last known ")
    assert of_argo.headers["retry-after"] == response.headers["retry-after"]


def test_a_load_is_read_or_stated_and_from_listed_addresses_alone(followed: TestClient) -> None:
    [url] = followed.app.state.traffic.allowed  # type: ignore[attr-defined]
    source = {"prometheus_url": url, "query": "steady"}
    refused: dict[str, dict[str, Any]] = {
        "elsewhere": {"load_from": {**source, "prometheus_url": "http://169.254.169.254"}},
        "both": {"load_from": source, "request_rate_per_s": 4},
        "incomplete": {"load_from": {"prometheus_url": url}},
        "unknown": {"load_from": {**source, "querry": "x"}},
        "negative": {"load_from": {**source, "cooldown_s": -1}},
        "infinite": {"load_from": {**source, "cooldown_s": "inf"}},
        "text": {"load_from": "steady"},
    }
    for name, fields in refused.items():
        response = put(followed, name, {**QUESTION, **fields})
        assert response.status_code == 422, (name, response.text)
        assert response.json()["errors"][0]["field"].startswith("load_from"), (name, response.text)
        if name == "incomplete":
            assert response.json()["errors"][0]["field"] == "load_from.query"


def test_a_prometheus_that_goes_away_is_answered_for_until_its_samples_are_too_old(tmp_path: Path) -> None:
    now = time.time()
    with_past(tmp_path, {"steady": [(now - 100 + step, 40.0) for step in range(101)]})
    with (
        prometheus(tmp_path) as (url, process),
        seeded_service(service_settings(tmp_path, prometheus_urls=url, private_addresses=True)) as client,
    ):
        client.headers["X-API-Key"] = API_KEY
        follow(client, "chat", "steady", cooldown_s=10, max_age_s=60)
        with_prometheus = pods(client, "chat")
        process.kill()
        process.wait()
        time.sleep(1.1)  # what was asked a second ago is asked again
        without = pods(client, "chat")
        of_others = [client.get(f"/workloads/chat/{name}").json() for name in ("size", "capacity", "recommend")]
        clock = client.app.state.traffic  # type: ignore[attr-defined]
        clock.now_s = lambda: time.time() + 61  # a minute later
        too_old = client.get("/workloads/chat/replicas")

    assert without["replicas"] == with_prometheus["replicas"]
    assert rests_on(without)["load_age_s"]["value"] >= 1
    assert "not reached" in rests_on(without)["load_age_s"]["source"]
    assert [text for text in without["warnings"] if "s old" in text and "not reached" in text]
    assert not [text for text in with_prometheus["warnings"] if "s old" in text]
    assert all(any("not reached" in text for text in it["warnings"]) for it in of_others)
    assert too_old.status_code == 503
    assert too_old.json()["type"] == "/problems/load-unknown"
    assert int(too_old.headers["retry-after"]) > 0


def test_private_addresses_are_read_only_where_that_is_configured(tmp_path: Path) -> None:
    with seeded_service(service_settings(tmp_path, prometheus_urls="http://127.0.0.1:9")) as client:
        client.headers["X-API-Key"] = API_KEY
        follow(client, "chat", "steady")
        refused = client.get("/workloads/chat/replicas")

    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "load_from.prometheus_url"


def test_the_page_s_load_is_read(followed: TestClient) -> None:
    question = json.loads(block("load_from").text)["question"]
    follow(followed, "page", question["load_from"]["query"], cooldown_s=question["load_from"]["cooldown_s"])
    [url] = followed.app.state.traffic.allowed  # type: ignore[attr-defined]
    written = put(
        followed, "page", {**question, "load_from": {**question["load_from"], "prometheus_url": url}}, if_match="*"
    )

    assert written.status_code == 200, written.text
    assert pods(followed, "page")["replicas"] >= 1

"""Importing a model from a hub, against a local server that speaks the same paths."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from service.api.importer import MOST_AT_ONCE
from tests.conftest import seeded_service, service_settings
from tests.hub.server import DRIP, FILES, TRICKLE, HubHandler, running_hub
from tests.waiting import eventually


@pytest.fixture(scope="module")
def hub_url() -> Iterator[str]:
    with running_hub() as url:
        yield url


@pytest.fixture
def importing(tmp_path: Path, hub_url: str) -> Iterator[TestClient]:
    with seeded_service(service_settings(tmp_path, hub_url=hub_url, hub_allowed_hosts="127.0.0.1")) as client:
        client.headers["X-API-Key"] = "test-key"
        yield client


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory, hub_url: str) -> Iterator[TestClient]:
    """A service for imports that leave it as it was."""
    settings = service_settings(tmp_path_factory.mktemp("refusing"), hub_url=hub_url, hub_allowed_hosts="127.0.0.1")
    with seeded_service(settings) as client:
        client.headers["X-API-Key"] = "test-key"
        yield client


@pytest.mark.parametrize("name", ["made/Tiny", "made/Sharded", "made/Moved"])
def test_a_model_is_imported_and_can_be_sized(importing: TestClient, name: str) -> None:
    response = importing.post("/catalog/models/import", json={"hf_id": name})

    assert response.status_code == 200, response.text
    entry = response.json()["entry"]
    if name != "made/Moved":  # only its config has moved
        assert entry["num_parameters"] == 64 * 64 + 256
        assert entry["checkpoints"][0]["weight_bytes"] == 2 * (64 * 64 + 256)
    question = {"model": name, "gpu": "t4", "concurrent_requests": 2, "input_tokens": 100, "output_tokens": 100}
    assert importing.post("/size", json=question).json()["model"] == name.rsplit("/", 1)[-1].lower()


def test_tensors_are_never_fetched(importing: TestClient) -> None:
    HubHandler.served.clear()

    importing.post("/catalog/models/import", json={"hf_id": "made/Tiny"})

    weights = sum(size for path, size in HubHandler.served if path.endswith(".safetensors"))
    assert 0 < weights < len(FILES["/made/Tiny/resolve/main/model.safetensors"]) - 8_000


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("made/Absent", 404, "no such model"),
        ("made/Strange", 422, "NoSuchForCausalLM"),
        ("made/Broken", 422, "not readable JSON"),
        ("made/Huge", 422, "5 MiB"),
        ("made/BadWeights", 422, "safetensors"),
        ("made/Negative", 422, "safetensors"),
        ("made/Leading", 422, "no file of the model"),
        ("made/Away", 422, "elsewhere.example.com"),
        ("made/Port", 422, "not on the list"),
        ("made/NoUrl", 422, "no URL"),
        ("made/Packed", 422, "compressed"),
        ("made/Surrogate", 422, "surrogate"),
        ("made/Deep", 422, "nested too deep"),
        ("made/Loop", 502, "redirects too often"),
        ("made/Gated", 422, "gated"),
        ("made/Ill", 502, "answered 500"),
        ("../../etc/passwd", 422, "hf_id"),
        ("made/Tiny?x=1", 422, "hf_id"),
    ],
)
def test_what_cannot_be_imported_says_why(refusing: TestClient, name: str, status: int, words: str) -> None:
    before = refusing.get("/readyz").json()["catalog_revision"]

    response = refusing.post("/catalog/models/import", json={"hf_id": name})

    assert response.status_code == status, response.text
    assert words in response.text
    assert refusing.get("/readyz").json()["catalog_revision"] == before


def test_counts_may_come_from_what_the_hub_has_counted(importing: TestClient) -> None:
    imported = importing.post("/catalog/models/import", json={"hf_id": "made/Counted"}).json()

    assert imported["entry"]["num_parameters"] == 98_624 + 256
    assert imported["entry"]["checkpoints"][0]["weight_bytes"] == 2 * 98_624 + 4 * 256


def test_files_that_disagree_with_the_config_are_pointed_out(importing: TestClient) -> None:
    imported = importing.post("/catalog/models/import", json={"hf_id": "made/Tiny"}).json()

    assert any("4352 parameters" in it for it in imported["warnings"])


def test_weights_kept_on_another_host_are_not_followed(importing: TestClient) -> None:
    imported = importing.post("/catalog/models/import", json={"hf_id": "made/Elsewhere"}).json()

    assert imported["entry"]["num_parameters"] is None
    assert any("not checked" in it for it in imported["warnings"])


def test_a_quantization_stated_beside_the_config_counts(importing: TestClient) -> None:
    entry = importing.post("/catalog/models/import", json={"hf_id": "made/Four-Bit"}).json()["entry"]

    assert entry["checkpoints"][0]["weight_format"] == "nvfp4"
    question = {
        "model": "made/Four-Bit",
        "gpu": "b200",
        "concurrent_requests": 2,
        "input_tokens": 9,
        "output_tokens": 9,
    }
    assert importing.post("/size", json=question).json()["weight_format"] == "nvfp4"


def test_importing_again_keeps_aliases_and_other_checkpoints(importing: TestClient) -> None:
    entry = importing.post("/catalog/models/import", json={"hf_id": "made/Tiny", "id": "small-one"}).json()["entry"]
    other = {**entry["checkpoints"][0], "hf_id": "other/Tiny-half", "weight_format": "fp16", "is_default": False}
    richer = {**entry, "aliases": ["wee"], "checkpoints": [*entry["checkpoints"], other]}
    assert importing.put("/catalog/models/small-one", json=richer).status_code == 200

    again = importing.post("/catalog/models/import", json={"hf_id": "made/Tiny"}).json()["entry"]

    assert again["id"] == "small-one"
    assert again["aliases"] == ["wee"]
    assert [it["hf_id"] for it in again["checkpoints"]] == ["made/Tiny", "other/Tiny-half"]


def test_an_import_never_takes_the_place_of_another_model(importing: TestClient) -> None:
    response = importing.post("/catalog/models/import", json={"hf_id": "made/Tiny", "id": "qwen3-32b"})

    assert response.status_code == 409
    assert importing.get("/catalog/models/qwen3-32b").json()["hf_id"] == "Qwen/Qwen3-32B"


@pytest.mark.parametrize("name", [TRICKLE, DRIP])
def test_a_hub_that_trickles_is_given_up_on(tmp_path: Path, hub_url: str, name: str) -> None:
    """Whether it is the body or the headers that never come to an end."""
    settings = service_settings(tmp_path, hub_url=hub_url, hub_allowed_hosts="127.0.0.1", hub_deadline_seconds=1)
    with seeded_service(settings) as client:
        began = time.monotonic()
        response = client.post("/catalog/models/import", json={"hf_id": name}, headers={"X-API-Key": "test-key"})

        assert response.status_code == 502
        assert "in time" in response.text
        assert time.monotonic() - began < 60


def test_slow_imports_cost_no_answer_and_few_may_run(tmp_path: Path, hub_url: str) -> None:
    settings = service_settings(tmp_path, hub_url=hub_url, hub_allowed_hosts="127.0.0.1", hub_deadline_seconds=6)
    question = {"model": "qwen3-32b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 900, "output_tokens": 90}
    with seeded_service(settings) as client, ThreadPoolExecutor(45) as threads:
        client.headers["X-API-Key"] = "test-key"
        client.post("/size", json=question)
        imports = [threads.submit(client.post, "/catalog/models/import", json={"hf_id": DRIP}) for _ in range(45)]
        assert eventually(lambda: sum(it.done() for it in imports) == 45 - MOST_AT_ONCE)
        answers = [client.post("/size", json=question) for _ in range(5)]
        still_running = sum(not it.done() for it in imports)
        responses = [it.result() for it in imports]
        after = client.post("/catalog/models/import", json={"hf_id": "made/Tiny"})

    statuses = [response.status_code for response in responses]
    assert {response.status_code for response in answers} == {200}
    assert still_running == MOST_AT_ONCE
    assert statuses.count(502) == MOST_AT_ONCE
    assert statuses.count(503) == 45 - MOST_AT_ONCE
    assert all(int(it.headers["retry-after"]) > 0 for it in responses if it.status_code == 503)
    assert after.status_code == 200


def test_importing_needs_the_key(importing: TestClient) -> None:
    response = importing.post("/catalog/models/import", json={"hf_id": "made/Tiny"}, headers={"X-API-Key": "no"})

    assert response.status_code == 401


def test_a_hub_that_is_not_there_is_a_clear_answer(tmp_path: Path) -> None:
    with seeded_service(
        service_settings(tmp_path, hub_url="http://127.0.0.1:9", hub_allowed_hosts="127.0.0.1")
    ) as client:
        response = client.post("/catalog/models/import", json={"hf_id": "made/Tiny"}, headers={"X-API-Key": "test-key"})

        assert response.status_code == 502

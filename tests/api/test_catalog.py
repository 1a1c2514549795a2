"""Reading and writing the catalog."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from service.catalog.database import make_engine
from service.main import create_app
from tests.conftest import seeded_service, service_settings

SOURCE = {"url": "https://example.com/sheet", "checked_on": "2026-11-01"}
GPU: dict[str, Any] = {
    "id": "made-up-100gb",
    "name": "Made Up 100GB",
    "vendor": "nvidia",
    "architecture": "hopper",
    "compute_capability": "9.0",
    "aliases": ["madeup"],
    "gpus_per_node": 8,
    "scale_up_domain_gpus": 8,
    "scale_up_kind": "nvlink",
    "figures": {
        "memory_bytes": {"value": 107374182400, "printed_as": "100 GiB", "source": SOURCE},
        "memory_bandwidth_bytes_per_s": {"value": 3350000000000, "printed_as": "3.35 TB/s", "source": SOURCE},
    },
}
OFFER: dict[str, Any] = {
    "id": "made-up-offer",
    "provider": "aws",
    "instance_type": "p99.48xlarge",
    "region": "us-east-1",
    "gpu": "made-up-100gb",
    "gpu_count": 8,
    "usd_per_hour": 10.0,
    "as_of": "2026-11-01",
    "source": SOURCE,
}
MODEL: dict[str, Any] = {
    "id": "made-up-8b",
    "name": "Made Up 8B",
    "hf_id": "made/Up-8B",
    "aliases": ["up8"],
    "config": {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
    },
    "checkpoints": [{"weight_format": "bf16", "hf_id": "made/Up-8B", "is_default": True, "source": SOURCE}],
    "source": SOURCE,
}


def test_reads_are_open_and_show_sources(client: TestClient) -> None:
    gpu = client.get("/catalog/gpus/h100").json()
    model = client.get("/catalog/models/meta-llama/Llama-3.3-70B-Instruct").json()

    assert gpu["figures"]["memory_bytes"]["value"] == 81_559 << 20
    assert gpu["figures"]["memory_bytes"]["source"]["url"].startswith("http")
    assert model["id"] == "llama-3.3-70b-instruct"
    assert model["source"]["checked_on"]


@pytest.mark.parametrize("kind", ["models", "gpus", "offers"])
def test_lists_come_in_pages_without_gaps(client: TestClient, kind: str) -> None:
    ids: list[str] = []
    token: str | None = None
    for _ in range(100):
        page = client.get(
            f"/catalog/{kind}", params={"page_size": 40} | ({"page_token": token} if token else {})
        ).json()
        ids += [item["id"] for item in page["items"]]
        token = page["next_page_token"]
        if token is None:
            break

    assert ids == sorted(set(ids))
    assert len(ids) == len(client.get(f"/catalog/{kind}", params={"page_size": 500}).json()["items"])


def test_a_written_gpu_answers_questions_at_once(writable: TestClient) -> None:
    before = writable.get("/readyz").json()["catalog_revision"]

    written = writable.put("/catalog/gpus/made-up-100gb", json=GPU)
    offered = writable.put("/catalog/offers/made-up-offer", json=OFFER)

    assert written.json() == {"id": "made-up-100gb", "catalog_revision": before + 1}
    assert offered.json()["catalog_revision"] == before + 2
    question = {
        "model": "llama-3.1-8b",
        "gpu": "madeup",
        "concurrent_requests": 8,
        "input_tokens": 9,
        "output_tokens": 9,
    }
    answer = writable.post("/size", json=question).json()
    assert answer["gpu"] == "made-up-100gb"
    assert answer["cost"]["usd_per_hour"] == 10.0
    assert answer["catalog_revision"] == before + 2


def test_a_written_model_can_be_sized_replaced_and_deleted(writable: TestClient) -> None:
    question = {"model": "UP8", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 9, "output_tokens": 9}

    assert writable.put("/catalog/models/made-up-8b", json=MODEL).status_code == 200
    assert writable.post("/size", json=question).json()["model"] == "made-up-8b"
    assert writable.put("/catalog/models/made-up-8b", json={**MODEL, "aliases": ["other"]}).status_code == 200
    assert writable.post("/size", json=question).status_code == 404
    assert writable.delete("/catalog/models/made-up-8b").status_code == 200
    assert writable.get("/catalog/models/made-up-8b").status_code == 404
    assert writable.delete("/catalog/models/made-up-8b").status_code == 404


def test_deleting_a_gpu_takes_its_offers_along(writable: TestClient) -> None:
    writable.put("/catalog/gpus/made-up-100gb", json=GPU)
    writable.put("/catalog/offers/made-up-offer", json=OFFER)

    assert writable.delete("/catalog/gpus/made-up-100gb").status_code == 200
    assert writable.get("/catalog/offers/made-up-offer").status_code == 404


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "extra",
    [_nested(50), _nested(900), {"x": "\ud800"}, {"x": ["\0"]}, {"\ud800": 1}, {"num_hidden_layers": 1_000_000}],
    ids=["deep", "deeper", "surrogate", "nul", "surrogate key", "layers"],
)
def test_a_config_no_client_could_read_back_is_refused(writable: TestClient, extra: dict[str, Any]) -> None:
    before = writable.get("/readyz").json()
    body = json.dumps({**MODEL, "config": {**MODEL["config"], **extra}})

    response = writable.put("/catalog/models/made-up-8b", content=body, headers={"content-type": "application/json"})

    assert response.status_code == 422, response.text
    assert "config" in response.json()["errors"][0]["field"]
    assert writable.get("/readyz").json() == before


def test_an_infinite_number_of_a_config_is_kept_as_transformers_writes_it(writable: TestClient) -> None:
    body = json.dumps({**MODEL, "config": {**MODEL["config"], "time_step_limit": [0.0, float("inf")]}})

    response = writable.put("/catalog/models/made-up-8b", content=body, headers={"content-type": "application/json"})

    assert response.status_code == 200, response.text
    kept = writable.get("/catalog/models/made-up-8b").json()["config"]["time_step_limit"]
    assert kept == [0.0, {"__float__": "Infinity"}]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/catalog/gpus/another-id", GPU, 422),
        ("/catalog/gpus/made-up-100gb", {**GPU, "aliases": ["h100"]}, 409),
        ("/catalog/gpus/made-up-100gb", {**GPU, "figures": {}}, 422),
        ("/catalog/gpus/made-up-100gb", {**GPU, "gpus_per_node": 0}, 422),
        ("/catalog/models/made-up-8b", {**MODEL, "config": {"architectures": ["NoSuchForCausalLM"]}}, 422),
        ("/catalog/models/made-up-8b", {**MODEL, "checkpoints": []}, 422),
        ("/catalog/models/made-up-8b", {**MODEL, "aliases": ["llama-3.1-8b"]}, 409),
        ("/catalog/offers/made-up-offer", {**OFFER, "gpu": "no-such-gpu"}, 409),
        ("/catalog/offers/made-up-offer", {**OFFER, "usd_per_hour": -1}, 422),
    ],
)
def test_a_refused_write_changes_nothing(writable: TestClient, path: str, body: dict[str, Any], status: int) -> None:
    before = writable.get("/readyz").json()

    response = writable.put(path, json=body)

    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert writable.get("/readyz").json() == before


@pytest.mark.parametrize("method", ["put", "delete"])
def test_writing_needs_the_key(writable: TestClient, method: str) -> None:
    for key in ("", "wrong", "test-key ", "clé"):
        response = writable.request(
            method, "/catalog/gpus/made-up-100gb", json=GPU, headers={b"X-API-Key": key.encode("latin-1")}
        )
        assert response.status_code == 401


def test_without_a_configured_key_nobody_writes(tmp_path: Any) -> None:
    with seeded_service(service_settings(tmp_path, api_keys="")) as client:
        response = client.put("/catalog/gpus/made-up-100gb", json=GPU, headers={"X-API-Key": ""})

        assert response.status_code == 403
        assert "read-only" in response.json()["detail"]


def test_a_dead_database_costs_writes_and_never_answers(tmp_path: Any) -> None:
    with seeded_service(service_settings(tmp_path)) as client:
        client.headers["X-API-Key"] = "test-key"
        for file in tmp_path.glob("catalog.sqlite3*"):
            file.write_bytes(b"not a database")

        write = client.put("/catalog/gpus/made-up-100gb", json=GPU)
        question = {
            "model": "llama-3.1-8b",
            "gpu": "h100",
            "concurrent_requests": 8,
            "input_tokens": 9,
            "output_tokens": 9,
        }

        assert write.status_code == 503
        assert client.post("/size", json=question).status_code == 200
        assert client.get("/readyz").json()["status"] == "ready"


def test_two_services_on_one_postgresql_converge(postgres_url: str, tmp_path: Path) -> None:
    engine = make_engine(postgres_url)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    shared = {"database_url": postgres_url, "snapshot_poll_seconds": 0.2}
    first_settings = service_settings(tmp_path / "first", **shared)
    second_settings = service_settings(tmp_path / "second", **shared)
    with seeded_service(first_settings) as first, TestClient(create_app(second_settings)) as second:
        written = first.put("/catalog/gpus/made-up-100gb", json=GPU, headers={"X-API-Key": "test-key"})
        assert written.status_code == 200, written.text
        for _ in range(100):
            if second.get("/catalog/gpus/made-up-100gb").status_code == 200:
                break
            time.sleep(0.1)

        assert second.get("/readyz").json()["catalog_revision"] == written.json()["catalog_revision"]
        question = {
            "model": "llama-3.1-8b",
            "gpu": "madeup",
            "concurrent_requests": 8,
            "input_tokens": 9,
            "output_tokens": 9,
        }
        assert second.post("/size", json=question).content == first.post("/size", json=question).content

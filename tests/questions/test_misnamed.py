"""Names that nobody knows are told beside everything else that is wrong."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from service.catalog.snapshot import Snapshot
from service.questions.misnamed import misnamed

LOAD: dict[str, Any] = {"concurrent_requests": 8, "input_tokens": 100, "output_tokens": 10}


@pytest.mark.parametrize(
    ("stated", "fields"),
    [
        ({"model": "llama-3.3-70b", "gpu": "h100"}, []),
        ({"model": "lama-3.3-70b", "gpu": "h1000"}, ["model", "gpu"]),
        ({"models": ["llama-3.3-70b", "lama-3.3-70b"], "gpus": "h100,h1000"}, ["models", "gpus"]),
        ({"model": ["lama"], "gpu": 5, "gpus": None, "exclude_gpus": " , "}, []),
        ({"model": "x" * 1000}, []),
    ],
)
def test_each_field_with_an_unknown_name_is_told_once(
    catalog: Snapshot, stated: dict[str, Any], fields: list[str]
) -> None:
    told = misnamed(stated, catalog)

    assert [fault.field for fault in told] == fields
    assert all(fault.accepted for fault in told)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_misspelt_name_beside_a_missing_load_is_told_with_it(client: TestClient, method: str) -> None:
    """A tired engineer learns all of it from one answer, not of the name when the load stands there at last."""
    stated: dict[str, Any] = {"model": "lama-3.3-70b", "gpu": "h100", "output_tokens": 10}
    response = client.get("/size", params=stated) if method == "GET" else client.post("/size", json=stated)

    assert response.status_code == 422
    faults = {fault["field"]: fault for fault in response.json()["errors"]}
    assert list(faults) == ["model", "concurrent_requests", "input_tokens"]
    assert faults["model"]["accepted"].startswith("llama-3.3-70b-instruct")


def test_a_model_that_does_not_generate_is_told_before_its_output_is_asked_for(client: TestClient) -> None:
    stated: dict[str, Any] = {"model": "qwen3-embedding-8b", "gpu": "l4", "request_rate_per_s": 5, "input_tokens": 500}
    faults = {fault["field"]: fault["detail"] for fault in client.get("/size", params=stated).json()["errors"]}

    assert "embeddings" in faults["model"]
    assert faults["output_tokens"] == "missing"


def test_two_misspelt_names_are_told_at_once(client: TestClient) -> None:
    response = client.get("/size", params={**LOAD, "model": "lama-3.3-70b", "gpu": "h1000"})

    assert response.status_code == 404
    assert {fault["field"] for fault in response.json()["errors"]} == {"model", "gpu"}
    assert "h1000" in response.json()["detail"]
    assert "lama-3.3-70b" in response.json()["detail"]


def test_names_of_other_paths_are_not_looked_up(client: TestClient) -> None:
    response = client.get("/catalog/offers", params={"gpu": "h1000", "page_size": 0})

    assert [fault["field"] for fault in response.json()["errors"]] == ["page_size"]

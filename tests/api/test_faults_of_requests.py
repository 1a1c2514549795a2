"""What is wrong with a request beside its fields is named as its fields are: what it is, and what would be accepted."""

import pytest
from starlette.testclient import TestClient

from tests.api.test_problems import JSON, problem


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/size"), ("PUT", "/recommend"), ("POST", "/livez")])
def test_a_method_that_a_path_lacks_is_told_which_it_has(client: TestClient, method: str, path: str) -> None:
    response = client.request(method, path)

    [fault] = problem(response, 405)["errors"]
    assert (fault["field"], fault["accepted"]) == ("method", response.headers["allow"])


def test_a_body_too_large_is_told_how_large_it_may_be(client: TestClient) -> None:
    response = client.post("/size", content=b"a" * 6_000_000, headers=JSON)

    [fault] = problem(response, 413)["errors"]
    assert (fault["field"], fault["accepted"]) == ("body", "at most 5242880 bytes")


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "nobody"}, {"Authorization": "Bearer nobody"}])
def test_a_key_that_is_missing_or_wrong_is_named(client: TestClient, headers: dict[str, str]) -> None:
    [fault] = problem(client.put("/catalog/gpus/h100", json={}, headers=headers), 401)["errors"]

    assert fault["field"] == "x-api-key"
    assert "nobody" not in str(fault)

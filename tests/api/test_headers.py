"""Headers that keep browsers from guessing, framing or running what was not meant to run."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest
from starlette.testclient import TestClient


@pytest.mark.parametrize(
    "path", ["/livez", "/catalog/gpus?page_size=1", "/size", "/nowhere", "/docs", "/docs/assets/swagger-ui.css"]
)
def test_every_answer_is_taken_for_what_it_says(client: TestClient, path: str) -> None:
    response = client.get(path)

    assert response.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert response.headers.get_list("content-security-policy") == [response.headers["content-security-policy"]]


def test_answers_run_nothing(client: TestClient) -> None:
    assert client.get("/livez").headers["content-security-policy"].startswith("default-src 'none';")


def test_the_documentation_runs_its_own_scripts_and_no_other(client: TestClient) -> None:
    response = client.get("/docs")

    policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
    inline = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    allowed = {f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in inline}
    assert len(allowed) == 1
    assert set(policy["script-src"].split()) == {"'self'", *allowed}
    assert policy["connect-src"] == "'self'"
    assert all(not address.startswith(("http", "//")) for address in re.findall(r'(?:src|href)="(.*?)"', response.text))


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_no_other_site_may_read_an_answer(client: TestClient, method: str) -> None:
    asked = {"origin": "https://elsewhere.example", "access-control-request-method": "POST"}

    response = client.request(method, "/size", headers=asked)

    assert not [name for name in response.headers if name.startswith("access-control-")]

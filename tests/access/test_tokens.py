"""Tokens of an OpenID provider: every operation against each kind, and what no token of it may pass as."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from service.settings import Settings
from tests.access.provider import EC_KEY, RSA_KEY, SECRET, STRANGER, Provider, provided
from tests.access.test_access import OPERATIONS, SCOPES, needed_of
from tests.conftest import seeded_service, service_settings


class Trusting(NamedTuple):
    """A service that takes a provider's tokens."""

    client: TestClient
    provider: Provider
    reads_need_key: bool


@pytest.fixture(scope="module", params=[False, True], ids=["open", "locked"])
def trusting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusting]:
    with provided() as provider:
        folder = tmp_path_factory.mktemp("trusting")
        settings = service_settings(
            folder, oidc_issuer=provider.url, private_addresses=True, reads_need_key=request.param, api_keys=""
        )
        with seeded_service(settings) as client:
            yield Trusting(client, provider, request.param)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("kind", ["read", "write", "admin", "no scope", "invalid"])
def test_each_token_opens_what_its_scope_says(trusting: Trusting, kind: str) -> None:
    scope = "openid profile" if kind == "no scope" else f"openid sizer:{kind}"
    token = trusting.provider.token(scope, key=STRANGER if kind == "invalid" else RSA_KEY)
    for method, path in OPERATIONS:
        response = trusting.client.request(
            method, path, headers=bearer(token), json={} if method in ("POST", "PUT") else None
        )
        needed = needed_of(method, path)
        is_free = needed is None or (needed == "read" and not trusting.reads_need_key)
        is_held = kind in SCOPES and needed is not None and SCOPES.index(kind) >= SCOPES.index(needed)
        refused = None if needed is None else 401 if kind == "invalid" else None if is_free or is_held else 403
        if refused is None:
            assert response.status_code not in (401, 403), (method, path, response.text)
        else:
            assert response.status_code == refused, (method, path, response.text)
        assert token not in response.text


@pytest.mark.parametrize("scope", [["sizer:admin"], "a sizer:read sizer:admin", "sizer:admin"])
def test_the_highest_scope_counts_in_a_text_or_a_list(trusting: Trusting, scope: object) -> None:
    changes = trusting.client.get("/workloads/chat/changes", headers=bearer(trusting.provider.token(scope)))

    assert changes.json()["type"] == "/problems/no-such-workload"  # which those are told who may read them


def test_a_key_is_found_by_its_name_or_as_the_only_one_of_its_algorithm(trusting: Trusting) -> None:
    provider = trusting.provider
    listed = provider.token(aud=["other", "sizer"])
    for token in (provider.token(key=EC_KEY, kid="two"), provider.token(key=EC_KEY, kid=None), listed):
        assert trusting.client.get("/workloads", headers=bearer(token)).status_code == 200


def refused_tokens(provider: Provider) -> dict[str, str]:
    now, good = time.time(), provider.token("sizer:admin")
    head, claims, signature = good.split(".")
    return {
        "ended": provider.token(exp=now - 60),
        "not yet": provider.token(nbf=now + 600),
        "issued tomorrow": provider.token(iat=now + 86_400),
        "without an end": provider.token(exp=None),
        "of another issuer": provider.token(iss="https://elsewhere.example.com"),
        "without an issuer": provider.token(iss=None),
        "for another service": provider.token(aud="billing"),
        "for nobody": provider.token(aud=None),
        "of nobody": provider.token(sub=None),
        "signed by a stranger": provider.token(key=STRANGER),
        "of an unknown key": provider.token(kid="nobody"),
        "of a key for sealing": provider.token(kid="sealing"),
        "by another algorithm than its key's": provider.token(alg="RS512"),
        "by the key of another kind": provider.token(key=EC_KEY, kid="one"),
        "by the public key as a secret": provider.mixed_up(),
        "by a published secret": provider.shared(SECRET, "three"),
        "unsigned": provider.token(key=None, alg="none"),
        "without a signature": f"{head}.{claims}.",
        "with another's claims": f"{head}.{provider.token('sizer:admin', sub='root').split('.')[1]}.{signature}",
        "no JSON": f"eyJ.{claims}.{signature}",
        "very long": provider.token("x" * 9_000),
    }


def test_what_is_no_valid_token_opens_nothing(trusting: Trusting) -> None:
    refused = refused_tokens(trusting.provider)
    statuses = {name: trusting.client.get("/workloads", headers=bearer(it)).status_code for name, it in refused.items()}
    assert statuses == dict.fromkeys(statuses, 401)


def test_clocks_may_differ_by_the_leeway(trusting: Trusting) -> None:
    late = trusting.provider.token(exp=time.time() - 15)

    assert trusting.client.get("/workloads", headers=bearer(late)).status_code == 200


def test_a_provider_is_not_asked_for_every_unknown_key(trusting: Trusting) -> None:
    trusting.client.get("/workloads", headers=bearer(trusting.provider.token()))
    before = trusting.provider.asked
    for number in range(20):
        trusting.client.get("/workloads", headers=bearer(trusting.provider.token(kid=f"unknown {number}")))

    assert trusting.provider.asked - before <= 2


def test_a_provider_that_is_away_is_told_and_its_kept_keys_still_count(tmp_path: Path) -> None:
    with provided() as provider:
        settings = service_settings(tmp_path, oidc_issuer=provider.url, private_addresses=True)
        provider.is_away = True
        with seeded_service(settings) as client:
            away = client.get("/workloads", headers=bearer(provider.token()))
            assert away.status_code == 503
            assert away.json()["type"] == "/problems/provider-away"
            assert client.get("/workloads").status_code == 200
            provider.is_away = False
            client.app.state.tokens._asked_at = float("-inf")  # type: ignore[attr-defined]  # noqa: SLF001 - ten seconds later
            assert client.get("/workloads", headers=bearer(provider.token())).status_code == 200
            provider.is_away = True
            assert client.get("/workloads", headers=bearer(provider.token())).status_code == 200


def test_keys_are_not_fetched_from_private_addresses_unless_that_is_configured(tmp_path: Path) -> None:
    with provided() as provider, seeded_service(service_settings(tmp_path, oidc_issuer=provider.url)) as client:
        assert client.get("/workloads", headers=bearer(provider.token())).status_code == 503
        assert provider.asked == 0


@pytest.mark.parametrize("algorithm", ["none", "HS256", "HS512", "RS1"])
def test_algorithms_without_two_keys_cannot_be_configured(algorithm: str) -> None:
    with pytest.raises(ValidationError):
        Settings(oidc_algorithms=(algorithm,))


def test_a_write_is_told_by_whose_token_it_was(trusting: Trusting) -> None:
    question = {"model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 1, "input_tokens": 9, "output_tokens": 9}
    ana = bearer(trusting.provider.token("sizer:admin", sub="ana@example.com"))
    written = trusting.client.put("/workloads/ana", json={"question": question}, headers={**ana, "if-none-match": "*"})
    changes = trusting.client.get("/workloads/ana/changes", headers=ana)

    assert written.status_code == 201, written.text
    assert changes.json()["items"][0]["changed_by"] == "ana@example.com (token)"

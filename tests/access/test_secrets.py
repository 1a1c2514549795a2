"""What nobody may read: keys, tokens and what an address says, sought wherever a service writes."""

import json
import logging
from pathlib import Path

import pytest

from tests.access.provider import provided
from tests.conftest import seeded_service, service_settings

KEY = "canary-key-0f3a"
ASKED = "canary-asked-77b1"
PASSWORD = "canary-password-41c9"  # noqa: S105 - of nobody
PATHS = ("/size", "/workloads", "/workloads/chat/replicas", "/catalog/models", "/nothing/here", "/metrics", "/readyz")


def test_no_secret_is_written_anywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with provided() as provider:
        settings = service_settings(
            tmp_path,
            json_log=True,
            api_keys=f"{KEY}-accepted",
            oidc_issuer=provider.url,
            private_addresses=True,
            prometheus_urls=f"http://user:{PASSWORD}@127.0.0.1:9",
        )
        token = provider.token("sizer:write", jti="canary-claim-9d2e")
        logger = logging.getLogger("service.requests")
        with seeded_service(settings) as client:
            told = []
            for stated in (
                f"{KEY}-accepted",
                f"{KEY}-wrong",
                f"sizer_{KEY}_{KEY}",
                token,
                token + "x",
                f"eyJ{KEY}.x.x",
            ):
                for path in PATHS:
                    for headers in ({"x-api-key": stated}, {"authorization": f"Bearer {stated}"}):
                        told.append(client.get(path, params={"note": ASKED}, headers=headers))
                        told.append(client.put(f"{path}/{ASKED}", json={"a": ASKED}, headers=headers))
            told.append(client.put("/workloads/chat", json={"question": {}}, headers={"x-api-key": f"{KEY}-accepted"}))
            metrics = client.get("/metrics").text
        logger.handlers.clear()
        logger.propagate = True
    written = capfd.readouterr()
    logs = caplog.text + written.out + written.err
    shown = "".join(response.text + json.dumps(dict(response.headers)) for response in told)

    assert len(logs) > 1_000
    for secret in (KEY, PASSWORD, token, token.split(".")[2], "canary-claim-9d2e"):
        assert secret not in logs + metrics + shown, secret
    assert ASKED not in logs.replace(caplog.text, "") + metrics
    assert ASKED not in "".join(it.getMessage() for it in caplog.records if not it.name.startswith("httpx"))

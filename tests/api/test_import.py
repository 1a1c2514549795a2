"""Importing a model from a hub, against a local server that speaks the same paths."""

import json
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from starlette.testclient import TestClient

from service.catalog.hub import Hub, HubError
from tests.conftest import seeded_service, service_settings

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 512,
    "torch_dtype": "bfloat16",
    "auto_map": {"AutoModel": "modeling.Evil"},
}


def safetensors(tensors: dict[str, list[int]]) -> bytes:
    """Return a file as the format says: length, header, and then tensors nobody should ask for."""
    offset, header = 0, {}
    for name, shape in tensors.items():
        size = 2
        for side in shape:
            size *= side
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    return struct.pack("<Q", len(text)) + text + b"\x00" * offset


FILES: dict[str, bytes] = {
    "/made/Tiny/resolve/main/config.json": json.dumps(CONFIG).encode(),
    "/made/Tiny/resolve/main/model.safetensors": safetensors({"a": [64, 64], "b": [256]}),
    "/made/Sharded/resolve/main/config.json": json.dumps(CONFIG).encode(),
    "/made/Sharded/resolve/main/model.safetensors.index.json": json.dumps(
        {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    ).encode(),
    "/made/Sharded/resolve/main/one.safetensors": safetensors({"a": [64, 64]}),
    "/made/Sharded/resolve/main/two.safetensors": safetensors({"b": [256]}),
    "/made/Strange/resolve/main/config.json": b'{"architectures": ["NoSuchForCausalLM"]}',
    "/made/Broken/resolve/main/config.json": b"<html>",
    "/made/Huge/resolve/main/config.json": b" " * (6 * 1024 * 1024),
    "/made/BadWeights/resolve/main/config.json": json.dumps(CONFIG).encode(),
    "/made/BadWeights/resolve/main/model.safetensors": struct.pack("<Q", 1 << 60) + b"{}",
}
REDIRECTS = {
    "/made/Away/resolve/main/config.json": "https://elsewhere.example.com/config.json",
    "/made/Loop/resolve/main/config.json": "/made/Loop/resolve/main/config.json",
    "/made/Moved/resolve/main/config.json": "/made/Tiny/resolve/main/config.json",
}
STATUSES = {"/made/Gated/resolve/main/config.json": 401, "/made/Ill/resolve/main/config.json": 500}


class HubHandler(BaseHTTPRequestHandler):
    served: ClassVar[list[tuple[str, int]]] = []

    def do_GET(self) -> None:
        if self.path in REDIRECTS:
            self.send_response(302)
            self.send_header("location", REDIRECTS[self.path])
            self.end_headers()
            return
        body = FILES.get(self.path)
        if body is None:
            self.send_response(STATUSES.get(self.path, 404))
            self.end_headers()
            return
        status, wanted = 200, self.headers.get("range")
        if wanted is not None:
            first, last = wanted.removeprefix("bytes=").split("-")
            body, status = body[int(first) : int(last) + 1], 206
        self.served.append((self.path, len(body)))
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture(scope="module")
def hub_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), HubHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def importing(tmp_path: Path, hub_url: str) -> Iterator[TestClient]:
    with seeded_service(service_settings(tmp_path, hub_url=hub_url, hub_allowed_hosts="127.0.0.1")) as client:
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
        ("made/Broken", 502, "not readable JSON"),
        ("made/Huge", 502, "5 MiB"),
        ("made/BadWeights", 502, "safetensors"),
        ("made/Away", 502, "elsewhere.example.com"),
        ("made/Loop", 502, "redirects too often"),
        ("made/Gated", 502, "gated"),
        ("made/Ill", 502, "answered 500"),
        ("../../etc/passwd", 422, "hf_id"),
        ("made/Tiny?x=1", 422, "hf_id"),
    ],
)
def test_what_cannot_be_imported_says_why(importing: TestClient, name: str, status: int, words: str) -> None:
    before = importing.get("/readyz").json()["catalog_revision"]

    response = importing.post("/catalog/models/import", json={"hf_id": name})

    assert response.status_code == status, response.text
    assert words in response.text
    assert importing.get("/readyz").json()["catalog_revision"] == before


def test_importing_needs_the_key(importing: TestClient) -> None:
    response = importing.post("/catalog/models/import", json={"hf_id": "made/Tiny"}, headers={"X-API-Key": "no"})

    assert response.status_code == 401


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("http://huggingface.co", "huggingface.co"),
        ("https://evil.example.com", "huggingface.co"),
        ("http://127.0.0.1:1", "huggingface.co"),
        ("ftp://huggingface.co", "huggingface.co"),
    ],
)
def test_only_https_and_allowed_hosts_are_asked(url: str, hosts: str) -> None:
    with pytest.raises(HubError):
        Hub(url, frozenset({hosts}), 1.0)


def test_a_hub_that_is_not_there_is_a_clear_answer(tmp_path: Path) -> None:
    with seeded_service(
        service_settings(tmp_path, hub_url="http://127.0.0.1:9", hub_allowed_hosts="127.0.0.1")
    ) as client:
        response = client.post("/catalog/models/import", json={"hf_id": "made/Tiny"}, headers={"X-API-Key": "test-key"})

        assert response.status_code == 502

"""Importing a model from a hub, against a local server that speaks the same paths."""

import gzip
import json
import math
import struct
import threading
import time
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


def nested(depth: int) -> dict[str, Any]:
    return {"a": nested(depth - 1)} if depth else {}


def safetensors(tensors: dict[str, list[int]]) -> bytes:
    """Return a file as the format says: length, header, and then tensors nobody should ask for."""
    offset, header = 0, {}
    for name, shape in tensors.items():
        size = abs(2 * math.prod(shape))
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
    "/made/Negative/resolve/main/config.json": json.dumps(CONFIG).encode(),
    "/made/Negative/resolve/main/model.safetensors": safetensors({"a": [-1, 4]}),
    "/made/Leading/resolve/main/config.json": json.dumps(CONFIG).encode(),
    "/made/Leading/resolve/main/model.safetensors.index.json": b'{"weight_map": {"a": "../../secret"}}',
    "/made/Packed/resolve/main/config.json": gzip.compress(json.dumps(CONFIG).encode()),
    "/made/Surrogate/resolve/main/config.json": json.dumps({**CONFIG, "note": "\ud800"}).encode(),
    "/made/Deep/resolve/main/config.json": json.dumps({**CONFIG, "note": nested(200)}).encode(),
    "/made/Counted/resolve/main/config.json": json.dumps(CONFIG).encode(),
    "/api/models/made/Counted?expand[]=safetensors": json.dumps(
        {"safetensors": {"parameters": {"BF16": 98_624, "F32": 256}, "total": 98_880}}
    ).encode(),
    "/made/Elsewhere/resolve/main/config.json": json.dumps(CONFIG).encode(),
    "/made/Four-Bit/resolve/main/config.json": json.dumps(CONFIG).encode(),
    "/made/Four-Bit/resolve/main/hf_quant_config.json": json.dumps(
        {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}}
    ).encode(),
}
REDIRECTS = {
    "/made/Away/resolve/main/config.json": "https://elsewhere.example.com/config.json",
    "/made/Loop/resolve/main/config.json": "/made/Loop/resolve/main/config.json",
    "/made/Moved/resolve/main/config.json": "/made/Tiny/resolve/main/config.json",
    "/made/Port/resolve/main/config.json": "http://127.0.0.1:1/config.json",
    "/made/NoUrl/resolve/main/config.json": "http://[bad/config.json",
    "/made/Elsewhere/resolve/main/model.safetensors": "https://elsewhere.example.com/model.safetensors",
}
STATUSES = {"/made/Gated/resolve/main/config.json": 401, "/made/Ill/resolve/main/config.json": 500}


TRICKLE = "made/Trickle"


class HubHandler(BaseHTTPRequestHandler):
    served: ClassVar[list[tuple[str, int]]] = []

    def do_GET(self) -> None:
        if self.path.startswith(f"/{TRICKLE}/"):
            self.trickle()
            return
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
        if body.startswith(b"\x1f\x8b"):
            self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def trickle(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            for _ in range(100):
                self.wfile.write(b" ")
                time.sleep(0.05)
        except OSError:
            return  # the client has given up

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
def test_what_cannot_be_imported_says_why(importing: TestClient, name: str, status: int, words: str) -> None:
    before = importing.get("/readyz").json()["catalog_revision"]

    response = importing.post("/catalog/models/import", json={"hf_id": name})

    assert response.status_code == status, response.text
    assert words in response.text
    assert importing.get("/readyz").json()["catalog_revision"] == before


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


def test_a_hub_that_trickles_is_given_up_on(tmp_path: Path, hub_url: str) -> None:
    settings = service_settings(tmp_path, hub_url=hub_url, hub_allowed_hosts="127.0.0.1", hub_timeout_seconds=0.2)
    with seeded_service(settings) as client:
        response = client.post("/catalog/models/import", json={"hf_id": TRICKLE}, headers={"X-API-Key": "test-key"})

        assert response.status_code == 502
        assert "in time" in response.text


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

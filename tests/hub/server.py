"""A hub of no real models, on this machine; some of them are broken, and some answers never come to an end."""

import gzip
import json
import math
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

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


TRICKLE = "made/Trickle"  # a byte of the body at a time
DRIP = "made/Drip"  # a header at a time, and no end of them
IGNORES_RANGES = "made/Whole"


class HubHandler(BaseHTTPRequestHandler):
    served: ClassVar[list[tuple[str, int]]] = []

    def do_GET(self) -> None:
        if self.path.startswith(f"/{TRICKLE}/"):
            self.trickle()
            return
        if self.path.startswith(f"/{DRIP}"):
            self.drip()
            return
        if self.path in REDIRECTS:
            self.send_response(302)
            self.send_header("location", REDIRECTS[self.path])
            self.end_headers()
            return
        body = FILES.get(self.path.replace(f"/{IGNORES_RANGES}/", "/made/Tiny/"))
        if body is None:
            self.send_response(STATUSES.get(self.path, 404))
            self.end_headers()
            return
        status, wanted = 200, self.headers.get("range")
        if wanted is not None and IGNORES_RANGES not in self.path:
            first, last = wanted.removeprefix("bytes=").split("-")
            body, status = body[int(first) : int(last) + 1], 206
        self.served.append((self.path, len(body)))
        self.send_response(status)
        if body.startswith(b"\x1f\x8b"):
            self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            return  # the client has read enough

    def trickle(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            for _ in range(2_000):
                self.wfile.write(b" ")
                time.sleep(0.05)
        except OSError:
            return  # the client has given up

    def drip(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        try:
            for number in range(1000):
                self.wfile.write(f"x-{number}: 1\r\n".encode())
                time.sleep(0.2)
        except OSError:
            return  # the client has given up

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def running_hub() -> Iterator[str]:
    """Serve the hub inside the block; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), HubHandler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()

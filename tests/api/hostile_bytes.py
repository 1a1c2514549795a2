"""What no client library would send: bytes of requests, each with the statuses that may answer it; 0: none, and closed."""

import gzip
import json
from typing import Any, Final

QUESTION: Final[dict[str, Any]] = {
    "model": "qwen3-32b",
    "gpu": "h100",
    "concurrent_requests": 8,
    "input_tokens": 900,
    "output_tokens": 90,
    "latency": "none",
}
ASKED: Final = json.dumps(QUESTION).encode()
JSON: Final = b"content-type: application/json"
CHUNKED: Final = b"transfer-encoding: chunked"
LIVE: Final = b"GET /livez HTTP/1.1"


def sent(line: bytes, *headers: bytes, body: bytes | None = None, host: bytes = b"host: here") -> bytes:
    length = [] if body is None else [b"content-length: %d" % len(body)]
    return b"\r\n".join([line, host, b"connection: close", *headers, *length, b"", b""]) + (body or b"")


def posted(body: bytes, *headers: bytes) -> bytes:
    return sent(b"POST /size HTTP/1.1", JSON, *headers, body=body)


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return sent(b"POST /size HTTP/1.1", JSON, CHUNKED) + b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks) + end


BYTES: Final[dict[str, tuple[bytes, set[int]]]] = {
    "HTTP/1.0 without a host": (b"GET /livez HTTP/1.0\r\n\r\n", {200}),
    "HTTP/2 at once": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400}),
    "HTTP/1.1 without a host": (b"GET /livez HTTP/1.1\r\n\r\n", {400}),
    "HTTP/9.9": (b"GET /livez HTTP/9.9\r\nhost: a\r\n\r\n", {400}),
    "two hosts": (sent(LIVE, b"host: there"), {400}),
    "a space in a name": (sent(LIVE, b"x : a"), {400}),
    "no colon": (sent(LIVE, b"x"), {400}),
    "a control character in a name": (sent(LIVE, b"x\x01: a"), {400}),
    "a folded header": (sent(LIVE, b"x: a\r\n b"), {400}),
    "NUL in a value": (sent(LIVE, b"x: a\x00b"), {400}),
    "bytes that are no text": (sent(LIVE, b"x: \xff\xfe"), {200}),
    "lines without a return": (b"GET /livez HTTP/1.1\nhost: a\nconnection: close\n\n", {400}),
    "empty lines first": (b"\r\n" * 500 + sent(LIVE), {200}),
    "an identifier of two lines": (sent(LIVE, b"x-request-id: a%0d%0ab"), {200}),
    "requests in a row": ((sent(LIVE).replace(b"connection: close\r\n", b"")) * 50 + sent(LIVE), {200}),
    "a request in a body": (sent(b"POST /livez HTTP/1.1", body=sent(b"GET /metrics HTTP/1.1")), {405, 415}),
    "chunks with trailers": (chunked(ASKED[:9], ASKED[9:], end=b"0\r\nhost: evil\r\nx-api-key: b\r\n\r\n"), {200}),
    "more trailers than headers may be": (
        chunked(ASKED, end=b"0\r\n" + b"".join(b"x%d: y\r\n" % number for number in range(10_000)) + b"\r\n"),
        {431},
    ),
    "chunks of a byte": (chunked(*(bytes([byte]) for byte in ASKED)), {200}),
    "a chunk without bounds": (chunked(end=b"fffffffffffffffffffff\r\n{}"), {400}),
    "a chunk of less than nothing": (chunked(end=b"-1\r\n{}"), {400}),
    "a length and chunks": (posted(b"0\r\n\r\n", CHUNKED), {400}),
    "chunks of chunks": (posted(ASKED, b"transfer-encoding: chunked, chunked"), {400}),
    "the same length twice": (posted(ASKED, b"content-length: %d" % len(ASKED)), {400}),
    "two lengths": (posted(ASKED, b"content-length: 3"), {400}),
    "a length of less than nothing": (sent(b"POST /size HTTP/1.1", JSON, b"content-length: -5"), {400}),
    "a length without bounds": (sent(b"POST /size HTTP/1.1", JSON, b"content-length: " + b"9" * 30), {400}),
    "a signed length": (sent(b"POST /size HTTP/1.1", JSON, b"content-length: +5"), {400}),
    "go on, please": (posted(ASKED, b"expect: 100-continue"), {100, 200}),
    "another expectation": (posted(ASKED, b"expect: 102-processing"), {200}),
    "a WebSocket": (sent(LIVE, b"upgrade: websocket", b"sec-websocket-key: a", b"sec-websocket-version: 13"), {200}),
    "HTTP/2 by upgrade": (sent(LIVE, b"upgrade: h2c", b"http2-settings: AA"), {200}),
    "another server's address": (sent(b"GET http://evil.example/livez HTTP/1.1"), {200}),
    "a tunnel": (sent(b"CONNECT evil.example:443 HTTP/1.1"), {400, 405}),
    "no path at all": (sent(b"OPTIONS * HTTP/1.1"), {404}),
    "letters of no ASCII in a path": (sent("GET /catalog/models/é日本 HTTP/1.1".encode()), {400}),
    "per cent of nothing": (sent(b"GET /catalog/models/%zz%f HTTP/1.1"), {404}),
    "lines in a path": (sent(b"GET /catalog/models/%00%0d%0aset-cookie:%20a HTTP/1.1"), {404, 405}),
    "slashes in disguise": (sent(b"GET /%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd HTTP/1.1"), {404}),
    "a list of tags": (sent(b"DELETE /workloads/w HTTP/1.1", b"if-match: " + b",".join([b'"1"'] * 500)), {401, 412, 422}),
    "tags of everything": (sent(LIVE, b"if-none-match: " + b",".join(b'"%032x"' % number for number in range(700))), {200}),
    "ranges": (sent(b"GET /metrics HTTP/1.1", b"range: bytes=0-1,5-9,-1"), {200}),
    "thousands of media types": (sent(LIVE, b"accept: " + b"a/b;q=0.1," * 2_000), {200}),
    "a fragment": (sent(b"GET /size#a HTTP/1.1"), {422}),
    "six thousand fields": (sent(b"GET /size?" + b"&".join(b"a%d" % number for number in range(4_000)) + b" HTTP/1.1"), {422}),
    "semicolons": (sent(b"GET /size?model=a;gpu=b;;;&&&=&=a&a= HTTP/1.1"), {422}),
    "a field of five thousand parts": (sent(b"GET /size?field=a" + b".b" * 5_000 + b" HTTP/1.1"), {422}),
    "a name of thirty thousand letters": (sent(b"GET /size?model=" + b"a" * 30_000 + b" HTTP/1.1"), {422}),
    "a compressed body": (posted(gzip.compress(b" " * 10**7), b"content-encoding: gzip"), {415}),
    "a body that says it is compressed": (posted(ASKED, b"content-encoding: br"), {415}),
    "UTF-16": (posted(ASKED.decode().encode("utf-16")), {200, 400}),
    "a mark of bytes": (posted(b"\xef\xbb\xbf" + ASKED), {200, 400}),
    "depth": (posted(b'{"model_config":' + b"[" * 400_000 + b"]" * 400_000 + b"}"), {400}),
    "depth without an end": (posted(b'{"model_config":' + b'{"a":' * 100_000), {400}),
    "numbers that are none": (posted(b'{"concurrent_requests":NaN,"input_tokens":Infinity,"output_tokens":-Infinity}'), {400, 422}),
    "a number of a million digits": (posted(b'{"concurrent_requests":1' + b"0" * 1_000_000 + b"}"), {400, 422}),
    "a comment": (posted(b'{"gpu":"h100"/* */}'), {400}),
}  # fmt: skip
COMPOSED: Final[dict[str, tuple[str, str, bytes]]] = {
    "a thousand questions of nothing": ("/size:batch", "application/json", b'{"questions":[' + b"null," * 999 + b"null]}"),
    "questions in questions": ("/size:batch", "application/json", b'{"questions":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "a cell of four megabytes": ("/size:batch", "text/csv", b"model,gpu\n" + b"a" * 4_000_000 + b",h100\n"),
    "a quotation without an end": ("/size:batch", "text/csv", b'model,gpu\n"' + b'""' * 2_000_000),
    "a hundred thousand columns": ("/size:batch", "text/csv", b",".join(b"c%d" % number for number in range(100_000))),
    "four hundred thousand rows": ("/size:batch", "text/csv", b"model,gpu\n" + b"a,b\n" * 400_000),
    "five million blank lines": ("/size:batch", "text/csv", b"model,gpu" + b"\n" * 5_000_000),
    "NUL in cells": ("/size:batch", "text/csv", b"model,gpu\n\x00,\x00\n"),
    "a log of one line": ("/measurements", "application/json", json.dumps({"text": "a" * 3_900_000}).encode()),
    "a log of digits": ("/measurements", "application/json", json.dumps({"text": "GPU KV cache size: " + "1," * 1_900_000}).encode()),
    "a log of spaces": ("/measurements", "application/json", json.dumps({"text": "Model loading took" + " " * 3_900_000}).encode()),
    "a thousand million comparisons": (
        "/compare",
        "application/json",
        json.dumps({"models": ["llama-3.1-8b"] * 1_000, "gpus": ["h100"] * 1_000, "concurrent_requests": [8] * 1_000}).encode(),
    ),
    "parameters without number": (
        "/api/v1/getparams.execute",
        "application/json",
        json.dumps({"applicationSetName": "x", "input": {"parameters": {"a": [{}] * 100_000}}}).encode(),
    ),
}  # fmt: skip

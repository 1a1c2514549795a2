"""Requests that mean harm: the same three hundred and more for every operation."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

MARK: Final = "xq9zReflectMe"  # what must not come back
JSON: Final = {"content-type": "application/json"}
TEXTS: Final = (
    "",
    " ",
    "\t",
    "\r\nset-cookie: a=b",
    "null",
    "true",
    "NaN",
    "-Infinity",
    "1e999",
    "9" * 400,
    "-1",
    "0x10",
    "1_000",
    "\u0661\u0662",
    "\u202e" + MARK,
    "\ufeff",
    "\x7f",
    "\U0001f4a9" * 50,
    "a" * 5_000,
    f"<script>{MARK}</script>",
    f"' OR 1=1; DROP TABLE models; -- {MARK}",
    f"${{jndi:ldap://{MARK}}}",
    f"{{{{{MARK}}}}}",
    f"=cmd|' /C {MARK}'!A0",
    f"../../../../etc/passwd{MARK}",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "%ff%fe",
    "file:///etc/passwd",
    "http://169.254.169.254/latest/meta-data",
    "*",
    ",",
    ",,,,",
    "[]",
    "{}",
    "(" * 500,
)
VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1 << 63, 1 << 64, 10**300, 1e308, 5e-324, -0.0, "", MARK, "\x00", "a" * 10_000,
    [], {}, [[]], [None], [{}], {"": ""}, {"$ref": MARK}, {"__proto__": 1}, ["a"] * 300, [[[[[[[[[[1]]]]]]]]]],
)  # fmt: skip
NAMES: Final = (
    "model", "gpu", "concurrent_requests", "request_rate_per_s", "input_tokens", "output_tokens", "format", "field",
    "model_config", "id", "hf_id", "page_size", "page_token", MARK, "__class__", "", "a" * 300,
)  # fmt: skip
BODIES: Final = (
    b"", b" ", b"{", b"}", b"[", b"null", b"true", b"1", b'"text"', b"[]", b"{}", b"[{}]", b"\xff\xfe", b"\xef\xbb\xbf{}",
    b'{"a":' * 2_000, b"[" * 20_000, b"[" * 20_000 + b"]" * 20_000, b'{"a":1' + b"0" * 10_000 + b"}", b'{"a":NaN}',
    b'{"a":Infinity}', b'{"a":1e999}', b'{"a":"\\ud800"}', b'{"\\ud800":1}', b'{"a":"\x00"}', b'{"a":1,"a":2}',
    b'{"a":1}trailing', b"<xml/>", b"a=b&c=d", b"\x00" * 1_000, b"{" + b'"' + b"k" * 100_000 + b'":1}',
    b"{" + b",".join(b'"k%d":1' % number for number in range(3_000)) + b"}", b" " * 200_000 + b"{}", b"{}" + b" " * (1 << 20),
)  # fmt: skip
HEADERS: Final[tuple[dict[str, str], ...]] = (
    {"content-type": "text/plain"},
    {"content-type": "application/json; charset=utf-16"},
    {"content-type": f"application/{MARK}"},
    {"content-type": "multipart/form-data"},
    {"content-encoding": "gzip"},
    {"accept": MARK},
    {"accept": "image/png;q=x"},
    {"if-none-match": "*" * 500},
    {"range": "bytes=0-0"},
    {"host": f"{MARK}:99999"},
    {"x-forwarded-for": MARK},
    {"x-forwarded-host": MARK},
    {"x-http-method-override": "DELETE"},
    {"origin": f"https://{MARK}.example"},
    {"cookie": "a" * 3_000},
    {"authorization": f"Bearer {MARK}"},
    {"x-api-key": MARK},
    {"x-api-key": "\xff"},
    {"expect": "200-maybe"},
    {"te": "trailers, deflate"},
)
METHODS: Final = ("HEAD", "OPTIONS", "TRACE", "PATCH", "PUT", "DELETE", "CONNECT", "PROPFIND", "FOO", "get")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One request, less its path."""

    method: str
    params: list[tuple[str, str]] = field(default_factory=list)
    body: bytes | None = None
    json: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    suffix: str = ""


def requests(method: str) -> Iterator[Hostile]:
    """Yield what is sent to an operation of this method."""
    # Every name meets every second text or value, and each of those every second name.
    for place, name in enumerate(NAMES):
        for text in TEXTS[place % 2 :: 2] if method in ("GET", "DELETE") else TEXTS[place % 8 :: 8]:
            yield Hostile(method=method, params=[(name, text)])
    if method in ("POST", "PUT"):
        for place, name in enumerate(NAMES):
            for value in VALUES[place % 2 :: 2]:
                yield Hostile(method=method, json={name: value}, headers=JSON)
    for body in BODIES:
        yield Hostile(method=method, body=body, headers=JSON)
    for headers in HEADERS:
        yield Hostile(method=method, body=b"{}" if method in ("POST", "PUT") else None, headers=headers)
    for other in METHODS:
        yield Hostile(method=other)
    for text in TEXTS:
        yield Hostile(method=method, suffix="/" + text)
    yield Hostile(method=method, params=[(MARK, "1")] * 500)
    yield Hostile(method=method, params=[(f"{MARK}{number}", "1") for number in range(500)])

"""Answers as they left, kept by the bytes that asked, and how they leave again."""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from hashlib import sha256
from time import time
from typing import Final

from cachetools import LRUCache
from starlette.types import Scope

from service.api.etags import CACHE_CONTROL
from service.api.media import format_accepted
from service.catalog.keeper import CatalogKeeper
from service.catalog.snapshot import Snapshot

MOST_KEPT_BYTES: Final = 32 << 20
OVERHEAD_BYTES: Final = 2048  # of one kept reply, beside its texts
OF_A_BODY: Final = frozenset({b"content-length", b"content-type"})
Header = tuple[bytes, bytes]
Key = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it leaves."""

    headers: tuple[Header, ...]
    body: bytes
    etag: bytes
    lines: bytes = field(init=False)  # the headers, as a connection sends them
    unchanged: tuple[Header, ...] = field(init=False)  # the headers, where whoever asks has the answer
    unchanged_lines: bytes = field(init=False)

    def __post_init__(self) -> None:
        """Write the headers once."""
        bare = tuple(header for header in self.headers if header[0] not in OF_A_BODY)
        object.__setattr__(self, "lines", lines_of(self.headers))
        object.__setattr__(self, "unchanged", bare)
        object.__setattr__(self, "unchanged_lines", lines_of(bare))

    @property
    def num_bytes(self) -> int:
        """Return about how much memory it takes. [bytes]."""
        return len(self.body) + OVERHEAD_BYTES


def reply_of(headers: tuple[Header, ...], body: bytes) -> Reply:
    """Return an answer with a tag of its bytes."""
    etag = b'"' + sha256(body).hexdigest()[:32].encode() + b'"'
    return Reply((*headers, (b"etag", etag), (b"cache-control", CACHE_CONTROL.encode())), body, etag)


def lines_of(headers: tuple[Header, ...]) -> bytes:
    """Return headers as they go over the wire.

    >>> lines_of(((b"etag", b"x"), (b"age", b"1"))).split()
    [b'etag:', b'x', b'age:', b'1']
    """
    return b"".join(b"%b: %b\r\n" % header for header in headers)


class KeptReplies:
    """Replies of one catalog and one day: prices grow stale with the days."""

    def __init__(self) -> None:
        """Start with none."""
        self._kept: MutableMapping[Key, Reply] = LRUCache(MOST_KEPT_BYTES, getsizeof=lambda reply: reply.num_bytes)
        self._of: tuple[Snapshot | None, date] = (None, date.min)

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._kept)

    def get(self, key: Key | None, snapshot: Snapshot) -> Reply | None:
        """Return what left before for the same bytes, of this catalog and this day."""
        today = datetime.now(UTC).date()
        if self._of[0] is not snapshot or self._of[1] != today:
            self._kept.clear()
            self._of = snapshot, today
        return None if key is None else self._kept.get(key)

    def put(self, key: Key, reply: Reply, snapshot: Snapshot) -> None:
        """Keep an answer, unless the catalog is another by now."""
        if self._of[0] is snapshot and reply.num_bytes < MOST_KEPT_BYTES:
            self._kept[key] = reply


def key_of(scope: Scope, body: bytes | None) -> Key | None:
    """Return what an answer is kept under: the path, what Accept names, and the query string or body as it came."""
    headers = dict(scope["headers"])
    has_body = headers.get(b"content-length", b"").strip(b"0") or b"transfer-encoding" in headers
    if scope["method"] == "GET" and has_body:
        return None  # which is refused
    accepted = format_accepted(headers.get(b"accept", b""))
    path = scope["path"] if accepted is None else f"{scope['path']} as {accepted}"
    if scope["method"] == "GET":
        return path, b"?" + scope["query_string"]
    if scope["method"] != "POST" or body is None or scope["query_string"]:
        return None
    return path, body


def age_headers(keeper: CatalogKeeper) -> Iterator[Header]:
    """Yield for how long the catalog may have been out of date, where it was ever confirmed, and whether it is."""
    health, now = keeper.health, time()
    age_s = health.age_s(now)
    if age_s is not None:
        yield b"x-catalog-age", b"%d" % round(age_s)
    if health.is_stale(now):
        yield b"x-catalog-stale", b"true"

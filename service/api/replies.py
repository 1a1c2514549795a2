"""Answers as they left, kept by the bytes that asked: a repeated question is read, looked up and sent, no more.

What is not kept is turned away here, before anybody reads it, while as many wait as can be answered in time.
"""

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from time import time
from typing import Final

from cachetools import LRUCache
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.etags import CACHE_CONTROL
from service.api.problems import problem_response
from service.api.reception import BUSY, Reception
from service.catalog.keeper import CatalogKeeper
from service.catalog.snapshot import Snapshot

MOST_KEPT_BYTES: Final = 32 << 20
MOST_BODY_BYTES: Final = 64 << 10  # of a question that is looked up by its bytes; a larger one is read by its route
MOST_LARGE_AT_ONCE: Final = 4  # bodies above that; reading one takes the event loop some milliseconds
OVERHEAD_BYTES: Final = 1024  # of one kept reply, beside its texts
Header = tuple[bytes, bytes]
Key = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it leaves."""

    headers: tuple[Header, ...]
    body: bytes
    etag: bytes


class Replies:
    """ASGI middleware in front of the questions."""

    def __init__(self, app: ASGIApp, paths: Iterable[str]) -> None:
        """Wrap an application whose questions are at these paths."""
        self._app = app
        self._paths = frozenset(paths)
        self._kept: MutableMapping[Key, Reply] = LRUCache(MOST_KEPT_BYTES, getsizeof=_bytes_of)
        self._of: tuple[Snapshot | None, date] = (None, date.min)  # prices grow stale with the days
        self._large = 0
        self._inside = 0  # questions that were passed on and are not answered yet
        self._busy = problem_response(503, "busy", BUSY, headers={"Retry-After": "1"})  # written once, sent often

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is kept, turn away what would wait too long, pass on the rest."""
        if scope["type"] != "http" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        keeper: CatalogKeeper = scope["app"].state.catalog
        body, receive = await _body_of(scope, receive)
        key = _key_of(scope, body)
        reply = self._reply(key, keeper.snapshot)
        if reply is not None:
            await _send(reply, scope, send, keeper)
        elif self._turns_away(scope, body):
            await self._busy(scope, receive, send)
        else:
            await self._answer(scope, receive, send, key)

    def _reply(self, key: Key | None, snapshot: Snapshot) -> Reply | None:
        today = datetime.now(UTC).date()
        if self._of[0] is not snapshot or self._of[1] != today:
            self._kept.clear()
            self._of = snapshot, today
        return None if key is None else self._kept.get(key)

    def _turns_away(self, scope: Scope, body: bytes | None) -> bool:
        reception: Reception = scope["app"].state.reception
        is_large = body is None and scope["method"] == "POST"
        admission = reception.admission
        # Of a burst, what is still being read counts too: a refusal should cost less than reading a question.
        is_full = admission.quick.is_full or self._inside - admission.num_dear >= admission.quick.room
        return is_full or (is_large and self._large >= MOST_LARGE_AT_ONCE)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, key: Key | None) -> None:
        """Pass the question on, and keep the answer."""
        keeper: CatalogKeeper = scope["app"].state.catalog
        asked_of, held = keeper.snapshot, _Held(send)
        is_large = key is None  # or odd in another way, which is as rare
        self._large += is_large
        self._inside += 1
        try:
            await self._app(scope, receive, held)
        finally:
            self._large -= is_large
            self._inside -= 1
        reply = held.reply()
        if reply is None:
            return
        if key is not None and keeper.snapshot is asked_of is self._of[0] and _bytes_of(reply) < MOST_KEPT_BYTES:
            self._kept[key] = reply
        await _send(reply, scope, send, keeper)


class _Held:
    """Holds an answer back until it is whole; whatever is none goes out as it comes."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")

    def reply(self) -> Reply | None:
        """Return the whole answer; None where there was none."""
        if self._start is None:
            return None
        etag = b'"' + sha256(self._body).hexdigest()[:32].encode() + b'"'
        own = ((b"etag", etag), (b"cache-control", CACHE_CONTROL.encode()))
        return Reply((*self._start["headers"], *own), self._body, etag)


def _bytes_of(reply: Reply) -> int:
    return len(reply.body) + OVERHEAD_BYTES


def _key_of(scope: Scope, body: bytes | None) -> Key | None:
    """Return what an answer is kept under: the path, and the query string or body as it came."""
    if scope["method"] == "GET":
        return scope["path"], b"?" + scope["query_string"]
    if scope["method"] != "POST" or body is None or scope["query_string"]:
        return None
    return scope["path"], body


async def _body_of(scope: Scope, receive: Receive) -> tuple[bytes | None, Receive]:
    """Return a small body, and a way to receive it again; None of one that is large or states no length."""
    if scope["method"] != "POST":
        return None, receive
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    if not length.isdigit() or len(length) > 6 or int(length) > MOST_BODY_BYTES:
        return None, receive
    if headers.get(b"content-type") != b"application/json":
        return None, receive
    messages: list[Message] = []
    while not messages or (messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False)):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)
    is_whole = messages[-1]["type"] == "http.request"
    again = iter(messages)

    async def received() -> Message:
        return next(again, None) or await receive()

    return body if is_whole else None, received


async def _send(reply: Reply, scope: Scope, send: Send, keeper: CatalogKeeper) -> None:
    """Send an answer, or that it has not changed; with the age of the catalog it is from."""
    age = _age_headers(keeper)
    wanted = dict(scope["headers"]).get(b"if-none-match", b"")
    if reply.etag in wanted:
        unchanged = [header for header in reply.headers if header[0] not in (b"content-length", b"content-type")]
        await send({"type": "http.response.start", "status": 304, "headers": [*unchanged, *age]})
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [*reply.headers, *age]})
    await send({"type": "http.response.body", "body": reply.body})


def _age_headers(keeper: CatalogKeeper) -> list[Header]:
    """Return for how long the catalog may have been out of date, where it was ever confirmed, and whether it is."""
    health, now = keeper.health, time()
    age_s = health.age_s(now)
    age = [] if age_s is None else [(b"x-catalog-age", str(round(age_s)).encode())]
    return [*age, (b"x-catalog-stale", b"true")] if health.is_stale(now) else age

"""Questions over ASGI: what was answered before is sent as it left, and what would wait too long is turned away.

A connection of the service's own asks the front first (`front.py`), which answers the same from the same kept replies.
"""

from collections.abc import Iterable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.kept import KeptReplies, Key, Reply, age_headers, key_of, reply_of
from service.api.problems import problem_response
from service.api.reception import BUSY, BUSY_HEADERS, Reception
from service.catalog.keeper import CatalogKeeper

MOST_BODY_BYTES: Final = 64 << 10  # of a question that is looked up by its bytes; a larger one is read by its route
MOST_LARGE_AT_ONCE: Final = 4  # bodies above that; reading one takes the event loop some milliseconds


class Replies:
    """ASGI middleware in front of the questions."""

    def __init__(self, app: ASGIApp, paths: Iterable[str], kept: KeptReplies) -> None:
        """Wrap an application whose questions are at these paths."""
        self._app = app
        self._paths = frozenset(paths)
        self._kept = kept
        self._large = 0
        self._busy = problem_response(503, "busy", BUSY, headers=BUSY_HEADERS)  # written once, sent often

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is kept, turn away what would wait too long, pass on the rest."""
        if scope["type"] != "http" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        keeper: CatalogKeeper = scope["app"].state.catalog
        body, receive = await _body_of(scope, receive)
        key = key_of(scope, body)
        reply = self._kept.get(key, keeper.snapshot)
        if reply is not None:
            await _send(reply, scope, send, keeper)
        elif self._turns_away(scope, body):
            await self._busy(scope, receive, send)
        else:
            await self._answer(scope, receive, send, key)

    def _turns_away(self, scope: Scope, body: bytes | None) -> bool:
        reception: Reception = scope["app"].state.reception
        is_large = body is None and scope["method"] == "POST"
        return reception.is_full or (is_large and self._large >= MOST_LARGE_AT_ONCE)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, key: Key | None) -> None:
        """Pass the question on, and keep the answer."""
        keeper: CatalogKeeper = scope["app"].state.catalog
        reception: Reception = scope["app"].state.reception
        asked_of, held = keeper.snapshot, _Held(send)
        is_large = key is None  # or odd in another way, which is as rare
        self._large += is_large
        reception.num_inside += 1
        try:
            await self._app(scope, receive, held)
        finally:
            self._large -= is_large
            reception.num_inside -= 1
        reply = held.reply()
        if reply is None:
            return
        if key is not None and keeper.snapshot is asked_of:
            self._kept.put(key, reply, asked_of)
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
        return None if self._start is None else reply_of(tuple(self._start["headers"]), self._body)


async def _body_of(scope: Scope, receive: Receive) -> tuple[bytes | None, Receive]:
    """Return a small body, and a way to receive it again; None of one that is large or states no length."""
    if scope["method"] != "POST":
        return None, receive
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    if not length.isdigit() or len(length) > 6 or int(length) > MOST_BODY_BYTES:
        return None, receive
    if headers.get(b"content-type") != b"application/json" or b"content-encoding" in headers:
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


def has_it(etag: bytes, wanted: bytes, method: str) -> bool:
    """Return whether whoever asks has an answer already: told to GET alone (RFC 9110, section 13.1.2)."""
    return method == "GET" and (etag in wanted or wanted.strip() == b"*")


async def _send(reply: Reply, scope: Scope, send: Send, keeper: CatalogKeeper) -> None:
    """Send an answer, or that it has not changed; with the age of the catalog it is from."""
    age = age_headers(keeper)
    if has_it(reply.etag, dict(scope["headers"]).get(b"if-none-match", b""), scope["method"]):
        await send({"type": "http.response.start", "status": 304, "headers": [*reply.unchanged, *age]})
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [*reply.headers, *age]})
    await send({"type": "http.response.body", "body": reply.body})

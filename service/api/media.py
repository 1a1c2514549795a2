"""Bodies: refuses what is not JSON, or too large, before anything reads it; reads JSON and what it states twice."""

import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.problems import FIX_FORM, OR_ASK_BY_GET, FieldProblem, problem_response
from service.questions.formats import Written
from service.questions.parts.writing import Format
from service.questions.reading import read_json

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
WITHOUT_BODY = frozenset({"GET", "HEAD"})
CSV: Final = "text/csv"
EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"  # as Prometheus reads it
NDJSON: Final = "application/x-ndjson"
BATCH_TYPES: Final = frozenset({CSV, NDJSON})  # that `:batch` reads beside JSON
PLAIN = b"identity"
SERVER: Final = "http://sizer:8000"  # as EXAMPLES.md calls it, where nobody says how callers reach it
UNWANTED: Final = re.compile(r";\s*q\s*=\s*0(?:\.0{0,3})?\s*(?:;|$)", re.IGNORECASE)
# What a caller may ask for without naming a format; a list of types, as browsers and scrapers send, leaves the choice.
WRITTEN_AS: Final[Mapping[str, Format]] = {CSV: "csv", "application/yaml": "yaml", "text/plain": "text"}


def format_accepted(accept: bytes) -> Format | None:
    """Return the format that an Accept header names alone; None where it leaves the choice.

    >>> format_accepted(b"text/csv; charset=utf-8"), format_accepted(b"text/csv, */*"), format_accepted(b"*/*")
    ('csv', None, None)
    """
    return next(map(WRITTEN_AS.get, types_accepted(accept.decode("latin-1"))), None) if b"," not in accept else None


def types_accepted(accept: str) -> tuple[str, ...]:
    """Return the types that an Accept header names, in its order, without those of weight 0 (RFC 9110, 12.4.2).

    >>> types_accepted("text/csv;q=0, Application/JSON; q=0.5")
    ('application/json',)
    """
    types = (each.partition(";")[0].strip().lower() for each in accept.split(",") if not UNWANTED.search(each))
    return tuple(filter(None, types))


class JsonBodies:
    """ASGI middleware: a body in another media type, or compressed, gets 415, one of a length above the cap 413.

    FastAPI's own cap, on the routers, counts bodies that state no length; to one that does it answers in plain text.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int, server: str, examples: Mapping[str, str]) -> None:
        """Wrap an application that is reached at a server, and show what its paths take, where an example is known."""
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._server, self._examples = server or SERVER, examples

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        respond = self._refusal(scope) if scope["type"] == "http" else None
        if respond is None and _may_stream_unread(scope):
            first = await receive()
            respond = self._unread(scope) if first.get("body") else None
            receive = _beginning_with(first, receive)
        await (respond or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = dict(scope["headers"])
        media_type = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
        is_read = media_type.decode("latin-1") in BATCH_TYPES and scope["path"].endswith(":batch")
        is_other = (media_type or has_body) and media_type != b"application/json" and not is_read
        if scope["method"] in WITH_BODY and is_other:
            return self._not_json(scope)
        if scope["method"] in WITH_BODY and headers.get(b"content-encoding", PLAIN).lower() != PLAIN:
            return _compressed()
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > self._max_body_bytes:
            detail = f"the body is larger than the {self._max_body_bytes} bytes this service reads"
            fault = FieldProblem(field="body", detail=detail, accepted=f"at most {self._max_body_bytes} bytes")
            return problem_response(413, "body-too-large", detail, [fault])
        if scope["method"] in WITHOUT_BODY and length.strip(b"0"):
            return self._unread(scope)
        return None

    def _not_json(self, scope: Scope) -> Response:
        others = f", {NDJSON} or {CSV}" if scope["path"].endswith(":batch") else ""
        accepted = f"application/json{others}"
        fault = FieldProblem(field="content-type", detail="the body is not JSON", accepted=accepted)
        detail = f"{fault.detail}; {self._right_line(scope)}"
        return problem_response(415, "unsupported-media-type", detail, [fault])

    def _unread(self, scope: Scope) -> Response:
        """Return that a body is not read: `curl -X GET -d` sends one."""
        path, detail = scope["path"], f"a {scope['method']} has a body, which is not read"
        example = self._examples.get(path)
        accepted = "no body" if example is None else f"send it by POST: curl --json '{example}' '{self._server}{path}'"
        fault = FieldProblem(field="body", detail=detail, accepted=accepted)
        return problem_response(422, "invalid-request", f"{detail}; {accepted}", [fault])

    def _right_line(self, scope: Scope) -> str:
        """Return what to send instead; curl's own default is a form, and the line that is right is short."""
        path, method = scope["path"], scope["method"]
        if re.fullmatch(r"[a-z0-9:/._-]{1,100}", path) is None:
            return FIX_FORM
        how = "" if method == "POST" else f"-X {method} "
        # Of what has an example, questions alone are read from a query string as well.
        is_asked_by_get = path in self._examples and not path.endswith(":batch")
        fix = f"{FIX_FORM}{OR_ASK_BY_GET if is_asked_by_get else ''}"
        line = f"{fix}: curl --json '{self._examples.get(path, '{...}')}' {how}'{self._server}{path}'"
        return f"{line}; for CSV, -H 'content-type: {CSV}'" if path.endswith(":batch") else line


def _may_stream_unread(scope: Scope) -> bool:
    """Return whether a request that has no body may send one in chunks, the first of which tells."""
    return (
        scope["type"] == "http" and scope["method"] in WITHOUT_BODY and b"transfer-encoding" in dict(scope["headers"])
    )


def _beginning_with(first: Message, receive: Receive) -> Receive:
    """Return what a request sends, from a message on that was read already."""
    read = [first]

    async def again() -> Message:
        return read.pop() if read else await receive()

    return again


def response_of(answer: Written) -> Response:
    """Return an answer to a question, which Accept may have had a word in."""
    return Response(answer.text, media_type=answer.media_type, headers={"Vary": "Accept"})


def _compressed() -> Response:
    """Return what is told of a compressed body: that none is taken (RFC 9110, 12.5.3, names the header)."""
    detail = "the body is compressed; send it as it is"
    fault = FieldProblem(field="content-encoding", detail=detail, accepted="identity, or no such header")
    return problem_response(415, "unsupported-media-type", detail, [fault], {"Accept-Encoding": "identity"})


class JsonRequest(Request):
    """A request that remembers which names its JSON states more than once."""

    async def json(self) -> Any:
        """Return the body's value; keep the names in `state.stated_twice`."""
        if not hasattr(self, "_json"):
            self._json, self.state.stated_twice = read_json(await self.body())
        return self._json


class JsonRoute(APIRoute):
    """A route whose body is read as `JsonRequest` does."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, given such a request."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(JsonRequest(request.scope, request.receive))

        return handle

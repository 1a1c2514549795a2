"""Refuses bodies that are not JSON, or too large, before anything reads them; with the fix."""

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.problems import FIX_FORM, problem_response

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class JsonBodies:
    """ASGI middleware: a body in another media type gets 415, one above the cap 413."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        """Wrap an application."""
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] != "http" or scope["method"] not in WITH_BODY:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        media_type = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if media_type and media_type != b"application/json":
            response = problem_response(415, "unsupported-media-type", f"the body is not JSON; {FIX_FORM}")
            await response(scope, receive, send)
            return
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > self._max_body_bytes:
            detail = f"the body is larger than the {self._max_body_bytes} bytes this service reads"
            await problem_response(413, "body-too-large", detail)(scope, receive, send)
            return
        await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        """Return a receiver that gives up on a body without a stated length that grows above the cap."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max_body_bytes:
                raise HTTPException(413)
            return message

        return counted

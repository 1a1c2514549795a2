"""Refuses bodies that are not JSON before anything reads them, with the fix."""

from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.problems import FIX_FORM, problem_response

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class JsonBodiesOnly:
    """ASGI middleware: a body in another media type is answered with 415."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] == "http" and scope["method"] in WITH_BODY:
            headers = dict(scope["headers"])
            media_type = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if media_type and media_type != b"application/json":
                response = problem_response(415, "unsupported-media-type", f"the body is not JSON; {FIX_FORM}")
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)
